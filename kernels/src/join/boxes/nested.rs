//! All pairs of boxes by a nested loop: a thread per left box; tiles of right boxes are staged in shared memory (Løvik 2020, *Top-k
//! spatial distance join on the GPU*, algorithm 2, with tiles).

use super::geometry::{Aabb, PairTest, Shape};
use super::output::PairOutput;
use crate::policy::{JOIN_THREADS, NESTED_BOXES};
use crate::thread::coord::Coord;
use crate::thread::operator::Sum;
use crate::warp::scan::reduce;
use cuda_std::prelude::*;
use cuda_std::shared::SharedSlice;

/// Two sets of boxes and the condition for a pair.
#[derive(Clone, Copy, KernelArgs)]
pub struct BoxSets<'a, C> {
    /// The corners of the left boxes.
    pub left: Slice<'a, C>,
    /// The corners of the right boxes.
    pub right: Slice<'a, C>,
    /// Number of dimensions.
    pub dims: u32,
    /// Predicate, norm and pairing: [`Shape::to_word`].
    pub shape: u32,
    /// The largest distance of a pair, as the norm computes it.
    pub bound: f64,
}

/// Shared memory of a nested loop: a tile of right boxes.
#[repr(C, align(16))]
pub struct NestedSmem<C, const D: usize> {
    low: [[C; D]; NESTED_BOXES],
    high: [[C; D]; NESTED_BOXES],
    is_valid: [u32; NESTED_BOXES],
}

/// A tile of boxes in shared memory.
#[derive(Clone, Copy)]
pub(super) struct BoxTile<'a, C> {
    pub(super) low: SharedSlice<'a, C>,
    pub(super) high: SharedSlice<'a, C>,
    /// 1 for boxes that may have pairs, otherwise 0.
    pub(super) is_valid: SharedSlice<'a, u32>,
}

impl<C: Coord> BoxTile<'_, C> {
    /// Writes a box to a slot.
    #[inline(always)]
    pub(super) unsafe fn stage<const D: usize>(&self, slot: usize, of: &Aabb<C, D>, dims: usize) {
        for axis in 0..D {
            self.low.store(slot * D + axis, of.low[axis]);
            self.high.store(slot * D + axis, of.high[axis]);
        }
        self.is_valid.store(slot, u32::from(of.is_valid(dims)));
    }

    /// True if a left box makes a pair with the box of a slot.
    #[inline(always)]
    pub(super) unsafe fn is_pair<const D: usize>(
        &self,
        test: &PairTest<C>,
        left: &Aabb<C, D>,
        slot: usize,
    ) -> bool {
        let mut other = *left;
        for axis in 0..D {
            other.low[axis] = self.low.load(slot * D + axis);
            other.high[axis] = self.high.load(slot * D + axis);
        }
        self.is_valid.load(slot) != 0 && test.holds(left, &other)
    }
}

/// Counts or writes the pairs of a tile of left boxes, one per thread, with a tile of [`NESTED_BOXES`] right boxes. Blocks of one left
/// tile are adjacent. Counts are 0 before.
#[kernel(family = "join-boxes", block = JOIN_THREADS, shared = NestedSmem<C, D>, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn boxes_nested<C: Coord, const D: usize>(sets: BoxSets<'_, C>, output: PairOutput<'_>) {
    let smem = shared_mem::<NestedSmem<C, D>>();
    let (low, high) = (shared_field!(smem, low), shared_field!(smem, high));
    let tile = BoxTile { low, high, is_valid: shared_field!(smem, is_valid) };
    let (thread, dims) = (thread::thread_idx_x() as usize, sets.dims as usize);
    let [num_left, num_right] = [sets.left, sets.right].map(|corners| corners.len() / (2 * dims));
    let num_tiles = num_right.div_ceil(NESTED_BOXES);
    let block = thread::block_idx_x() as usize;
    let (i, begin) = (block / num_tiles * JOIN_THREADS + thread, block % num_tiles * NESTED_BOXES);
    let remaining = num_right - begin;
    let len = if remaining < NESTED_BOXES { remaining } else { NESTED_BOXES };

    let mut staged = thread;
    while staged < len {
        tile.stage(staged, &Aabb::<C, D>::load(sets.right, begin + staged, dims), dims);
        staged += JOIN_THREADS;
    }
    thread::sync_threads();

    let Shape { predicate, norm, pairing, .. } = Shape::from_word(sets.shape);
    let test = PairTest { predicate, norm, bound: C::from_f64(sets.bound), dims };
    let mut own = Aabb { low: [C::ZERO; D], high: [C::ZERO; D] };
    let mut has_pairs = false;
    if i < num_left {
        own = Aabb::load(sets.left, i, dims);
        has_pairs = own.is_valid(dims);
    }
    let is_pair =
        |at: usize| tile.is_pair(&test, &own, at) && pairing.includes((begin + at) as u32, i as u32);
    let mut count = 0_u32;
    if has_pairs {
        for at in 0..len {
            count += u32::from(is_pair(at));
        }
    }
    if output.counts.is_empty() {
        let sum = reduce::<u64, Sum>(count.into());
        if warp::lane_id() == 0 && sum > 0 {
            output.total.atomic_add(0, sum, Ordering::Relaxed, Scope::Device);
        }
        return;
    }
    if count == 0 {
        return;
    }
    let mut index = output.reserve(i as u32, count);
    if !output.offsets.is_empty() {
        let row_begin = output.begin(i as u32);
        for at in 0..len {
            if is_pair(at) {
                output.write(row_begin, i as u32, index, (begin + at) as u32);
                index += 1;
            }
        }
    }
}
