//! All pairs with their scores, appended by an atomic counter, for a sort by score (Løvik 2020).

use super::best::pair;
use super::neighbor_cells::JoinSides;
use super::score::PairRanks;
use crate::policy::{JOIN_MIN_BLOCKS, JOIN_THREADS};
use crate::thread::coord::Float;
use crate::thread::items::own_item;
use crate::thread::words::Bits128;
use cuda_std::atomic::{Ordering, Scope};
use cuda_std::prelude::*;

/// The appended pairs, in two arrays for the sort.
#[derive(Clone, Copy, KernelArgs)]
pub struct PairList<'a> {
    /// The complements of the ranks of scores: lesser keys are better pairs.
    pub keys: SliceMut<'a, u64>,
    /// The ids, the left one in the high bits.
    pub ids: SliceMut<'a, u64>,
    /// Number of appended pairs. It exceeds the capacity if pairs were lost, but need not count all of them.
    pub count: SliceMut<'a, u64>,
}

/// Appends the pairs of each probe point in any order; a thread per probe point.
#[kernel(family = "research-join", block = JOIN_THREADS, min_blocks = JOIN_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_append<C: Float, const D: usize>(
    sides: JoinSides<'_, C>,
    ranks: PairRanks<'_>,
    list: PairList<'_>,
) {
    let cells = sides.neighbor_cells::<D>();
    let Some(i) = own_item(sides.probe_ids.len()) else { return };
    if let Some(probe) = sides.probe_point(&cells, i) {
        let (scoring, probe_rank) = (ranks.scoring.scoring(), ranks.probe.load(i));
        // Once the list is full, further additions would only slow down the counter.
        let mut is_full = false;
        let visit = |position, id| {
            if is_full {
                return;
            }
            let index = list.count.atomic_add(0, 1, Ordering::Relaxed, Scope::Device) as usize;
            is_full = index >= list.keys.len();
            if !is_full {
                let Bits128(key, ids) =
                    pair(scoring.rank(ranks.build.load(position), probe_rank), id, probe.id);
                list.keys.store(index, key);
                list.ids.store(index, ids);
            }
        };
        cells.for_each_match(&probe, visit);
    }
}
