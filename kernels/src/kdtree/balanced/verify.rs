//! Checks a balanced tree level by level.

use super::{NONE, Run, is_before, points_on_level};
use crate::kdtree::left_balanced::{full_tree, level};
use crate::policy::PER_ITEM_THREADS;
use crate::thread::coord::Coord;
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

/// Checks every address of every level, a thread each: that there is a node if its run has points, of a point that is no other node's,
/// with the children stored below it, if there are any, and on its side of every ancestor by the super key of that one's level: which it is, if it is on
/// that of the last one on each side of each axis, and they are. `seen` holds a zero bit a point; the smallest (place, what is wrong)
/// goes to `finding`, which starts at `u64::MAX`, and how many nodes there are is the sum of `counts`, which start at 0.
#[kernel(family = "kdtree-balanced", block = PER_ITEM_THREADS)]
#[instance(f32)]
#[instance(f64)]
pub unsafe fn kdtree_verify_balanced<C: Coord>(
    coords: Slice<C>,
    dims: u32,
    medians: Slice<u32>,
    children: Slice<u32>,
    num_nodes: u32,
    seen: SliceMut<u32>,
    finding: SliceMut<u64>,
    counts: SliceMut<u64>,
) {
    let place = thread::index_1d_u64();
    let mut is_node = false;
    if place < medians.len() as u64 {
        let what = Tree { coords, dims, medians, children, num_nodes }.check(place as u32, seen);
        if what != 0 {
            finding.atomic_min(0, place << 32 | u64::from(what), Ordering::Relaxed, Scope::Device);
        }
        is_node = medians.load(place as usize) != NONE;
    }
    let nodes = warp::warp_vote_ballot(warp::FULL_MASK, is_node).count_ones();
    if warp::lane_id() == 0 && nodes > 0 {
        // One word for all would be what everybody waits for.
        let own = thread::block_idx_x() as usize % counts.len();
        counts.atomic_add(own, u64::from(nodes), Ordering::Relaxed, Scope::Device);
    }
}

struct Tree<'a, C> {
    coords: Slice<'a, C>,
    dims: u32,
    medians: Slice<'a, u32>,
    children: Slice<'a, u32>,
    num_nodes: u32,
}

impl<C: Coord> Tree<'_, C> {
    #[inline(always)]
    unsafe fn check(&self, place: u32, seen: SliceMut<'_, u32>) -> u32 {
        let (level, id) = (level(place), self.medians.load(place as usize));
        let address = place - full_tree(level);
        if (Run::len_of(address, level, self.num_nodes) == 0) != (id == NONE) {
            return wrong::SHAPE;
        }
        if id == NONE {
            return 0;
        }
        if id as usize >= self.coords.len() / self.dims as usize {
            return wrong::ID_RANGE;
        }
        let bit = 1 << (id % 32);
        if seen.atomic_or(id as usize / 32, bit, Ordering::Relaxed, Scope::Device) & bit != 0 {
            return wrong::DUPLICATE_ID;
        }
        let mut side = 0;
        while side < 2 && !self.children.is_empty() {
            let below = 2 * place as usize + 1 + side;
            let child = if below < self.medians.len() { self.medians.load(below) } else { NONE };
            if self.children.load(2 * id as usize + side) != child {
                return wrong::CHILD;
            }
            side += 1;
        }
        // A bit a side of each axis for which an ancestor has been looked at.
        let (mut above, mut way, mut looked_at) = (level, address, 0_u32);
        while above > 0 && looked_at + 1 != 1 << (2 * self.dims) {
            above -= 1;
            let is_greater = way & 1 == 1;
            way /= 2;
            let side = 1 << (2 * (above % self.dims) + u32::from(is_greater));
            if looked_at & side != 0 {
                continue;
            }
            looked_at |= side;
            let ancestor = self.medians.load((full_tree(above) + way) as usize);
            if ancestor as usize >= self.coords.len() / self.dims as usize {
                return wrong::SIDE;
            }
            let points = points_on_level(self.coords, self.dims, above);
            // Equal points come by id, so that one of the two is not before the other.
            let (first, last) = if is_greater { (ancestor, id) } else { (id, ancestor) };
            if !is_before(&points, first, last) || self.are_equal(first, last) {
                return wrong::SIDE;
            }
        }
        0
    }

    #[inline(always)]
    unsafe fn are_equal(&self, a: u32, b: u32) -> bool {
        let (dims, mut axis) = (self.dims as usize, 0);
        while axis < dims
            && self.coords.load(a as usize * dims + axis).key()
                == self.coords.load(b as usize * dims + axis).key()
        {
            axis += 1;
        }
        axis == dims
    }
}
