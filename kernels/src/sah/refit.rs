//! Refit: split planes move with the scene's bounding box, and leaves are filled again.

use super::cost::{reaches_above, reaches_below};
use super::node::Node;
use crate::policy::PER_ITEM_THREADS;
use crate::rays::aabb::{Aabb, component};
use crate::rays::extent::Extent;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Moves the plane of a node to the same relative position in the new box. Rounding is monotonic, so planes never change
/// order.
#[inline(always)]
pub fn refit_node(node: Node, old: Aabb, new: Aabb) -> Node {
    if node.is_leaf() {
        return node;
    }
    let axis = node.axis();
    let (from, to) = (component(old.extents(), axis), component(new.extents(), axis));
    let scale = if from > 0.0 { to / from } else { 0.0 };
    let plane = component(new.low, axis) + (node.plane() - component(old.low, axis)) * scale;
    Node::inner(axis, plane.min(component(new.high, axis)), node.above())
}

/// Visits the leaves that a triangle's bounding box reaches, in preorder. Each leaf takes a descent from the root.
#[inline(always)]
pub fn each_leaf(node: impl Fn(u32) -> Node, bounds: Aabb, mut visit: impl FnMut(u32)) {
    // One bit per level, the root's the highest: 1 if the subtree above the plane is done.
    let mut trail = 0u64;
    loop {
        let (mut index, mut level) = (0, 1u64 << 63);
        let mut current = node(index);
        while !current.is_leaf() {
            let (axis, plane) = (current.axis(), current.plane());
            let (low, high) = (component(bounds.low, axis), component(bounds.high, axis));
            let (below, above) = (reaches_below(low, high, plane), reaches_above(high, plane));
            let goes_above = above && (!below || trail & level != 0);
            trail |= if below && above { 0 } else { level };
            index = if goes_above { current.above() } else { index + 1 };
            level >>= 1;
            current = node(index);
        }
        visit(index);
        let parent = level << 1;
        match trail.checked_add(parent) {
            Some(next) if parent != 0 => trail = next,
            _ => return,
        }
    }
}

/// Writes the nodes with their planes moved to the new box; one thread per node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_move_planes(nodes: Slice<u64>, old: Slice<Extent>, new: Slice<Extent>, to: SliceMut<u64>) {
    let Some(i) = own_item(to.len()) else { return };
    to.store(i, refit_node(Node(nodes.load(i)), old.load(0).bounds, new.load(0).bounds).0);
}

/// Visits the leaves that the bounding box of the thread's triangle reaches, with the triangle and the leaf.
#[inline(always)]
unsafe fn each_leaf_of_thread(
    nodes: Slice<'_, u64>,
    boxes: Slice<'_, Aabb>,
    mut visit: impl FnMut(u32, usize),
) {
    let Some(i) = own_item(boxes.len()) else { return };
    let node = |node: u32| Node(nodes.load(node as usize));
    each_leaf(node, boxes.load(i), |leaf| visit(i as u32, leaf as usize));
}

/// Counts the references of each leaf; one thread per triangle. `counts` has an element for each node.
#[kernel(family = "sah", block = PER_ITEM_THREADS, hot)]
pub unsafe fn sah_count_listed(nodes: Slice<u64>, boxes: Slice<Aabb>, counts: SliceMut<u64>) {
    each_leaf_of_thread(nodes, boxes, |_, leaf| {
        counts.atomic_add(leaf, 1, Ordering::Relaxed, Scope::Device);
    });
}

/// Writes the references of each leaf from its offset on, in nondeterministic order; one thread per triangle. `counts` must
/// be zero.
#[kernel(family = "sah", block = PER_ITEM_THREADS, hot)]
pub unsafe fn sah_list(
    nodes: Slice<u64>,
    boxes: Slice<Aabb>,
    offsets: Slice<u64>,
    counts: SliceMut<u64>,
    listed: SliceMut<u32>,
) {
    each_leaf_of_thread(nodes, boxes, |triangle, leaf| {
        let before = counts.atomic_add(leaf, 1, Ordering::Relaxed, Scope::Device);
        listed.store((offsets.load(leaf) + before) as usize, triangle);
    });
}

/// Writes first reference and length of each leaf, given the offsets; one thread per node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_fill_leaves(offsets: Slice<u64>, nodes: SliceMut<u64>) {
    let i = thread::index_1d_u64() as usize;
    if i < nodes.len() && Node(nodes.load(i)).is_leaf() {
        let (begin, end) = (offsets.load(i), offsets.load(i + 1));
        nodes.store(i, Node::leaf(begin as u32, (end - begin) as u32).0);
    }
}
