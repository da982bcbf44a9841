//! All pairs with their scores, from the offset of each right point on: what a selection has to do with when no limit is known.

use super::around::CellSets;
use super::best::pair;
use super::score::PairRanks;
use crate::policy::{JOIN_MIN_BLOCKS, JOIN_THREADS};
use crate::thread::coord::Coord;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;

/// Writes the pairs of each right point, whose offsets are by its id; a thread each.
#[kernel(family = "join", block = JOIN_THREADS, min_blocks = JOIN_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_filter<C: Coord, const D: usize>(
    sets: CellSets<'_, C>,
    ranks: PairRanks<'_>,
    offsets: Slice<u64>,
    pairs: SliceMut<Bits128>,
) {
    let around = sets.around::<D>();
    let i = thread::index_1d_u64() as usize;
    if i < sets.right_ids.len()
        && let Some(right) = sets.right(&around, i)
    {
        let (scoring, right_rank) = (ranks.scoring.scoring(), ranks.right.load(i));
        let mut to = offsets.load(right.id as usize) as usize;
        let take = |place, id| {
            if to < pairs.len() {
                pairs.store(to, pair(scoring.rank(ranks.left.load(place), right_rank), id, right.id));
            }
            to += 1;
        };
        around.each(&right, take);
    }
}
