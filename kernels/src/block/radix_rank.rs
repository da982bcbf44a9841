//! Stable ranks of a tile's items by a digit. Each warp counts its items in its own counters, one thread per digit sums
//! over the warps, then each warp ranks its items by ballots (Merrill, Grimshaw 2011). Counting comes first, as in
//! Adinets and Merrill 2022 (*Onesweep*), because other blocks wait for the counts.

use crate::block::scan::{ScanSmem, exclusive_sum};
use crate::thread::items::strided;
use crate::thread::radix_key::RADIX;
use crate::warp::rank::lanes_with_digit;
use cuda_std::prelude::*;

/// The ranks of a thread's items in a tile of up to 2^16 items, two per register: items and ranks take most of a
/// block's registers.
pub struct TileRanks<const ITEMS: usize> {
    /// Entry i holds the ranks of the items 2i and 2i + 1. The upper half of the array is unused.
    pairs: [u32; ITEMS],
}

impl<const ITEMS: usize> TileRanks<ITEMS> {
    /// Sets the rank of an item. Items must be set in order.
    #[inline(always)]
    fn set(&mut self, item: usize, rank: u32) {
        // `computed` keeps the compiler from holding both halves in separate registers.
        self.pairs[item / 2] = if item.is_multiple_of(2) {
            rank
        } else {
            cuda_std::misc::computed(self.pairs[item / 2] | rank << 16)
        };
    }

    /// Returns the rank of an item.
    #[inline(always)]
    pub fn get(&self, item: usize) -> u32 {
        self.pairs[item / 2] >> (item % 2 * 16) & 0xFFFF
    }
}

/// Returns the number of items of a group, of which a thread with room for `items` items has five. A thread uses whole groups.
pub const fn group_items(items: usize) -> usize {
    items.div_ceil(5)
}

/// Ranks the tile of a block of `WARPS` warps, at least 8. The methods are called in the order of their definition,
/// with a barrier between two where the first one says so.
pub struct RadixRank<'a, const WARPS: usize> {
    /// Per warp, the count of each digit; then the rank of the warp's next item with that digit.
    pub counts: SharedSlice<'a, u32>,
    /// Scratch memory of the sum over the digits.
    pub scan: *mut ScanSmem,
}

impl<const WARPS: usize> RadixRank<'_, WARPS> {
    /// Clears the counters. A barrier must follow.
    ///
    /// # Safety
    /// All threads of the block call, as in the other steps.
    #[inline(always)]
    pub unsafe fn clear(&self) {
        const { assert!(32 * WARPS >= RADIX) };
        for i in strided(thread::thread_idx_x() as usize, WARPS * RADIX, 32 * WARPS) {
            self.counts.store(i, 0);
        }
    }

    /// Returns the counters of the caller's warp.
    #[inline(always)]
    unsafe fn own_counts(&self) -> SharedSlice<'_, u32> {
        self.counts.part(thread::thread_idx_x() as usize / 32 * RADIX, RADIX)
    }

    /// Counts the caller's items; each thread has the same number. A barrier must follow.
    ///
    /// # Safety
    /// Digits are below [`RADIX`].
    #[inline(always)]
    pub unsafe fn count<const ITEMS: usize>(&self, num_items: usize, digit: impl Fn(usize) -> u32) {
        let counts = self.own_counts();
        for item in 0..ITEMS {
            if item < num_items {
                counts.atomic_add(digit(item) as usize, 1, Ordering::Relaxed, Scope::Block);
            }
        }
    }

    /// Turns each counter into the rank, within the tile, of the warp's first item with that digit. In the threads
    /// below [`RADIX`], calls `publish` with the tile's count of the caller's digit as soon as it is known, and returns
    /// this count and the rank of the tile's first item with the digit. Other threads get arbitrary values. Ends with a
    /// barrier.
    ///
    /// # Safety
    /// See [`clear`](Self::clear).
    #[inline(always)]
    pub unsafe fn sum(&self, publish: impl Fn(u32)) -> (u32, u32) {
        let digit = thread::thread_idx_x() as usize;
        let mut warps_before = [0; WARPS];
        let mut count = 0;
        if digit < RADIX {
            for warp in 0..WARPS {
                warps_before[warp] = count;
                count += self.counts.load(warp * RADIX + digit);
            }
            publish(count);
        }
        let (before, _) = exclusive_sum(count, self.scan);
        if digit < RADIX {
            for warp in 0..WARPS {
                self.counts.store(warp * RADIX + digit, before + warps_before[warp]);
            }
        }
        thread::sync_threads();
        (count, before)
    }

    /// Returns the ranks, within the tile, of the caller's first `num_items` items in warp-striped order. The number is that of whole groups
    /// ([`group_items`]), and the same in each thread. A barrier must follow before the counters' memory is reused.
    ///
    /// # Safety
    /// See [`clear`](Self::clear); the digits are the counted ones.
    #[inline(always)]
    pub unsafe fn ranks<const ITEMS: usize>(
        &self,
        num_items: usize,
        digit: impl Fn(usize) -> u32,
    ) -> TileRanks<ITEMS> {
        const { assert!(32 * WARPS * ITEMS <= 1 << 16) };
        let counts = self.own_counts();
        let mut ranks = TileRanks { pairs: [0; ITEMS] };
        // Nested, so that the collectives are in one chain of branches, and written out, because the compiler unrolls no loop with two exits.
        macro_rules! rank_groups {
            () => {};
            ($group:literal $($later:literal)*) => {
                if $group * group_items(ITEMS) < num_items {
                    for item in $group * group_items(ITEMS)..($group + 1) * group_items(ITEMS) {
                        if item < ITEMS {
                            ranks.set(item, Self::rank(counts, digit(item)));
                        }
                    }
                    rank_groups!($($later)*);
                }
            };
        }
        rank_groups!(0 1 2 3 4);
        ranks
    }

    /// Returns the rank of an item of each lane, and counts these items.
    #[inline(always)]
    unsafe fn rank(counts: SharedSlice<'_, u32>, digit: u32) -> u32 {
        let lanes = lanes_with_digit(digit);
        let below = (lanes & warp::lane_mask_lt()).count_ones();
        let mut before = 0;
        // The highest lane of each digit updates the counter for all lanes of the digit.
        let leader = 31 - lanes.leading_zeros();
        if warp::lane_id() == leader {
            before = counts.load(digit as usize);
            counts.store(digit as usize, before + below + 1);
        }
        let rank = warp::shuffle_idx(warp::FULL_MASK, before, leader) + below;
        // The next item may have a different highest lane.
        warp::sync_warp(warp::FULL_MASK);
        rank
    }
}
