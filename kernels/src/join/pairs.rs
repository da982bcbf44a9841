//! The pairs of points within a distance of each other: how many a right point has, then which.

use super::around::CellSets;
use crate::policy::{JOIN_MIN_BLOCKS, JOIN_THREADS};
use crate::thread::coord::Coord;
use crate::thread::operator::Sum;
use crate::warp::scan::reduce;
use cuda_std::atomic::{Ordering, Scope};
use cuda_std::prelude::*;

/// Counts the left points near each right point, by its id if counts are wanted, and adds them to the total; a thread a right point, of
/// a set in which `num_before` come before them.
#[kernel(family = "join", block = JOIN_THREADS, min_blocks = JOIN_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_count<C: Coord, const D: usize>(
    sets: CellSets<'_, C>,
    num_before: u32,
    counts: SliceMut<u32>,
    total: SliceMut<u64>,
) {
    let around = sets.around::<D>();
    let i = thread::index_1d_u64() as usize;
    let mut count = 0;
    if i < sets.right_ids.len() {
        if let Some(right) = sets.right(&around, i) {
            around.each(&right.behind(num_before), |_, _| count += 1);
        }
        if !counts.is_empty() {
            counts.store(sets.right_ids.load(i) as usize, count);
        }
    }
    // Of a warp it is less than 2^32 only most often.
    let sum = reduce::<u64, Sum>(count.into());
    if !total.is_empty() && warp::lane_id() == 0 && sum > 0 {
        total.atomic_add(0, sum, Ordering::Relaxed, Scope::Device);
    }
}

/// Writes the ids of the left points near each right point from its offset on, as far as there is room; threads as there.
#[kernel(family = "join", block = JOIN_THREADS, min_blocks = JOIN_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_emit<C: Coord, const D: usize>(
    sets: CellSets<'_, C>,
    num_before: u32,
    offsets: Slice<u64>,
    found: SliceMut<u32>,
) {
    let around = sets.around::<D>();
    let i = thread::index_1d_u64() as usize;
    if i < sets.right_ids.len()
        && let Some(right) = sets.right(&around, i)
    {
        let mut place = offsets.load(right.id as usize) as usize;
        let take = |_, id| {
            if place < found.len() {
                found.store(place, id);
            }
            place += 1;
        };
        around.each(&right.behind(num_before), take);
    }
}
