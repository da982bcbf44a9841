//! All pairs within a distance: their number for each probe point, then their ids.

use super::neighbor_cells::JoinSides;
use crate::policy::{JOIN_MIN_BLOCKS, JOIN_THREADS};
use crate::thread::coord::Float;
use crate::thread::items::own_item;
use crate::thread::operator::Sum;
use crate::warp::scan::reduce;
use cuda_std::atomic::{Ordering, Scope};
use cuda_std::prelude::*;

/// Counts the build points near each probe point. Writes the counts by id unless `counts` is empty, and adds them to `total` unless it is
/// empty; a thread per probe point. `num_before` points of the whole probe side come before those of the launch.
#[kernel(family = "join", block = JOIN_THREADS, min_blocks = JOIN_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_count<C: Float, const D: usize>(
    sides: JoinSides<'_, C>,
    num_before: u32,
    counts: SliceMut<u32>,
    total: SliceMut<u64>,
) {
    let cells = sides.neighbor_cells::<D>();
    let i = thread::index_1d_u64() as usize;
    let mut count = 0;
    if i < sides.probe_ids.len() {
        if let Some(probe) = sides.probe_point(&cells, i) {
            cells.for_each_match(&probe.with_id_offset(num_before), |_, _| count += 1);
        }
        if !counts.is_empty() {
            counts.store(sides.probe_ids.load(i) as usize, count);
        }
    }
    // The sum of a warp can exceed `u32`.
    let sum = reduce::<u64, Sum>(count.into());
    if !total.is_empty() && warp::lane_id() == 0 && sum > 0 {
        total.atomic_add(0, sum, Ordering::Relaxed, Scope::Device);
    }
}

/// Writes the ids of the build points near each probe point from its offset on, as many as `found` holds; a thread per probe point.
#[kernel(family = "join", block = JOIN_THREADS, min_blocks = JOIN_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_emit<C: Float, const D: usize>(
    sides: JoinSides<'_, C>,
    num_before: u32,
    offsets: Slice<u64>,
    found: SliceMut<u32>,
) {
    let cells = sides.neighbor_cells::<D>();
    let Some(i) = own_item(sides.probe_ids.len()) else { return };
    if let Some(probe) = sides.probe_point(&cells, i) {
        let mut index = offsets.load(probe.id as usize) as usize;
        let visit = |_, id| {
            if index < found.len() {
                found.store(index, id);
            }
            index += 1;
        };
        cells.for_each_match(&probe.with_id_offset(num_before), visit);
    }
}
