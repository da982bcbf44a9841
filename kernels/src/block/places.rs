//! Places of items in their order, by counting for each those before it: of few items less work than a sort.

use crate::policy::TOP_K;
use crate::thread::operator::Sum;
use crate::thread::ranked::Ranked;
use crate::warp::scan::reduce;
use cuda_std::prelude::*;

/// Threads of a block.
pub const THREADS: usize = TOP_K.rank_threads;
const WARPS: usize = THREADS / 32;
/// Items that a warp finds the places of.
const ITEMS: usize = TOP_K.rank_items;
/// Items in shared memory.
const STAGED: usize = TOP_K.staged_items;
/// Items that a block finds the places of.
pub const BLOCK_ITEMS: usize = WARPS * ITEMS;

/// Shared memory of the counting.
#[repr(C, align(16))]
pub struct PlacesSmem<R> {
    items: [R; STAGED],
}

/// Calls `write` with the place of each of the block's items among all, and the item: once, by one lane.
///
/// # Safety
/// All [`THREADS`] threads of the block call, and no two items are equal.
#[inline(always)]
pub unsafe fn by_counting<R: Ranked>(
    items: Slice<'_, R>,
    smem: *mut PlacesSmem<R>,
    write: impl Fn(usize, R),
) {
    let staged = shared_field!(smem, items);
    let len = items.len();
    let thread = thread::thread_idx_x() as usize;
    let (lane, warp) = (thread % 32, thread / 32);
    // The whole block.
    if thread::block_idx_x() as usize * BLOCK_ITEMS >= len {
        return;
    }

    let first = thread::block_idx_x() as usize * BLOCK_ITEMS + warp * ITEMS;
    let mut own = [R::LAST; ITEMS];
    let mut item = 0;
    while item < ITEMS {
        if first + item < len {
            own[item] = items.load(first + item);
        }
        item += 1;
    }

    let mut before = [0u32; ITEMS];
    let mut begin = 0;
    while begin < len {
        let num_staged = if len - begin < STAGED { len - begin } else { STAGED };
        let mut i = thread;
        while i < num_staged {
            staged.store(i, items.load(begin + i));
            i += THREADS;
        }
        thread::sync_threads();
        let mut i = lane;
        while i < num_staged {
            let other = staged.load(i);
            let mut item = 0;
            while item < ITEMS {
                before[item] += u32::from(other.is_before(own[item]));
                item += 1;
            }
            i += 32;
        }
        thread::sync_threads();
        begin += STAGED;
    }

    let mut item = 0;
    while item < ITEMS {
        let place = reduce::<u32, Sum>(before[item]) as usize;
        if lane == 0 && first + item < len {
            write(place, own[item]);
        }
        item += 1;
    }
}
