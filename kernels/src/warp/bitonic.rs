//! Bitonic sort and merge of one item per lane (Batcher 1968).

use super::shuffle::shuffle_xor;
use crate::thread::ranked::Ranked;
use cuda_std::prelude::*;

/// Compares with the lane whose index differs in `bits`. Returns the smaller of the two items if `keeps_first`, else
/// the larger.
///
/// # Safety
/// All lanes call.
#[inline(always)]
pub unsafe fn exchange<R: Ranked>(item: R, bits: u32, keeps_first: bool) -> R {
    let other = shuffle_xor(item, bits);
    if other.is_before(item) == keeps_first { other } else { item }
}

/// Sorts the items of the warp in reverse: the last item ends in lane 0.
///
/// # Safety
/// All lanes call.
#[inline(always)]
pub unsafe fn sort_reversed<R: Ranked>(mut item: R) -> R {
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

/// Returns the first 32 of twice 32 items, in order; `sorted` is in order already.
///
/// # Safety
/// All lanes call.
#[inline(always)]
pub unsafe fn keep_first<R: Ranked>(sorted: R, items: R) -> R {
    let reversed = sort_reversed(items);
    // One sequence ascends, the other descends: the smaller item of each lane is among the first 32.
    merge_bitonic(if reversed.is_before(sorted) { reversed } else { sorted })
}

/// Sorts a bitonic sequence (ascending then descending, or a rotation of it) of the warp.
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
