//! The best pairs under a limit that rises: right points in parts, larger and larger, each with the limit that those before it made.
//! A part is of blocks from all over the grid. Of the left points in the cells around only those are looked at whose scores suffice.

use super::around::{Around, Lefts};
use super::best::{Best, pair};
use super::score::Scoring;
use crate::policy::{JOIN_MIN_BLOCKS, JOIN_THREADS};
use crate::thread::coord::Coord;
use crate::thread::words::Bits128;
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
    extremes: Slice<u64>,
    scoring: u32,
    left_weight: f64,
    right_weight: f64,
    first_block: u64,
    stride: u64,
    pairs: SliceMut<Bits128>,
    state: SliceMut<u64>,
) {
    let Some(i) = right_of_thread(right_ids.len(), first_block, stride) else { return };
    let best = Best::new(pairs, state);
    let scoring = Scoring::from_bits(scoring, [left_weight, right_weight]);
    let right_rank = right_ranks.load(i);
    let all = [extremes.load(0), extremes.load(1)];
    let Some((first, last)) = scoring.lefts_for(best.least_rank(), right_rank, all) else { return };
    let lefts = Lefts { codes, begins, directory, coords, ids };
    let around = Around::<C, D>::new(lefts, dims, grid, shape, bound);
    let Some(right) = around.right(right_coords, right_ids, i) else { return };
    around.each_wanted(
        &right,
        || best.has_room(),
        |place| ranks.load(place).wrapping_sub(first) <= last - first,
        |place, id| best.offer(pair(scoring.rank(ranks.load(place), right_rank), id, right.id)),
    );
}

/// The place of the right point that a thread has, if there is one.
#[inline(always)]
fn right_of_thread(num_rights: usize, first_block: u64, stride: u64) -> Option<usize> {
    let num_blocks = num_rights.div_ceil(JOIN_THREADS) as u64;
    let block = (u64::from(thread::block_idx_x()) + first_block) * stride % num_blocks;
    let i = block as usize * JOIN_THREADS + thread::thread_idx_x() as usize;
    (i < num_rights).then_some(i)
}

/// Offers the pairs of some right points by a score of one's own: what a kernel with such a score has to do, in blocks of
/// [`JOIN_THREADS`]. The greater the rank that `score` makes of a left and a right id, the better is the pair; of floats it is
/// [`Coord::key`], of integers [`rank_of_integer`](super::score::rank_of_integer).
///
/// # Safety
/// The arguments are those that the host gives for such a launch, and all threads of the block call.
#[inline(always)]
pub unsafe fn offer_all<C: Coord, const D: usize>(launch: OwnLaunch<'_, C>, score: impl Fn(u32, u32) -> u64) {
    let OwnLaunch { lefts, right_coords, right_ids, dims, grid, shape, bound, .. } = launch;
    let Some(i) = right_of_thread(right_ids.len(), launch.first_block, launch.stride) else { return };
    let best = Best::new(launch.pairs, launch.state);
    let around = Around::<C, D>::new(lefts, dims, grid, shape, bound);
    let Some(right) = around.right(right_coords, right_ids, i) else { return };
    around.each_wanted(
        &right,
        || best.has_room(),
        |_| true,
        |_, id| best.offer(pair(score(id, right.id), id, right.id)),
    );
}

/// The arguments of a launch with a score of one's own.
#[derive(Clone, Copy)]
pub struct OwnLaunch<'a, C> {
    /// The left points, in the order of their cells.
    pub lefts: Lefts<'a, C>,
    /// The coordinates of the right points, in the order of their cells, and their ids.
    pub right_coords: Slice<'a, C>,
    /// The same.
    pub right_ids: Slice<'a, u32>,
    /// Number of dimensions.
    pub dims: u32,
    /// The grid, and what else belongs to it in one word.
    pub grid: Slice<'a, f64>,
    /// The same.
    pub shape: u32,
    /// What distances are compared with.
    pub bound: f64,
    /// Which blocks these are.
    pub first_block: u64,
    /// The same.
    pub stride: u64,
    /// The pairs so far.
    pub pairs: SliceMut<'a, Bits128>,
    /// And their state.
    pub state: SliceMut<'a, u64>,
}
