//! All pairs with their scores, from the offset of each right point on: what a selection has to do with when no limit is known.

use super::around::{Around, Lefts};
use super::best::pair;
use super::score::Scoring;
use crate::policy::{JOIN_MIN_BLOCKS, JOIN_THREADS};
use crate::thread::coord::Coord;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;

/// Writes the pairs of each right point, whose offsets are by its id; a thread each.
#[kernel(family = "join", block = JOIN_THREADS, min_blocks = JOIN_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_filter<C: Coord, const D: usize>(
    codes: Slice<u64>,
    begins: Slice<u32>,
    directory: Slice<u32>,
    coords: Slice<C>,
    ids: Slice<u32>,
    right_coords: Slice<C>,
    right_ids: Slice<u32>,
    dims: u32,
    grid: Slice<f64>,
    shape: u32,
    bound: f64,
    ranks: Slice<u64>,
    right_ranks: Slice<u64>,
    scoring: u32,
    left_weight: f64,
    right_weight: f64,
    offsets: Slice<u64>,
    pairs: SliceMut<Bits128>,
) {
    let lefts = Lefts { codes, begins, directory, coords, ids };
    let around = Around::<C, D>::new(lefts, dims, grid, shape, bound);
    let i = thread::index_1d_u64() as usize;
    if i < right_ids.len()
        && let Some(right) = around.right(right_coords, right_ids, i)
    {
        let scoring = Scoring::from_bits(scoring, [left_weight, right_weight]);
        let right_rank = right_ranks.load(i);
        let mut to = offsets.load(right.id as usize) as usize;
        let take = |place, id| {
            if to < pairs.len() {
                pairs.store(to, pair(scoring.rank(ranks.load(place), right_rank), id, right.id));
            }
            to += 1;
        };
        around.each(&right, take);
    }
}
