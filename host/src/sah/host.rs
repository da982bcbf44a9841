//! A tree in host memory.

use crate::error::{Error, Result};
use crate::memory;
use kauri_kernels::sah::aabb::{Aabb, of_axis};
use kauri_kernels::sah::clip::clipped;
use kauri_kernels::sah::extent::Extent;
use kauri_kernels::sah::model::{is_above, is_below};
use kauri_kernels::sah::node::{MAX_DEPTH, MAX_NODES, Node};
use kauri_kernels::sah::triangle::Corners;
use kauri_kernels::sah::walk::Scene;

/// A tree in host memory, with the corners of its triangles.
pub(super) struct HostTree {
    pub(super) extent: Extent,
    pub(super) nodes: Vec<Node>,
    /// The triangles of leaves.
    pub(super) listed: Vec<u32>,
    pub(super) corners: Vec<Corners>,
}

impl Scene for &HostTree {
    unsafe fn extent(&self) -> Extent {
        self.extent
    }
    unsafe fn node(&self, node: u32) -> Node {
        self.nodes[node as usize]
    }
    unsafe fn listed(&self, place: u32) -> u32 {
        self.listed[place as usize]
    }
    unsafe fn corners(&self, triangle: u32) -> [[f32; 3]; 3] {
        self.corners[triangle as usize].places()
    }
}

/// A subtree while it is built.
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

    /// Numbers of nodes and of triangles in leaves.
    fn size(&self) -> (u64, u64) {
        match self {
            Self::Leaf(triangles) => (1, triangles.len() as u64),
            Self::Inner { children, .. } => {
                let [below, above] = [children[0].size(), children[1].size()];
                (1 + below.0 + above.0, below.1 + above.1)
            }
        }
    }

    fn write(&self, nodes: &mut Vec<Node>, listed: &mut Vec<u32>) {
        match self {
            Self::Leaf(triangles) => {
                nodes.push(Node::leaf(listed.len() as u32, triangles.len() as u32));
                listed.extend(triangles);
            }
            Self::Inner { axis, plane, children } => {
                let node = nodes.len();
                nodes.push(Node::leaf(0, 0));
                children[0].write(nodes, listed);
                nodes[node] = Node::inner(*axis, *plane, nodes.len() as u32);
                children[1].write(nodes, listed);
            }
        }
    }
}

/// [`Error::TooManyItems`] unless so many nodes and triangles in leaves can be numbered.
pub(super) fn check_size(num_nodes: u64, num_listed: u64) -> Result<()> {
    for (what, count) in [("nodes of a SAH k-d tree", num_nodes), ("triangles in leaves", num_listed)] {
        if count > MAX_NODES {
            return Err(Error::TooManyItems { what, count, max: MAX_NODES });
        }
    }
    Ok(())
}

impl HostTree {
    pub(super) fn new(root: &Subtree, extent: Extent, corners: Vec<Corners>) -> Result<Self> {
        let (num_nodes, num_listed) = root.size();
        check_size(num_nodes, num_listed)?;
        let mut nodes = memory::vec_with_capacity(num_nodes as usize, "nodes of a SAH k-d tree")?;
        let mut listed = memory::vec_with_capacity(num_listed as usize, "triangles in leaves")?;
        root.write(&mut nodes, &mut listed);
        Ok(Self { extent, nodes, listed, corners })
    }

    /// What rays cost on average, in tests of a triangle: of each node its surface in that of the root, times a step or its tests.
    pub(super) fn cost(&self, step_cost: f32) -> f64 {
        let area = |of: Aabb| {
            let [x, y, z] = of.extents().map(f64::from);
            x * y + y * z + z * x
        };
        let mut cost = 0.0;
        self.each_node(|node, bounds| {
            cost += area(bounds) * if node.is_leaf() { node.len().into() } else { f64::from(step_cost) };
        });
        let all = area(self.extent.bounds);
        if all > 0.0 { cost / all } else { f64::from(self.listed.len() as u32) }
    }

    /// Visits every node with its box.
    fn each_node(&self, mut visit: impl FnMut(Node, Aabb)) {
        let mut left = vec![(0, self.extent.bounds)];
        while let Some((place, bounds)) = left.pop() {
            let node = self.nodes[place as usize];
            visit(node, bounds);
            if !node.is_leaf() {
                let [below, above] = bounds.halves(node.axis(), node.plane());
                left.push((node.above(), above));
                left.push((place + 1, below));
            }
        }
    }

    /// Checks that the tree is in preorder, that each plane is in its node's box and no node too deep, and that of every triangle all
    /// of what is in a leaf's box is known to it.
    pub(super) fn verify(&self) -> Result<()> {
        let wrong = |node: u32, what: String| Err(Error::Corrupt { node: node.into(), what });
        let (mut next, mut place_in_list) = (0, 0);
        let mut left = vec![(0u32, self.extent.bounds, 0)];
        while let Some((place, bounds, depth)) = left.pop() {
            let Some(&node) = self.nodes.get(place as usize) else {
                return wrong(place, format!("there are {} nodes", self.nodes.len()));
            };
            if place != next || depth > MAX_DEPTH {
                return wrong(place, format!("on level {depth}, where node {next} was to be"));
            }
            next += 1;
            if node.is_leaf() {
                if node.begin() != place_in_list {
                    return wrong(
                        place,
                        format!("its triangles begin at {}, not {place_in_list}", node.begin()),
                    );
                }
                place_in_list += node.len();
            } else {
                let [below, above] = bounds.halves(node.axis(), node.plane());
                if below.is_empty() || above.is_empty() {
                    return wrong(place, format!("its plane {} is not in its box", node.plane()));
                }
                left.push((node.above(), above, depth + 1));
                left.push((place + 1, below, depth + 1));
            }
        }
        if next as usize != self.nodes.len() || place_in_list as usize != self.listed.len() {
            return wrong(
                next,
                format!(
                    "there are {} nodes, and {} triangles in leaves",
                    self.nodes.len(),
                    self.listed.len()
                ),
            );
        }
        if let Some(&id) = self.listed.iter().find(|&&id| id as usize >= self.corners.len()) {
            return wrong(0, format!("triangle {id} of {}", self.corners.len()));
        }
        (0..self.corners.len() as u32).try_for_each(|triangle| {
            match self.leaf_without(triangle, 0, Aabb::of_corners(self.corners[triangle as usize].places())) {
                None => Ok(()),
                Some(leaf) => wrong(leaf, format!("a leaf without triangle {triangle}, which is in its box")),
            }
        })
    }

    /// A leaf in the subtree that does not know of a part of a triangle. One that lies in a plane is on one side of it.
    fn leaf_without(&self, triangle: u32, place: u32, part: Aabb) -> Option<u32> {
        let node = self.nodes[place as usize];
        if node.is_leaf() {
            let (begin, len) = (node.begin() as usize, node.len() as usize);
            return (!self.listed[begin..begin + len].contains(&triangle)).then_some(place);
        }
        let (axis, plane, corners) = (node.axis(), node.plane(), self.corners[triangle as usize].places());
        let (low, high) = (of_axis(part.low, axis), of_axis(part.high, axis));
        let [below, above] = [place + 1, node.above()];
        if low == plane && high == plane {
            return self.leaf_without(triangle, below, part).and(self.leaf_without(triangle, above, part));
        }
        let straddles = is_below(low, high, plane) && is_above(high, plane);
        if !straddles {
            return self.leaf_without(triangle, if is_above(high, plane) { above } else { below }, part);
        }
        let parts = [false, true].map(|is_above| clipped(corners, part, axis, plane, is_above));
        let mut children = [below, above].into_iter().zip(parts).filter(|(_, part)| !part.is_empty());
        children.find_map(|(child, part)| self.leaf_without(triangle, child, part))
    }
}
