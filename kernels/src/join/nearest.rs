//! The nearest left points of each right point within a distance, by the cells around it.

use super::around::CellSets;
use crate::policy::{JOIN_MIN_BLOCKS, JOIN_THREADS};
use crate::thread::best_k::BestK;
use crate::thread::coord::Coord;
use cuda_std::prelude::*;

/// Writes the `k` nearest left points of each right point to the row of its id, sorted by (distance, id) and padded with infinity and
/// `u32::MAX`; a thread each.
#[kernel(family = "join", block = JOIN_THREADS, min_blocks = JOIN_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_nearest<C: Coord, const D: usize>(
    sets: CellSets<'_, C>,
    k: u32,
    nearest_ids: SliceMut<u32>,
    nearest_dist2: SliceMut<C>,
) {
    let (i, k) = (thread::index_1d_u64() as usize, k as usize);
    if i >= sets.right_ids.len() {
        return;
    }
    let around = sets.around::<D>();
    let begin = sets.right_ids.load(i) as usize * k;
    let row = (nearest_dist2.part(begin, k), nearest_ids.part(begin, k));
    let mut best = BestK::new(row.0, row.1, C::from_f64(sets.bound));
    if let Some(right) = sets.right(&around, i) {
        around.each(&right, |place, id| best.offer(around.distance(&right, place), id));
    }
    best.finish();
}
