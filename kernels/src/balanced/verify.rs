//! The check of a balanced tree. A block checks a subtree of a few levels. It loads each point of the subtree and of the ancestors of its
//! root once.

use super::{NONE, Run, Tree};
use crate::query::left_balanced::full_tree;
use crate::thread::coord::Float;
use crate::thread::measure::MAX_DIMS;
use cuda_std::prelude::*;

/// Kinds of errors of a node. The finding holds the kind, and the index of the node in the medians.
pub mod wrong {
    /// There is a node where the run is empty, or no node where it is not.
    pub const SHAPE: u32 = 1;
    /// The id is not the id of a point.
    pub const ID_RANGE: u32 = 2;
    /// Another node has the same point.
    pub const DUPLICATE_ID: u32 = 3;
    /// A stored child differs from the median at its address.
    pub const CHILD: u32 = 4;
    /// The point is on the wrong side of an ancestor, or equals it.
    pub const SIDE: u32 = 5;
}

/// Number of levels of the subtree that a block checks.
pub const LEVELS: u32 = 8;
/// Threads of a block: one per node, and one more.
const THREADS: usize = 1 << LEVELS;
/// Maximum number of levels above a subtree.
const MAX_ABOVE: usize = 32;

/// Shared memory of a subtree. Its root is node 1; node `i` has the children `2 i` and `2 i + 1`.
#[repr(C, align(16))]
pub struct VerifySmem<C> {
    /// The coordinates of each node, then those of the ancestors of the root, by level.
    coords: [C; (THREADS + MAX_ABOVE) * MAX_DIMS],
    /// The ids of the nodes and ancestors; [`NONE`] if the id is not the id of a point.
    ids: [u32; THREADS + MAX_ABOVE],
}

/// Checks the addresses of the levels `begin..end`, at most [`LEVELS`]. One block per subtree that starts on level `begin`. The checks:
///
/// - An address has a node exactly if its run is not empty, and no two nodes have the same point.
/// - The children of a node, if `children` is not empty, equal the medians below it. A word of `children` holds the two children of a
///   point, the less child in the lower half.
/// - The node is on the correct side of every ancestor, by the super key of the level of that ancestor. It suffices to compare it with the
///   nearest ancestor on each side of each axis, because the ancestors are checked too.
///
/// `seen` has one bit per point, initialized to 0. The least (index in the medians, kind of error) is written to `finding`, which is
/// initialized to `u64::MAX`. The sum of `counts`, which are initialized to 0, is the number of nodes.
#[kernel(family = "balanced", block = THREADS, shared = VerifySmem<C>)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_verify<C: Float>(
    tree: Tree<'_, C>,
    num_points: u32,
    children: Slice<u64>,
    begin: u32,
    end: u32,
    seen: SliceMut<u32>,
    finding: SliceMut<u64>,
    counts: SliceMut<u64>,
) {
    let (root, smem) = (thread::block_idx_x(), shared_mem());
    let every = warp::warp_vote_ballot(warp::FULL_MASK, warp::lane_id().is_multiple_of(tree.dims));
    let subtree = Subtree { tree, num_points, every, children, begin, root, smem };
    subtree.load_ancestor();
    // Thread 0 has no node.
    let node = thread::thread_idx_x();
    let depth = if node == 0 { LEVELS } else { depth_of(node) };
    let exists = begin + depth < end;
    let (slot, id) = if exists { subtree.load(node) } else { (0, NONE) };
    subtree.store(node as usize, id);
    thread::sync_threads();
    subtree.fetch_points();
    thread::sync_threads();
    if exists {
        let what = subtree.check(node, slot, id, seen);
        if what != 0 {
            let found = u64::from(slot) << 32 | u64::from(what);
            finding.atomic_min(0, found, Ordering::Relaxed, Scope::Device);
        }
    }
    let nodes = warp::warp_vote_ballot(warp::FULL_MASK, id != NONE).count_ones();
    if warp::lane_id() == 0 && nodes > 0 {
        // Several words, so that blocks rarely contend for one.
        let word = thread::block_idx_x() as usize % counts.len();
        counts.atomic_add(word, u64::from(nodes), Ordering::Relaxed, Scope::Device);
    }
}

/// Returns the depth of a node below the root of the subtree.
#[inline(always)]
fn depth_of(node: u32) -> u32 {
    31 - node.leading_zeros()
}

struct Subtree<'a, C> {
    tree: Tree<'a, C>,
    num_points: u32,
    /// A mask of every `dims`-th bit, from bit 0 on: the levels of one axis.
    every: u32,
    children: Slice<'a, u64>,
    /// The level and the address of the root.
    begin: u32,
    root: u32,
    smem: *mut VerifySmem<C>,
}

impl<C: Float> Subtree<'_, C> {
    /// Loads an ancestor of the root: thread `i` loads the one on level `i`, if that is above the root.
    #[inline(always)]
    unsafe fn load_ancestor(&self) {
        let above = thread::thread_idx_x();
        if above < self.begin {
            let address = self.root >> (self.begin - above);
            self.store(
                THREADS + above as usize,
                self.tree.medians.load((full_tree(above) + address) as usize),
            );
        }
    }

    /// Returns the index of a node in the medians, and its id.
    #[inline(always)]
    unsafe fn load(&self, node: u32) -> (u32, u32) {
        let depth = depth_of(node);
        let address = (self.root << depth) + (node - (1 << depth));
        let slot = full_tree(self.begin + depth) + address;
        (slot, self.tree.medians.load(slot as usize))
    }

    #[inline(always)]
    unsafe fn store(&self, slot: usize, id: u32) {
        shared_field!(self.smem, ids).store(slot, if self.is_point(id) { id } else { NONE });
    }

    /// Loads the coordinates of all nodes and ancestors to shared memory. Adjacent threads load the coordinates of one point.
    #[inline(always)]
    unsafe fn fetch_points(&self) {
        let (dims, thread) = (self.tree.dims, thread::thread_idx_x());
        let (slots, axes) = (THREADS as u32 / dims, THREADS as u32 % dims);
        let (mut slot, mut axis) = (thread / dims, thread % dims);
        while slot < THREADS as u32 + self.begin {
            let id = shared_field!(self.smem, ids).load(slot as usize);
            if id != NONE {
                let coord = self.tree.coords.load(id as usize * dims as usize + axis as usize);
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
    unsafe fn check(&self, node: u32, slot: u32, id: u32, seen: SliceMut<'_, u32>) -> u32 {
        let level = self.begin + depth_of(node);
        let address = slot - full_tree(level);
        if (Run::len_of(address, level, self.tree.num_nodes) == 0) != (id == NONE) {
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
                let below = 2 * slot as usize + 1 + side;
                if below < self.tree.medians.len() { self.tree.medians.load(below) } else { NONE }
            };
            if self.children.load(id as usize) != u64::from(child(1)) << 32 | u64::from(child(0)) {
                return wrong::CHILD;
            }
        }
        // One bit per level above, the parent's level lowest: 1 in `greater` where the node is on the greater side.
        let (less, greater) = (!address & ((1 << level) - 1), address);
        let (mut axis, mut first) = (0, if level == 0 { 0 } else { (level - 1) % self.tree.dims });
        while axis < self.tree.dims {
            let axis_levels = self.every << first;
            let is_right = |directions: u32, is_greater: bool| {
                directions & axis_levels == 0
                    || self.is_on_side(
                        node,
                        level,
                        axis,
                        (directions & axis_levels).trailing_zeros(),
                        is_greater,
                    )
            };
            if !is_right(less, false) || !is_right(greater, true) {
                return wrong::SIDE;
            }
            axis += 1;
            first = if first == 0 { self.tree.dims - 1 } else { first - 1 };
        }
        0
    }

    /// Returns true if a node is on a side, on an axis, of its ancestor `between + 1` levels above.
    #[inline(always)]
    unsafe fn is_on_side(&self, node: u32, level: u32, axis: u32, between: u32, is_greater: bool) -> bool {
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

    /// Returns true if slot `first` comes before slot `last` by the super key of an axis.
    #[inline(always)]
    unsafe fn is_less(&self, first: usize, last: usize, axis: u32) -> bool {
        let (coords, dims) = (shared_field!(self.smem, coords), self.tree.dims as usize);
        let (mut at, mut remaining) = (axis as usize, dims);
        while remaining > 0 {
            let (a, b) = (coords.load(first * dims + at).key(), coords.load(last * dims + at).key());
            if a != b {
                return a < b;
            }
            at = if at + 1 == dims { 0 } else { at + 1 };
            remaining -= 1;
        }
        false
    }
}
