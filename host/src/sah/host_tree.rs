//! A tree in host memory.

use crate::error::{Result, check_count};
use crate::memory;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::rays::triangle::Corners;
use kauri_kernels::sah::node::{MAX_NODES, Node};
use kauri_kernels::sah::traversal::Scene;

/// A tree in host memory, with the corners of its triangles.
pub(super) struct HostTree {
    pub(super) extent: Extent,
    pub(super) nodes: Vec<Node>,
    /// Primitive references: the triangles of all leaves, leaf after leaf.
    pub(super) references: Vec<u32>,
    pub(super) corners: Vec<Corners>,
}

impl Scene for &HostTree {
    unsafe fn extent(&self) -> Extent {
        self.extent
    }
    unsafe fn node(&self, node: u32) -> Node {
        self.nodes[node as usize]
    }
    unsafe fn reference(&self, index: u32) -> u32 {
        self.references[index as usize]
    }
    unsafe fn corners(&self, triangle: u32) -> [[f32; 3]; 3] {
        self.corners[triangle as usize].positions()
    }
}

/// A subtree during the build.
pub(super) enum Subtree {
    Inner { axis: u32, plane: f32, children: Box<[Subtree; 2]> },
    Leaf(Vec<u32>),
}

impl Subtree {
    pub(super) fn inner(axis: u32, plane: f32, below: Self, above: Self) -> Self {
        Self::Inner { axis, plane, children: Box::new([below, above]) }
    }

    pub(super) const fn empty() -> Self {
        Self::Leaf(Vec::new())
    }

    /// Returns the number of nodes, and of references of all leaves.
    fn size(&self) -> (u64, u64) {
        match self {
            Self::Leaf(triangles) => (1, triangles.len() as u64),
            Self::Inner { children, .. } => {
                let [below, above] = [children[0].size(), children[1].size()];
                (1 + below.0 + above.0, below.1 + above.1)
            }
        }
    }

    fn write(&self, nodes: &mut Vec<Node>, references: &mut Vec<u32>) {
        match self {
            Self::Leaf(triangles) => {
                nodes.push(Node::leaf(references.len() as u32, triangles.len() as u32));
                references.extend(triangles);
            }
            Self::Inner { axis, plane, children } => {
                let node = nodes.len();
                nodes.push(Node::leaf(0, 0));
                children[0].write(nodes, references);
                nodes[node] = Node::inner(*axis, *plane, nodes.len() as u32);
                children[1].write(nodes, references);
            }
        }
    }
}

/// Checks that nodes and references can be numbered.
pub(super) fn check_size(num_nodes: u64, num_references: u64) -> Result<()> {
    check_count("nodes of a SAH k-d tree", num_nodes, MAX_NODES)?;
    check_count("triangles in leaves", num_references, MAX_NODES)
}

impl HostTree {
    pub(super) fn new(root: &Subtree, extent: Extent, corners: Vec<Corners>) -> Result<Self> {
        let (num_nodes, num_references) = root.size();
        check_size(num_nodes, num_references)?;
        let mut nodes = memory::vec_with_capacity(num_nodes as usize, "nodes of a SAH k-d tree")?;
        let mut references = memory::vec_with_capacity(num_references as usize, "triangles in leaves")?;
        root.write(&mut nodes, &mut references);
        Ok(Self { extent, nodes, references, corners })
    }

    /// Returns the average cost of a ray that hits the root's box, in intersection tests: the costs of all nodes, each
    /// weighted by its surface area relative to the root's.
    pub(super) fn cost(&self, step_cost: f32) -> f64 {
        let area = |of: Aabb| {
            let [x, y, z] = of.extents().map(f64::from);
            x * y + y * z + z * x
        };
        let (mut cost, mut stack) = (0.0, vec![(0, self.extent.bounds)]);
        while let Some((index, bounds)) = stack.pop() {
            let node = self.nodes[index as usize];
            cost += area(bounds) * if node.is_leaf() { node.len().into() } else { f64::from(step_cost) };
            if !node.is_leaf() {
                let [below, above] = bounds.split_at(node.axis(), node.plane());
                stack.extend([(node.above(), above), (index + 1, below)]);
            }
        }
        let all = area(self.extent.bounds);
        if all > 0.0 { cost / all } else { f64::from(self.references.len() as u32) }
    }
}
