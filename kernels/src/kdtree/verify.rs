//! The check that a tree is the left-balanced tree of its points.

use super::axes::Cell;
use crate::policy::PER_ITEM_THREADS;
use crate::query::left_balanced::{in_order_rank, parent};
use crate::thread::coord::Coord;
use crate::thread::measure::MAX_DIMS;
use cuda_std::prelude::*;

/// Kinds of errors of a node. The finding holds the kind and the node.
pub mod wrong {
    /// The id is not the id of a point.
    pub const ID_RANGE: u32 = 1;
    /// Another node has the same id.
    pub const DUPLICATE_ID: u32 = 2;
    /// The point is on the wrong side of an ancestor.
    pub const SIDE: u32 = 3;
    /// The node does not split on the widest axis of its cell.
    pub const AXIS: u32 = 4;
}

/// Checks every node: its id is in `0..n` and occurs once; it is on the correct side of every ancestor by (coordinate, id); and, if nodes
/// have axes of their own, it splits on the widest axis of its cell. `seen` has n items, initialized to 0. The least (node, kind of error) is written to `finding`, which is initialized to `u64::MAX`. One thread per
/// node.
#[kernel(family = "kdtree", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_verify<C: Coord>(tree: CheckedTree<'_, C>, seen: SliceMut<u32>, finding: SliceMut<u64>) {
    let node = thread::index_1d_u64();
    if node < tree.ids.len() as u64 {
        let what = tree.check(node as u32, seen);
        if what != 0 {
            finding.atomic_min(0, node << 32 | u64::from(what), Ordering::Relaxed, Scope::Device);
        }
    }
}

/// A tree to be checked, in in-order sequence.
#[derive(Clone, Copy, KernelArgs)]
pub struct CheckedTree<'a, C> {
    /// The coordinates of the nodes, point after point.
    pub coords: Slice<'a, C>,
    /// The ids of the nodes.
    pub ids: Slice<'a, u32>,
    /// The split axes of the nodes.
    pub axes: crate::query::axes::Axes<'a>,
    /// The bounding box of all points, the low corner first; empty if levels split on axes in turn.
    pub corners: Slice<'a, C>,
}

impl<C: Coord> CheckedTree<'_, C> {
    #[inline(always)]
    fn dims(&self) -> usize {
        self.axes.dims as usize
    }

    #[inline(always)]
    unsafe fn check(&self, node: u32, seen: SliceMut<'_, u32>) -> u32 {
        let id = self.ids.load(self.rank(node));
        if id as usize >= seen.len() {
            return wrong::ID_RANGE;
        }
        if seen.atomic_exchange(id as usize, 1, Ordering::Relaxed, Scope::Device) != 0 {
            return wrong::DUPLICATE_ID;
        }
        let mut child = node;
        while child != 0 {
            let ancestor = parent(child);
            let axis = self.axis(ancestor);
            let is_left = child == 2 * ancestor + 1;
            if self.is_before(node, ancestor, axis) != is_left {
                return wrong::SIDE;
            }
            child = ancestor;
        }
        if (node as usize) < self.axes.axes.len()
            && self.axes.of(node, self.axes.cycle()) != self.widest_axis(node)
        {
            return wrong::AXIS;
        }
        0
    }

    /// Returns the split axis of a node; 0 if the stored axis is invalid.
    #[inline(always)]
    unsafe fn axis(&self, node: u32) -> usize {
        let axis = self.axes.of(node, self.axes.cycle());
        if axis < self.dims() { axis } else { 0 }
    }

    /// Returns the widest axis of the cell of a node.
    #[inline(always)]
    unsafe fn widest_axis(&self, node: u32) -> usize {
        let plane = |code: u32| {
            let axis = self.axis(code - 1);
            (axis, self.coords.load(self.rank(code - 1) * self.dims() + axis))
        };
        let cell = Cell::<C, MAX_DIMS>::load(self.corners, self.dims());
        cell.of_descendant(1, node + 1, plane).widest(self.dims())
    }

    /// Returns the in-order rank of a node, where its point is stored.
    #[inline(always)]
    fn rank(&self, node: u32) -> usize {
        in_order_rank(node, self.ids.len() as u32) as usize
    }

    /// Returns true if node `a` comes before node `b` on an axis, by (coordinate, id).
    #[inline(always)]
    unsafe fn is_before(&self, a: u32, b: u32, axis: usize) -> bool {
        let (a, b) = (self.rank(a), self.rank(b));
        let key = |rank: usize| self.coords.load(rank * self.dims() + axis).key();
        let (key_a, key_b) = (key(a), key(b));
        key_a < key_b || (key_a == key_b && self.ids.load(a) < self.ids.load(b))
    }
}
