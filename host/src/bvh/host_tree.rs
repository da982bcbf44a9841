//! A hierarchy in host memory.

use crate::error::{Error, Result};
use crate::rays::RayOptions;
use crate::rays::cpu::{HostScene, VecStack};
use kauri_kernels::bvh::leaf::{Leaf, LeafTriangle};
use kauri_kernels::bvh::node::{Node, Plane, WIDTH};
use kauri_kernels::bvh::refit::box_of;
use kauri_kernels::bvh::scene::Scene;
use kauri_kernels::bvh::subtree::Subtree;
use kauri_kernels::bvh::traversal::BvhTraversal;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::rays::hits::HitVisitor;
use kauri_kernels::rays::ray::Ray;
use kauri_kernels::rays::tracing::traverse;

/// A hierarchy in host memory.
pub(super) struct HostTree<L> {
    pub(super) extent: Extent,
    /// None if there are no items.
    pub(super) root: Subtree,
    /// The number of levels of nodes.
    pub(super) height: u32,
    pub(super) nodes: Vec<Node>,
    /// The items of all leaves.
    pub(super) items: Vec<L>,
}

impl<L: Leaf> Scene for &HostTree<L> {
    type Leaf = L;
    unsafe fn extent(&self) -> Extent {
        self.extent
    }
    unsafe fn root(&self) -> Subtree {
        self.root
    }
    unsafe fn node(&self, node: u32) -> Node {
        self.nodes[node as usize]
    }
    unsafe fn children(&self, node: u32) -> [Subtree; WIDTH] {
        self.nodes[node as usize].children
    }
    unsafe fn plane(&self, node: u32, axis: usize, side: usize) -> Plane {
        self.nodes[node as usize].planes[axis][side]
    }
    unsafe fn item(&self, place: u32) -> L {
        self.items[place as usize]
    }
    unsafe fn part(&self, place: u32, part: u32) -> [u32; 4] {
        bytemuck::cast_slice::<L, [u32; 4]>(&self.items[place as usize..][..1])[part as usize]
    }
}

impl HostScene for HostTree<LeafTriangle> {
    fn trace(&self, ray: &Ray, visitor: &mut impl HitVisitor, _: &RayOptions) {
        // SAFETY: reads of the hierarchy are bounds-checked, and the stack grows.
        unsafe { traverse(&mut BvhTraversal::new(self, VecStack::new()), ray, visitor) }
    }
}

impl<L: Leaf> HostTree<L> {
    /// Returns the children of a node with their boxes.
    fn children(&self, node: usize) -> impl Iterator<Item = (Subtree, Aabb)> {
        let node = self.nodes[node];
        (0..WIDTH)
            .map(move |i| (node.children[i], node.bounds(i)))
            .filter(|(child, _)| *child != Subtree::NONE)
    }

    /// Checks that each node has one parent, each item is in one leaf, and each box is that of its items.
    pub(super) fn verify(&self) -> Result<()> {
        let corrupt = |node: u32, what: String| Err(Error::corrupt(node as usize, what));
        let (mut is_seen, mut is_listed) = (vec![false; self.nodes.len()], vec![false; self.items.len()]);
        // Nodes after their parents; then, in reverse, the boxes of all.
        let mut order = Vec::new();
        let mut stack = if self.root == Subtree::NONE { vec![] } else { vec![(self.root, 0)] };
        while let Some((subtree, level)) = stack.pop() {
            let Some(few) = subtree.num_few() else {
                let node = subtree.index();
                match is_seen.get_mut(node as usize) {
                    Some(is_seen) if !*is_seen => *is_seen = true,
                    Some(_) => return corrupt(node, "it has two parents".to_owned()),
                    None => return corrupt(node, format!("there are {} nodes", self.nodes.len())),
                }
                if level >= self.height {
                    return corrupt(node, format!("it is at level {level} of {}", self.height));
                }
                order.push(node);
                stack.extend(self.children(node as usize).map(|(child, _)| (child, level + 1)));
                continue;
            };
            for place in subtree.index()..subtree.index() + few {
                let id = self.items.get(place as usize).map(|item| item.id() as usize);
                match id.and_then(|id| is_listed.get_mut(id)) {
                    Some(is_listed) if !*is_listed => *is_listed = true,
                    _ => return corrupt(0, format!("item {place} of the leaves is {id:?}")),
                }
            }
        }
        if let Some(node) = is_seen.iter().position(|is_seen| !is_seen) {
            return corrupt(node as u32, "it has no parent".to_owned());
        }
        if let Some(id) = is_listed.iter().position(|is_listed| !is_listed) {
            return corrupt(0, format!("no leaf has item {id}"));
        }
        let mut bounds = vec![Aabb::EMPTY; self.nodes.len()];
        for &node in order.iter().rev() {
            let mut all = Aabb::EMPTY;
            for (child, stored) in self.children(node as usize) {
                let found = match child.num_few() {
                    None => bounds[child.index() as usize],
                    Some(few) => box_of(few, |i| self.items[(child.index() + i) as usize]),
                };
                if stored != found {
                    return corrupt(node, format!("the box of child {child:?} is {stored:?}, not {found:?}"));
                }
                all = all.union(found);
            }
            bounds[node as usize] = all;
        }
        Ok(())
    }

    /// Returns the average cost of a ray that hits the box of all items: tests of boxes and of items, each weighted by the surface
    /// of the box that it is in, relative to that of all.
    pub(super) fn cost(&self) -> f64 {
        let area = |of: Aabb| {
            let [x, y, z] = of.extents().map(f64::from);
            x * y + y * z + z * x
        };
        let all = area(self.extent.bounds);
        if self.root == Subtree::NONE || all == 0.0 {
            return self.items.len() as f64;
        }
        let (mut cost, mut stack) = (0.0, vec![(self.root, self.extent.bounds)]);
        while let Some((subtree, bounds)) = stack.pop() {
            let tests = match subtree.num_few() {
                Some(few) => few as usize,
                None => {
                    stack.extend(self.children(subtree.index() as usize));
                    self.children(subtree.index() as usize).count()
                }
            };
            cost += area(bounds) / all * tests as f64;
        }
        cost
    }

    /// Returns a number that depends on every bit (FNV-1a).
    pub(super) fn fingerprint(&self) -> u64 {
        let root = [self.root.0, self.height];
        let bytes: [&[u8]; 3] = [
            bytemuck::cast_slice(&root),
            bytemuck::cast_slice(&self.nodes),
            bytemuck::cast_slice(&self.items),
        ];
        let hash = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        bytes.into_iter().flatten().fold(0xCBF2_9CE4_8422_2325, hash)
    }
}
