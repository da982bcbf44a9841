//! All pairs with their scores, for a selection without a threshold.

use super::best::pair;
use super::neighbor_cells::JoinSides;
use super::score::PairRanks;
use crate::policy::{JOIN_MIN_BLOCKS, JOIN_THREADS};
use crate::thread::coord::Float;
use crate::thread::items::own_item;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;

/// Writes the pairs of each probe point from the offset of its id on; a thread per probe point.
#[kernel(family = "join", block = JOIN_THREADS, min_blocks = JOIN_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_filter<C: Float, const D: usize>(
    sides: JoinSides<'_, C>,
    ranks: PairRanks<'_>,
    offsets: Slice<u64>,
    pairs: SliceMut<Bits128>,
) {
    let cells = sides.neighbor_cells::<D>();
    let Some(i) = own_item(sides.probe_ids.len()) else { return };
    if let Some(probe) = sides.probe_point(&cells, i) {
        let (scoring, probe_rank) = (ranks.scoring.scoring(), ranks.probe.load(i));
        let mut to = offsets.load(probe.id as usize) as usize;
        let visit = |position, id| {
            if to < pairs.len() {
                pairs.store(to, pair(scoring.rank(ranks.build.load(position), probe_rank), id, probe.id));
            }
            to += 1;
        };
        cells.for_each_match(&probe, visit);
    }
}
