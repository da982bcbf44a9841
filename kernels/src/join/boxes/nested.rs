//! All pairs of boxes by a nested loop: a thread per left box; tiles of right boxes are staged in shared memory (Løvik 2020, *Top-k
//! spatial distance join on the GPU*, algorithm 2, with tiles).

use super::geometry::{Aabb, PairTest, Shape};
use super::output::PairOutput;
use crate::policy::{JOIN_THREADS, NESTED_BOXES};
use crate::thread::coord::Coord;
use crate::thread::operator::Sum;
use crate::warp::scan::reduce;
use cuda_std::prelude::*;

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

/// Counts or writes the pairs of a tile of left boxes, one per thread, with a tile of [`NESTED_BOXES`] right boxes. Blocks of one left
/// tile are adjacent. Counts are 0 before.
#[kernel(family = "join-boxes", block = JOIN_THREADS, shared = NestedSmem<C, D>, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn boxes_nested<C: Coord, const D: usize>(sets: BoxSets<'_, C>, output: PairOutput<'_>) {
    let smem = shared_mem::<NestedSmem<C, D>>();
    let (low, high, valid) =
        (shared_field!(smem, low), shared_field!(smem, high), shared_field!(smem, is_valid));
    let (thread, dims) = (thread::thread_idx_x() as usize, sets.dims as usize);
    let [num_left, num_right] = [sets.left, sets.right].map(|corners| corners.len() / (2 * dims));
    let num_tiles = num_right.div_ceil(NESTED_BOXES);
    let block = thread::block_idx_x() as usize;
    let (i, begin) = (block / num_tiles * JOIN_THREADS + thread, block % num_tiles * NESTED_BOXES);
    let remaining = num_right - begin;
    let len = if remaining < NESTED_BOXES { remaining } else { NESTED_BOXES };

    let mut staged = thread;
    while staged < len {
        let of = Aabb::<C, D>::load(sets.right, begin + staged, dims);
        for axis in 0..D {
            low.store(staged * D + axis, of.low[axis]);
            high.store(staged * D + axis, of.high[axis]);
        }
        valid.store(staged, u32::from(of.is_valid(dims)));
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
    let is_pair = |at: usize| {
        let mut other = own;
        for axis in 0..D {
            other.low[axis] = low.load(at * D + axis);
            other.high[axis] = high.load(at * D + axis);
        }
        valid.load(at) != 0 && test.holds(&own, &other) && pairing.includes((begin + at) as u32, i as u32)
    };
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
