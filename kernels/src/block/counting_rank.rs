//! Ranks of items by counting, for each, the items before it: less work than a sort for few items.

use crate::policy::TOP_K;
use crate::thread::items::strided;
use crate::thread::operator::Sum;
use crate::thread::ranked::Ranked;
use crate::warp::scan::reduce;
use cuda_std::prelude::*;

/// The number of threads of a block.
pub const THREADS: usize = TOP_K.rank_threads;
const WARPS: usize = THREADS / 32;
/// Items that a warp ranks.
const ITEMS: usize = TOP_K.rank_items;
/// The capacity in shared memory, in items.
const STAGED: usize = TOP_K.staged_items;
/// Items that a block ranks.
pub const BLOCK_ITEMS: usize = WARPS * ITEMS;

/// Shared memory of the counting.
#[repr(C, align(16))]
pub struct CountingRankSmem<R> {
    items: [R; STAGED],
}

/// Calls `write` with the rank of each of the block's items among all items, and the item: once per item, by one lane.
///
/// # Safety
/// All [`THREADS`] threads of the block call, and no two items are equal.
#[inline(always)]
pub unsafe fn rank_by_counting<R: Ranked>(
    items: Slice<'_, R>,
    smem: *mut CountingRankSmem<R>,
    write: impl Fn(usize, R),
) {
    let staged = shared_field!(smem, items);
    let len = items.len();
    let thread = thread::thread_idx_x() as usize;
    let (lane, warp) = (thread % 32, thread / 32);
    // The whole block returns.
    if thread::block_idx_x() as usize * BLOCK_ITEMS >= len {
        return;
    }

    let first = thread::block_idx_x() as usize * BLOCK_ITEMS + warp * ITEMS;
    let mut own = [R::LAST; ITEMS];
    for item in 0..ITEMS {
        if first + item < len {
            own[item] = items.load(first + item);
        }
    }

    let mut before = [0u32; ITEMS];
    for begin in strided(0, len, STAGED) {
        let num_staged = if len - begin < STAGED { len - begin } else { STAGED };
        for i in strided(thread, num_staged, THREADS) {
            staged.store(i, items.load(begin + i));
        }
        thread::sync_threads();
        for i in strided(lane, num_staged, 32) {
            let other = staged.load(i);
            for item in 0..ITEMS {
                before[item] += u32::from(other.is_before(own[item]));
            }
        }
        thread::sync_threads();
    }

    for item in 0..ITEMS {
        let rank = reduce::<u32, Sum>(before[item]) as usize;
        if lane == 0 && first + item < len {
            write(rank, own[item]);
        }
    }
}
