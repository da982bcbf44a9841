//! Selects the n-th item of a block, digit by digit from the most significant one.

use crate::thread::operator::Sum;
use crate::thread::radix_key::RADIX;
use crate::thread::ranked::Ranked;
use crate::warp::scan::inclusive;
use crate::warp::shuffle::shuffle_idx;
use cuda_std::prelude::*;

/// Digit values that a lane handles.
const LANE_DIGITS: usize = RADIX / 32;

/// Shared memory of the selection.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct NthSmem {
    /// The number of items per value of the digit.
    pub counts: [u32; RADIX],
}

/// Clears the counts. A barrier must follow.
///
/// # Safety
/// All threads of the block call.
#[inline(always)]
pub unsafe fn clear_counts(counts: SharedSlice<'_, u32>) {
    let mut digit = thread::thread_idx_x() as usize;
    while digit < RADIX {
        counts.store(digit, 0);
        digit += thread::block_dim_x() as usize;
    }
}

/// Counts digit `i` of an item whose earlier digits equal those of `prefix`.
///
/// # Safety
/// No other block uses `counts`.
#[inline(always)]
pub unsafe fn count_digit<R: Ranked>(item: R, prefix: R, i: u32, counts: SharedSlice<'_, u32>) {
    if item.has_prefix_of(prefix, i) {
        // Leading digits are often equal; the hardware merges the additions of a warp.
        counts.atomic_add(item.digit(i) as usize, 1, Ordering::Relaxed, Scope::Block);
    }
}

/// Returns the digit of item `n` in digit order, and the number of items with smaller digits, given the number of items
/// per digit.
///
/// # Safety
/// All lanes of a warp call, with the same arguments; there are more than `n` items in total.
#[inline(always)]
pub unsafe fn find_digit(count: impl Fn(usize) -> u64, n: u64) -> (u32, u64) {
    let lane = warp::lane_id() as usize;
    let mut counts = [0; LANE_DIGITS];
    let mut sum = 0;
    let mut d = 0;
    while d < LANE_DIGITS {
        counts[d] = count(lane * LANE_DIGITS + d);
        sum += counts[d];
        d += 1;
    }
    let end = inclusive::<u64, Sum>(sum);
    // The last digit of the lane whose items begin at or before item `n`.
    let (mut digit, mut before) = (0, end - sum);
    let mut next = before;
    let mut d = 0;
    while d < LANE_DIGITS {
        if next <= n {
            (digit, before) = ((lane * LANE_DIGITS + d) as u32, next);
        }
        next += counts[d];
        d += 1;
    }
    // The first lane whose items end behind item `n` has its digit.
    let lane = warp::warp_vote_ballot(warp::FULL_MASK, end > n).trailing_zeros();
    (shuffle_idx(digit, lane), shuffle_idx(before, lane))
}

/// Returns item `n`, counted from 0, of the items that `count` counts by [`count_digit`], given the digits before and the number of the
/// digit. Ends with a barrier.
///
/// # Safety
/// All threads of the block call, with the same `n`, less than the number of items; nothing else uses `counts`.
#[inline(always)]
pub unsafe fn nth_counted<R: Ranked>(
    mut n: u64,
    counts: SharedSlice<'_, u32>,
    count: impl Fn(R, u32),
) -> R {
    let mut prefix = R::ZEROS;
    let mut i = 0;
    while i < R::DIGITS {
        clear_counts(counts);
        thread::sync_threads();
        count(prefix, i);
        thread::sync_threads();
        let (digit, before) = find_digit(|digit| counts.load(digit).into(), n);
        thread::sync_threads();
        prefix = prefix.with_digit(i, digit);
        n -= before;
        i += 1;
    }
    prefix
}

/// Returns item `n`, counted from 0, in the order of all items of the block.
///
/// # Safety
/// All threads of the block call, with the same `n`, less than the number of items; no other block uses `smem`.
#[inline(always)]
pub unsafe fn nth<R: Ranked, const ITEMS: usize>(items: [R; ITEMS], n: u64, smem: *mut NthSmem) -> R {
    let counts = shared_field!(smem, counts);
    nth_counted(n, counts, |prefix, i| {
        for item in items {
            count_digit(item, prefix, i, counts);
        }
    })
}
