//! Ranks of a tile's items by a digit, stable: each warp ranks its items by ballots and counts them in counters of its own,
//! then a thread a digit sums over the warps (Merrill, Grimshaw 2011).

use crate::block::scan::{ScanSmem, exclusive_sum};
use crate::thread::radix_key::RADIX;
use crate::warp::rank::lanes_with_digit;
use cuda_std::prelude::*;

/// What a block of `WARPS` warps, at least 8, ranks with. The steps follow each other in the order of their names here, with
/// a barrier between two where it says so.
pub struct RadixRank<'a, const WARPS: usize> {
    /// For each warp its count of each digit, in the end the rank of the warp's first item of it.
    pub counts: SharedSlice<'a, u32>,
    /// For the sum over the digits.
    pub scan: *mut ScanSmem,
}

impl<const WARPS: usize> RadixRank<'_, WARPS> {
    /// Clears the counters. A barrier follows.
    ///
    /// # Safety
    /// All threads of the block call, as in the other steps.
    #[inline(always)]
    pub unsafe fn clear(&self) {
        const { assert!(32 * WARPS >= RADIX) };
        let mut i = thread::thread_idx_x() as usize;
        while i < WARPS * RADIX {
            self.counts.store(i, 0);
            i += 32 * WARPS;
        }
    }

    /// The caller's warp's counters.
    #[inline(always)]
    unsafe fn own_counts(&self) -> SharedSlice<'_, u32> {
        self.counts.part(thread::thread_idx_x() as usize / 32 * RADIX, RADIX)
    }

    /// How many items of the same digit come before each of the caller's items in its warp, warp-striped; counts them. A
    /// barrier follows.
    ///
    /// # Safety
    /// Digits are below [`RADIX`].
    #[inline(always)]
    pub unsafe fn rank_in_warps<const ITEMS: usize>(&self, digit: impl Fn(usize) -> u32) -> [u32; ITEMS] {
        let counts = self.own_counts();
        let mut ranks = [0; ITEMS];
        let mut item = 0;
        while item < ITEMS {
            let digit = digit(item);
            let lanes = lanes_with_digit(digit);
            let below = (lanes & warp::lane_mask_lt()).count_ones();
            let mut before = 0;
            // The highest lane of each digit counts for all of them: it has all others below it.
            let leader = 31 - lanes.leading_zeros();
            if warp::lane_id() == leader {
                before = counts.load(digit as usize);
                counts.store(digit as usize, before + below + 1);
            }
            ranks[item] = warp::shuffle_idx(warp::FULL_MASK, before, leader) + below;
            // The highest lane of the next item may be another one.
            warp::sync_warp(warp::FULL_MASK);
            item += 1;
        }
        ranks
    }

    /// Makes of each warp's count the number of such items in the warps below. Gives a thread below [`RADIX`] the count of
    /// its digit, the others 0.
    ///
    /// # Safety
    /// See [`clear`](Self::clear).
    #[inline(always)]
    pub unsafe fn sum_over_warps(&self) -> u32 {
        let digit = thread::thread_idx_x() as usize;
        let mut count = 0;
        if digit < RADIX {
            let mut warp = 0;
            while warp < WARPS {
                let own = self.counts.load(warp * RADIX + digit);
                self.counts.store(warp * RADIX + digit, count);
                count += own;
                warp += 1;
            }
        }
        count
    }

    /// Takes what [`sum_over_warps`](Self::sum_over_warps) gave, makes of each counter the rank of the warp's first item of
    /// the digit, and gives the rank of the tile's first item of the caller's digit. Ends with a barrier.
    ///
    /// # Safety
    /// See [`clear`](Self::clear).
    #[inline(always)]
    pub unsafe fn sum_over_digits(&self, count: u32) -> u32 {
        let digit = thread::thread_idx_x() as usize;
        let (before, _) = exclusive_sum(count, self.scan);
        if digit < RADIX {
            // Read again: kept in registers they would be too many.
            let mut warp = 0;
            while warp < WARPS {
                self.counts.store(warp * RADIX + digit, before + self.counts.load(warp * RADIX + digit));
                warp += 1;
            }
        }
        thread::sync_threads();
        before
    }

    /// Ranks within the warp become ranks within the tile. A barrier follows before the counters' memory is used again.
    ///
    /// # Safety
    /// See [`clear`](Self::clear).
    #[inline(always)]
    pub unsafe fn ranks_in_tile<const ITEMS: usize>(
        &self,
        digit: impl Fn(usize) -> u32,
        ranks: &mut [u32; ITEMS],
    ) {
        let before = self.own_counts();
        let mut item = 0;
        while item < ITEMS {
            ranks[item] += before.load(digit(item) as usize);
            item += 1;
        }
    }
}
