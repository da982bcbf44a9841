//! A tree for triangles that have moved: planes go with the box of everything, and leaves are filled anew.

use super::aabb::{Aabb, of_axis};
use super::extent::Extent;
use super::model::{is_above, is_below};
use super::node::Node;
use crate::policy::PER_ITEM_THREADS;
use cuda_std::prelude::*;

/// The node with its plane as far in the new box as it was in the old one. Planes never change places: what is rounded here goes up or stays where
/// planes do.
#[inline(always)]
pub fn moved(node: Node, old: Aabb, new: Aabb) -> Node {
    if node.is_leaf() {
        return node;
    }
    let axis = node.axis();
    let (from, to) = (of_axis(old.extents(), axis), of_axis(new.extents(), axis));
    let scale = if from > 0.0 { to / from } else { 0.0 };
    let plane = of_axis(new.low, axis) + (node.plane() - of_axis(old.low, axis)) * scale;
    Node::inner(axis, plane.min(of_axis(new.high, axis)), node.above())
}

/// Finds the leaves that a triangle's box reaches into, in preorder; from the root down for each of them.
#[inline(always)]
pub fn each_leaf(node: impl Fn(u32) -> Node, bounds: Aabb, mut found: impl FnMut(u32)) {
    // Of each level: 1 if nothing is left to do above the plane. The highest bit is the root's.
    let mut trail = 0u64;
    loop {
        let (mut place, mut level) = (0, 1u64 << 63);
        let mut own = node(place);
        while !own.is_leaf() {
            let (axis, plane) = (own.axis(), own.plane());
            let (low, high) = (of_axis(bounds.low, axis), of_axis(bounds.high, axis));
            let (below, above) = (is_below(low, high, plane), is_above(high, plane));
            let goes_above = above && (!below || trail & level != 0);
            trail |= if below && above { 0 } else { level };
            place = if goes_above { own.above() } else { place + 1 };
            level >>= 1;
            own = node(place);
        }
        found(place);
        let parent = level << 1;
        match trail.checked_add(parent) {
            Some(next) if parent != 0 => trail = next,
            _ => return,
        }
    }
}

/// Writes nodes with their planes where they are in the new box; a thread a node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_move_planes(nodes: Slice<u64>, old: Slice<Extent>, new: Slice<Extent>, to: SliceMut<u64>) {
    let i = thread::index_1d_u64() as usize;
    if i < to.len() {
        to.store(i, moved(Node(nodes.load(i)), old.load(0).bounds, new.load(0).bounds).0);
    }
}

/// Counts the triangles of each leaf; a thread a triangle. There is a count for each node.
#[kernel(family = "sah", block = PER_ITEM_THREADS, hot)]
pub unsafe fn sah_count_listed(nodes: Slice<u64>, boxes: Slice<Aabb>, counts: SliceMut<u64>) {
    let i = thread::index_1d_u64() as usize;
    if i < boxes.len() {
        each_leaf(
            |node| Node(nodes.load(node as usize)),
            boxes.load(i),
            |leaf| {
                counts.atomic_add(leaf as usize, 1, Ordering::Relaxed, Scope::Device);
            },
        );
    }
}

/// Lists the triangles of each leaf from its offset on, in any order; a thread a triangle. `counts` are zeros.
#[kernel(family = "sah", block = PER_ITEM_THREADS, hot)]
pub unsafe fn sah_list(
    nodes: Slice<u64>,
    boxes: Slice<Aabb>,
    offsets: Slice<u64>,
    counts: SliceMut<u64>,
    listed: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    if i < boxes.len() {
        each_leaf(
            |node| Node(nodes.load(node as usize)),
            boxes.load(i),
            |leaf| {
                let before = counts.atomic_add(leaf as usize, 1, Ordering::Relaxed, Scope::Device);
                listed.store((offsets.load(leaf as usize) + before) as usize, i as u32);
            },
        );
    }
}

/// Writes what leaves have, given where the triangles of each begin; a thread a node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_fill_leaves(offsets: Slice<u64>, nodes: SliceMut<u64>) {
    let i = thread::index_1d_u64() as usize;
    if i < nodes.len() && Node(nodes.load(i)).is_leaf() {
        let (begin, end) = (offsets.load(i), offsets.load(i + 1));
        nodes.store(i, Node::leaf(begin as u32, (end - begin) as u32).0);
    }
}
