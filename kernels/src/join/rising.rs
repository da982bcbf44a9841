//! The best pairs under a limit that rises: right points in parts, larger and larger, each with the limit that those before it made.
//! A part is of blocks from all over the grid. Of the left points in the cells around only those are looked at whose scores suffice.

use super::around::{Around, Lefts};
use super::best::{Best, pair};
use super::score::Scoring;
use crate::policy::{JOIN_MIN_BLOCKS, JOIN_THREADS};
use crate::thread::coord::Coord;
use cuda_std::prelude::*;

/// Offers the pairs of some right points; a thread each. Block `b` of the launch has those of block `(b + first_block) * stride`,
/// modulo the number of all blocks, of which that is no divisor.
#[kernel(family = "join", block = JOIN_THREADS, min_blocks = JOIN_MIN_BLOCKS, hot)]
#[instance(f32, 2)]
#[instance(f32, 3)]
#[instance(f32, 6)]
#[instance(f64, 2)]
#[instance(f64, 3)]
#[instance(f64, 6)]
pub unsafe fn join_rising<C: Coord, const D: usize>(
    codes: Slice<u64>,
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
    extremes: Slice<u64>,
    scoring: u32,
    left_weight: f64,
    right_weight: f64,
    first_block: u64,
    stride: u64,
    pairs: SliceMut<crate::thread::words::Bits128>,
    state: SliceMut<u64>,
) {
    let num_blocks = right_ids.len().div_ceil(JOIN_THREADS) as u64;
    let block = (thread::block_idx_x() as u64 + first_block) * stride % num_blocks;
    let i = block as usize * JOIN_THREADS + thread::thread_idx_x() as usize;
    if i >= right_ids.len() {
        return;
    }
    let best = Best::new(pairs, state);
    let scoring = Scoring::from_bits(scoring, [left_weight, right_weight]);
    let right_rank = right_ranks.load(i);
    let all = [extremes.load(0), extremes.load(1)];
    let Some((first, last)) = scoring.lefts_for(best.least_rank(), right_rank, all) else { return };
    let lefts = Lefts { codes, directory, coords, ids };
    let around = Around::<C, D>::new(lefts, dims, grid, shape, bound);
    let Some(right) = around.right(right_coords, right_ids, i) else { return };
    around.each_wanted(
        &right,
        || best.has_room(),
        |place| ranks.load(place).wrapping_sub(first) <= last - first,
        |place, id| best.offer(pair(scoring.rank(ranks.load(place), right_rank), id, right.id)),
    );
}
