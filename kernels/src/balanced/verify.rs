//! Checks a balanced tree by subtrees of some levels, whose points are fetched once, with those of the ancestors of each root.

use super::{NONE, Run};
use crate::query::left_balanced::full_tree;
use crate::thread::coord::Coord;
use crate::thread::measure::MAX_DIMS;
use cuda_std::prelude::*;

/// What can be wrong with a node; the value is stored beside its place in the medians.
pub mod wrong {
    /// There is a node where there is to be none, or none where there is to be one.
    pub const SHAPE: u32 = 1;
    /// The id is not that of a point.
    pub const ID_RANGE: u32 = 2;
    /// Another node has the same point.
    pub const DUPLICATE_ID: u32 = 3;
    /// A child is not the one that is stored at its address.
    pub const CHILD: u32 = 4;
    /// The point is on the wrong side of an ancestor, or equal to it.
    pub const SIDE: u32 = 5;
}

/// Levels of the subtrees that a block checks.
pub const LEVELS: u32 = 8;
/// Threads of a block, one a node and one more.
const THREADS: usize = 1 << LEVELS;
/// Levels above a subtree at most.
const MAX_ABOVE: usize = 32;

/// Shared memory of a subtree, whose nodes are numbered from 1 at the root.
#[repr(C, align(16))]
pub struct VerifySmem<C> {
    /// The coordinates of each node, and behind them those of the ancestors of the root, by level.
    coords: [C; (THREADS + MAX_ABOVE) * MAX_DIMS],
    /// Their ids, or [`NONE`] of what is no point.
    ids: [u32; THREADS + MAX_ABOVE],
}

/// Checks the addresses of the levels `begin..end`, up to [`LEVELS`], a block a subtree of the first of them: that there is a node if its run
/// has points, of a point that is no other node's, with the children stored below it, if there are any, and on its side of every ancestor
/// by the super key of that one's level: which it is, if it is on that of the last one on each side of each axis, and they are. `children` has
/// two of each point in a word, the less one in the lower half. `seen` holds a zero bit a point; the smallest (place, what is wrong) goes to
/// `finding`, which starts at `u64::MAX`, and how many nodes there are is the sum of `counts`, which start at 0.
#[kernel(family = "balanced", block = THREADS, shared = VerifySmem<C>)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_verify<C: Coord>(
    coords: Slice<C>,
    num_points: u32,
    dims: u32,
    medians: Slice<u32>,
    children: Slice<u64>,
    num_nodes: u32,
    begin: u32,
    end: u32,
    seen: SliceMut<u32>,
    finding: SliceMut<u64>,
    counts: SliceMut<u64>,
) {
    let (root, smem) = (thread::block_idx_x(), shared_mem());
    let every = warp::warp_vote_ballot(warp::FULL_MASK, warp::lane_id().is_multiple_of(dims));
    let subtree =
        Subtree { coords, num_points, dims, every, medians, children, num_nodes, begin, root, smem };
    subtree.load_ancestor();
    // The first thread has no node.
    let node = thread::thread_idx_x();
    let depth = if node == 0 { LEVELS } else { depth_of(node) };
    let is_there = begin + depth < end;
    let (place, id) = if is_there { subtree.load(node) } else { (0, NONE) };
    subtree.store(node as usize, id);
    thread::sync_threads();
    subtree.fetch_points();
    thread::sync_threads();
    if is_there {
        let what = subtree.check(node, place, id, seen);
        if what != 0 {
            let found = u64::from(place) << 32 | u64::from(what);
            finding.atomic_min(0, found, Ordering::Relaxed, Scope::Device);
        }
    }
    let nodes = warp::warp_vote_ballot(warp::FULL_MASK, id != NONE).count_ones();
    if warp::lane_id() == 0 && nodes > 0 {
        // One word for all would be what everybody waits for.
        let own = thread::block_idx_x() as usize % counts.len();
        counts.atomic_add(own, u64::from(nodes), Ordering::Relaxed, Scope::Device);
    }
}

/// Depth of a node below the root of its subtree.
#[inline(always)]
fn depth_of(node: u32) -> u32 {
    31 - node.leading_zeros()
}

struct Subtree<'a, C> {
    coords: Slice<'a, C>,
    num_points: u32,
    dims: u32,
    /// A bit that is set, and then every one that is `dims` from it.
    every: u32,
    medians: Slice<'a, u32>,
    children: Slice<'a, u64>,
    num_nodes: u32,
    /// The level of the root, and its address.
    begin: u32,
    root: u32,
    smem: *mut VerifySmem<C>,
}

impl<C: Coord> Subtree<'_, C> {
    /// Brings an ancestor of the root to shared memory, if the thread's number is a level above.
    #[inline(always)]
    unsafe fn load_ancestor(&self) {
        let above = thread::thread_idx_x();
        if above < self.begin {
            let address = self.root >> (self.begin - above);
            self.store(THREADS + above as usize, self.medians.load((full_tree(above) + address) as usize));
        }
    }

    /// The place of a node and its id.
    #[inline(always)]
    unsafe fn load(&self, node: u32) -> (u32, u32) {
        let depth = depth_of(node);
        let address = (self.root << depth) + (node - (1 << depth));
        let place = full_tree(self.begin + depth) + address;
        (place, self.medians.load(place as usize))
    }

    #[inline(always)]
    unsafe fn store(&self, slot: usize, id: u32) {
        shared_field!(self.smem, ids).store(slot, if self.is_point(id) { id } else { NONE });
    }

    /// Brings the coordinates of all nodes and ancestors to shared memory: neighboring threads those of a point.
    #[inline(always)]
    unsafe fn fetch_points(&self) {
        let (dims, thread) = (self.dims, thread::thread_idx_x());
        let (slots, axes) = (THREADS as u32 / dims, THREADS as u32 % dims);
        let (mut slot, mut axis) = (thread / dims, thread % dims);
        while slot < THREADS as u32 + self.begin {
            let id = shared_field!(self.smem, ids).load(slot as usize);
            if id != NONE {
                let coord = self.coords.load(id as usize * dims as usize + axis as usize);
                shared_field!(self.smem, coords).store((slot * dims + axis) as usize, coord);
            }
            (slot, axis) = (slot + slots, axis + axes);
            if axis >= dims {
                (slot, axis) = (slot + 1, axis - dims);
            }
        }
    }

    #[inline(always)]
    fn is_point(&self, id: u32) -> bool {
        id < self.num_points
    }

    #[inline(always)]
    unsafe fn check(&self, node: u32, place: u32, id: u32, seen: SliceMut<'_, u32>) -> u32 {
        let level = self.begin + depth_of(node);
        let address = place - full_tree(level);
        if (Run::len_of(address, level, self.num_nodes) == 0) != (id == NONE) {
            return wrong::SHAPE;
        }
        if id == NONE {
            return 0;
        }
        if !self.is_point(id) {
            return wrong::ID_RANGE;
        }
        let bit = 1 << (id % 32);
        if seen.atomic_or(id as usize / 32, bit, Ordering::Relaxed, Scope::Device) & bit != 0 {
            return wrong::DUPLICATE_ID;
        }
        if !self.children.is_empty() {
            let child = |side: usize| {
                let below = 2 * place as usize + 1 + side;
                if below < self.medians.len() { self.medians.load(below) } else { NONE }
            };
            if self.children.load(id as usize) != u64::from(child(1)) << 32 | u64::from(child(0)) {
                return wrong::CHILD;
            }
        }
        // A bit a level above, from the lowest on: 1 where the node is greater.
        let (less, greater) = (!address & ((1 << level) - 1), address);
        let (mut axis, mut first) = (0, if level == 0 { 0 } else { (level - 1) % self.dims });
        while axis < self.dims {
            let of_axis = self.every << first;
            let is_right = |ways: u32, is_greater: bool| {
                ways & of_axis == 0
                    || self.is_beside(node, level, axis, (ways & of_axis).trailing_zeros(), is_greater)
            };
            if !is_right(less, false) || !is_right(greater, true) {
                return wrong::SIDE;
            }
            axis += 1;
            first = if first == 0 { self.dims - 1 } else { first - 1 };
        }
        0
    }

    /// True if a node is on a side, on an axis, of its ancestor so many levels and one above.
    #[inline(always)]
    unsafe fn is_beside(&self, node: u32, level: u32, axis: u32, between: u32, is_greater: bool) -> bool {
        let above = level - 1 - between;
        let ancestor = if above < self.begin {
            (THREADS as u32 + above) as usize
        } else {
            (node >> (between + 1)) as usize
        };
        let node = node as usize;
        let (first, last) = if is_greater { (ancestor, node) } else { (node, ancestor) };
        shared_field!(self.smem, ids).load(ancestor) != NONE && self.is_less(first, last, axis)
    }

    /// True if one comes before the other by the super key of an axis.
    #[inline(always)]
    unsafe fn is_less(&self, first: usize, last: usize, axis: u32) -> bool {
        let (coords, dims) = (shared_field!(self.smem, coords), self.dims as usize);
        let (mut at, mut left) = (axis as usize, dims);
        while left > 0 {
            let (a, b) = (coords.load(first * dims + at).key(), coords.load(last * dims + at).key());
            if a != b {
                return a < b;
            }
            at = if at + 1 == dims { 0 } else { at + 1 };
            left -= 1;
        }
        false
    }
}
