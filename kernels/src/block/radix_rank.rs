//! Ranks of a tile's items by a digit, stable: each warp counts its items in counters of its own, a thread a digit sums over
//! the warps, then each warp ranks its items by ballots (Merrill, Grimshaw 2011). Counts come first, as in Adinets and
//! Merrill 2022 (*Onesweep*), since other blocks wait for them: they are known before the longest of the steps.

use crate::block::scan::{ScanSmem, exclusive_sum};
use crate::thread::radix_key::RADIX;
use crate::warp::rank::lanes_with_digit;
use cuda_std::prelude::*;

/// Ranks of a thread's items in a tile of up to 2^16, two in a register: with the items they are what a block has most of.
pub struct TileRanks<const ITEMS: usize> {
    /// The ranks of the items 2 i and 2 i + 1; the upper half of the array is not used.
    pairs: [u32; ITEMS],
}

impl<const ITEMS: usize> TileRanks<ITEMS> {
    /// Items are set in their order.
    #[inline(always)]
    fn set(&mut self, item: usize, rank: u32) {
        // Without a look at the pair as such the compiler would keep both of its parts.
        self.pairs[item / 2] = if item.is_multiple_of(2) {
            rank
        } else {
            cuda_std::misc::computed(self.pairs[item / 2] | rank << 16)
        };
    }

    /// The rank of an item.
    #[inline(always)]
    pub fn get(&self, item: usize) -> u32 {
        self.pairs[item / 2] >> (item % 2 * 16) & 0xFFFF
    }
}

/// What a block of `WARPS` warps, at least 8, ranks with. The steps follow each other in the order of their names here, with
/// a barrier between two where it says so.
pub struct RadixRank<'a, const WARPS: usize> {
    /// For each warp its count of each digit, then the rank of the warp's next item of it.
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

    /// Counts the caller's items. A barrier follows.
    ///
    /// # Safety
    /// Digits are below [`RADIX`].
    #[inline(always)]
    pub unsafe fn count<const ITEMS: usize>(&self, digit: impl Fn(usize) -> u32) {
        let counts = self.own_counts();
        let mut item = 0;
        while item < ITEMS {
            counts.atomic_add(digit(item) as usize, 1, Ordering::Relaxed, Scope::Block);
            item += 1;
        }
    }

    /// Makes of each counter the rank in the tile of the warp's first item of the digit. Calls `publish` with the tile's count
    /// of the caller's digit, as soon as it is known, in the threads below [`RADIX`]. Gives that count and the rank of the tile's
    /// first item of the digit, to other threads anything. Ends with a barrier.
    ///
    /// # Safety
    /// See [`clear`](Self::clear).
    #[inline(always)]
    pub unsafe fn sum(&self, publish: impl Fn(u32)) -> (u32, u32) {
        let digit = thread::thread_idx_x() as usize;
        let mut warps_before = [0; WARPS];
        let mut count = 0;
        if digit < RADIX {
            let mut warp = 0;
            while warp < WARPS {
                warps_before[warp] = count;
                count += self.counts.load(warp * RADIX + digit);
                warp += 1;
            }
            publish(count);
        }
        let (before, _) = exclusive_sum(count, self.scan);
        if digit < RADIX {
            let mut warp = 0;
            while warp < WARPS {
                self.counts.store(warp * RADIX + digit, before + warps_before[warp]);
                warp += 1;
            }
        }
        thread::sync_threads();
        (count, before)
    }

    /// The ranks in the tile of the caller's items, warp-striped. A barrier follows before the counters' memory is used again.
    ///
    /// # Safety
    /// See [`clear`](Self::clear); digits are those that were counted.
    #[inline(always)]
    pub unsafe fn ranks<const ITEMS: usize>(&self, digit: impl Fn(usize) -> u32) -> TileRanks<ITEMS> {
        const { assert!(32 * WARPS * ITEMS <= 1 << 16) };
        let counts = self.own_counts();
        let mut ranks = TileRanks { pairs: [0; ITEMS] };
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
            ranks.set(item, warp::shuffle_idx(warp::FULL_MASK, before, leader) + below);
            // The highest lane of the next item may be another one.
            warp::sync_warp(warp::FULL_MASK);
            item += 1;
        }
        ranks
    }
}
