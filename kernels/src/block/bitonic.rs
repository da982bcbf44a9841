//! Bitonic sort of a few items in shared memory (Batcher 1968). Steps within 32 items are done by the lanes of a warp,
//! without barriers.

use crate::thread::ranked::Ranked;
use crate::warp::bitonic::exchange;
use cuda_std::prelude::*;

/// Sorts the first `len` items, a power of two. Ends with a barrier.
///
/// # Safety
/// All threads of the block call, with the same arguments. The items were stored before a barrier, and no other block
/// or thread accesses them.
#[inline(always)]
pub unsafe fn sort<R: Ranked>(items: SharedSlice<'_, R>, len: u32) {
    let (thread, num_threads) = (thread::thread_idx_x(), thread::block_dim_x());
    in_warps(items, len, |mut item, i| {
        let mut size = 2;
        while size <= 32 {
            item = merge(item, i, size, size / 2);
            size *= 2;
        }
        item
    });
    let mut size = 64;
    while size <= len {
        let mut stride = size / 2;
        while stride >= 32 {
            let mut pair = thread;
            while pair < len / 2 {
                // The index of the lower item of the pair: the bit of the stride is 0.
                let low = (pair & !(stride - 1)) * 2 + (pair & (stride - 1));
                let (a, b) = (items.load(low as usize), items.load((low + stride) as usize));
                if b.is_before(a) == (low & size == 0) {
                    items.store(low as usize, b);
                    items.store((low + stride) as usize, a);
                }
                pair += num_threads;
            }
            thread::sync_threads();
            stride /= 2;
        }
        in_warps(items, len, |item, i| merge(item, i, size, 16));
        size *= 2;
    }
}

/// Executes the steps of a merge to runs of `size` items, with strides from `stride` down, for item `i` of the warp.
#[inline(always)]
unsafe fn merge<R: Ranked>(mut item: R, i: u32, size: u32, mut stride: u32) -> R {
    while stride > 0 {
        item = exchange(item, stride, (i & stride == 0) == (i & size == 0));
        stride /= 2;
    }
    item
}

/// Replaces every item by the result of `step`, which a warp calls for 32 adjacent items at a time. Ends with a
/// barrier.
#[inline(always)]
unsafe fn in_warps<R: Ranked>(items: SharedSlice<'_, R>, len: u32, step: impl Fn(R, u32) -> R) {
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / 32);
    let mut begin = 32 * warp;
    while begin < len {
        let i = begin + lane;
        // Fewer than 32 items are padded with the last value of the order.
        let item = step(if i < len { items.load(i as usize) } else { R::LAST }, i);
        if i < len {
            items.store(i as usize, item);
        }
        begin += thread::block_dim_x();
    }
    thread::sync_threads();
}
