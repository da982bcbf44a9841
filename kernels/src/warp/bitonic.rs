//! Bitonic sort and merge of an item a lane (Batcher 1968).

use super::shuffle::shuffle_xor;
use crate::thread::ranked::Ranked;
use cuda_std::prelude::*;

/// Exchanges with the lane whose index differs in `bits`; the caller keeps the first of the two, or the other one.
///
/// # Safety
/// All lanes call.
#[inline(always)]
pub unsafe fn exchange<R: Ranked>(item: R, bits: u32, keeps_first: bool) -> R {
    let other = shuffle_xor(item, bits);
    if other.is_before(item) == keeps_first { other } else { item }
}

/// The items of the warp in order, the last in the first lane.
///
/// # Safety
/// All lanes call.
#[inline(always)]
pub unsafe fn sort_backwards<R: Ranked>(mut item: R) -> R {
    let lane = warp::lane_id();
    let mut size = 2;
    while size <= 32 {
        let mut stride = size / 2;
        while stride > 0 {
            item = exchange(item, stride, (lane & stride == 0) != (lane & size == 0));
            stride /= 2;
        }
        size *= 2;
    }
    item
}

/// The first 32 of two times 32 items, in order; `sorted` are in order already.
///
/// # Safety
/// All lanes call.
#[inline(always)]
pub unsafe fn keep_first<R: Ranked>(sorted: R, items: R) -> R {
    let backwards = sort_backwards(items);
    // Rising and falling: where they cross the first 32 end.
    merge_bitonic(if backwards.is_before(sorted) { backwards } else { sorted })
}

/// The items of the warp in order, which rise and then fall, or the other way round, wherever they begin.
///
/// # Safety
/// All lanes call.
#[inline(always)]
pub unsafe fn merge_bitonic<R: Ranked>(mut item: R) -> R {
    let mut stride = 16;
    while stride > 0 {
        item = exchange(item, stride, warp::lane_id() & stride == 0);
        stride /= 2;
    }
    item
}
