//! The k nearest build points of each probe point within a distance.

use super::neighbor_cells::JoinSides;
use crate::policy::{JOIN_MIN_BLOCKS, JOIN_THREADS};
use crate::thread::best_k::BestK;
use crate::thread::coord::Float;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Writes the `k` nearest build points of each probe point to the row of its id, sorted by (distance, id) and padded with infinity and
/// `u32::MAX`; a thread per probe point.
#[kernel(family = "join", block = JOIN_THREADS, min_blocks = JOIN_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_nearest<C: Float, const D: usize>(
    sides: JoinSides<'_, C>,
    k: u32,
    nearest_ids: SliceMut<u32>,
    nearest_dist2: SliceMut<C>,
) {
    let k = k as usize;
    let Some(i) = own_item(sides.probe_ids.len()) else { return };
    let cells = sides.neighbor_cells::<D>();
    let begin = sides.probe_ids.load(i) as usize * k;
    let row = (nearest_dist2.part(begin, k), nearest_ids.part(begin, k));
    let mut best = BestK::new(row.0, row.1, C::from_f64(sides.bound));
    if let Some(probe) = sides.probe_point(&cells, i) {
        cells.for_each_match(&probe, |position, id| best.offer(cells.distance(&probe, position), id));
    }
    best.finish();
}
