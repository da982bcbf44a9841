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
/// with the children stored below it, and on its side of every ancestor by the super key of that one's level. `seen` holds a zero a
/// point; the smallest (place, what is wrong) goes to `finding`, which starts at `u64::MAX`, and how many nodes there are to `count`,
/// which starts at 0.
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
    count: SliceMut<u32>,
) {
    let place = thread::index_1d_u64();
    if place < medians.len() as u64 {
        let what = Tree { coords, dims, medians, children, num_nodes }.check(place as u32, seen, count);
        if what != 0 {
            finding.atomic_min(0, place << 32 | u64::from(what), Ordering::Relaxed, Scope::Device);
        }
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
    unsafe fn check(&self, place: u32, seen: SliceMut<'_, u32>, count: SliceMut<'_, u32>) -> u32 {
        let (level, id) = (level(place), self.medians.load(place as usize));
        let address = place - full_tree(level);
        if (Run::of(address, level, self.num_nodes).len == 0) != (id == NONE) {
            return wrong::SHAPE;
        }
        if id == NONE {
            return 0;
        }
        if id as usize >= seen.len() {
            return wrong::ID_RANGE;
        }
        if seen.atomic_exchange(id as usize, 1, Ordering::Relaxed, Scope::Device) != 0 {
            return wrong::DUPLICATE_ID;
        }
        count.atomic_add(0, 1, Ordering::Relaxed, Scope::Device);
        let mut side = 0;
        while side < 2 {
            let below = 2 * place as usize + 1 + side;
            let child = if below < self.medians.len() { self.medians.load(below) } else { NONE };
            if self.children.load(2 * id as usize + side) != child {
                return wrong::CHILD;
            }
            side += 1;
        }
        let (mut above, mut way) = (level, address);
        while above > 0 {
            above -= 1;
            let is_greater = way & 1 == 1;
            way /= 2;
            let ancestor = self.medians.load((full_tree(above) + way) as usize);
            if ancestor as usize >= seen.len() {
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
