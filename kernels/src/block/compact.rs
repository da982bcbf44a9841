//! Order-preserving compaction of a block's tile, one pass over the input: ranks by a scan of packed counts, places by
//! look-back, coalesced stores out of shared memory.

use super::scan::exclusive_over_warps;
use super::tile::{Items, THREADS, WARPS, row_begin, tile_items, valid_bits};
use crate::policy::SELECT_ROWS as ROWS;
use crate::thread::operator::{Count, Sum};
use crate::thread::words::{MAX_WORDS, Words};
use crate::warp::look_back::{Decoupled, LookBack};
use crate::warp::scan::{exclusive_of, inclusive};
use cuda_std::prelude::*;

/// Words of the items of a tile, of whatever type.
const TILE_WORDS: usize = THREADS * ROWS * MAX_WORDS;

/// Shared memory of a compaction.
#[repr(C, align(16))]
pub struct CompactSmem {
    /// Kept items, then the others.
    items: [u32; TILE_WORDS],
    /// Kept items of the tiles before.
    before: [u64; 1],
    /// For the block's ticket.
    pub ticket: [u64; 1],
    warp_counts: [u32; WARPS],
}

/// Where the items of a tile go.
pub struct Compact<'a, T> {
    /// Room for the items that are kept.
    pub kept: SliceMut<'a, T>,
    /// Room for the others, or nothing if they are not wanted.
    pub others: SliceMut<'a, T>,
    /// One word: how many are kept of all tiles.
    pub count: SliceMut<'a, u64>,
    /// Words of the look-back.
    pub words: SliceMut<'a, u64>,
    /// The block's shared memory.
    pub smem: *mut CompactSmem,
}

impl<T: Words> Compact<'_, T> {
    /// Writes the items of tile `tile`, of `len` items in all, to their places. Bit i of `keep` is for item i of the thread;
    /// it is 0 where the input has ended.
    ///
    /// # Safety
    /// All threads of the block call; tiles are numbered by a ticket.
    #[inline(always)]
    pub unsafe fn run(self, tile: usize, len: usize, items: Items<T, ROWS>, keep: u32) {
        let before = shared_field!(self.smem, before);
        let warp_counts = shared_field!(self.smem, warp_counts);
        let num_tiles = thread::grid_dim_x() as usize;
        let thread = thread::thread_idx_x() as usize;

        let (ranks, warp_count) = Self::rank_rows(keep);
        let (warps_before, kept) = exclusive_over_warps::<u32, Sum>(warp_count, warp_counts);
        let own = Count(kept.into());
        if thread == 0 {
            Decoupled::publish(self.words, num_tiles, tile, own);
        }
        // While the counts of other tiles arrive. With that the items have left the registers.
        let begin = tile * tile_items::<T, ROWS>();
        self.stage(begin, len, items, keep, kept, |row| warps_before + ranks[row]);
        if thread < 32 {
            let tiles_before = Decoupled::before::<Count, Sum>(self.words, num_tiles, tile, own).0;
            if thread == 0 {
                before.store(0, tiles_before);
                if tile == num_tiles - 1 {
                    self.count.store(0, tiles_before + own.0);
                }
            }
        }
        thread::sync_threads();

        let before = before.load(0) as usize;
        let kept = kept as usize;
        self.write(self.kept, before, 0, kept);
        if !self.others.is_empty() {
            let valid =
                if len - begin < tile_items::<T, ROWS>() { len - begin } else { tile_items::<T, ROWS>() };
            // Of the items before the tile those that were not kept.
            self.write(self.others, begin - before, kept, valid - kept);
        }
    }

    /// The tile's items in shared memory.
    #[inline(always)]
    fn staged(&self) -> SharedSlice<'_, T> {
        let words = shared_field!(self.smem, items);
        // SAFETY: as many words as the items have, aligned for any of them.
        unsafe { SharedSlice::from_raw_parts(words.as_ptr().cast(), tile_items::<T, ROWS>()) }
    }

    /// Puts the items into shared memory: those that are kept, and behind these, if they are wanted, the others. `rank(row)`
    /// says how many are kept of the tile before the thread's first of a row.
    #[inline(always)]
    unsafe fn stage(
        &self,
        begin: usize,
        len: usize,
        items: Items<T, ROWS>,
        keep: u32,
        kept: u32,
        rank: impl Fn(usize) -> u32,
    ) {
        let staged = self.staged();
        let others = if self.others.is_empty() { 0 } else { valid_bits::<T, ROWS>(begin, len) & !keep };
        let mut row = 0;
        while row < ROWS {
            let mut rank = rank(row);
            let mut e = 0;
            while e < T::PER_16 {
                let bit = row * T::PER_16 + e;
                if keep >> bit & 1 != 0 {
                    staged.store(rank as usize, items[row][e]);
                    rank += 1;
                } else if others >> bit & 1 != 0 {
                    let position = (row_begin::<T, ROWS>(row) + e) as u32;
                    staged.store((kept + position - rank) as usize, items[row][e]);
                }
                e += 1;
            }
            row += 1;
        }
    }

    /// Writes `len` staged items from `first` on to `to`, from `begin` on.
    #[inline(always)]
    unsafe fn write(&self, to: SliceMut<'_, T>, begin: usize, first: usize, len: usize) {
        let staged = self.staged();
        // A fixed number of rounds, so that several are under way at once.
        let mut round = 0;
        while round < tile_items::<T, ROWS>() / THREADS {
            let i = round * THREADS + thread::thread_idx_x() as usize;
            if i < len {
                to.store(begin + i, staged.load(first + i));
            }
            round += 1;
        }
    }

    /// For each row how many items the warp keeps before the lane's first, and of the whole warp.
    #[inline(always)]
    unsafe fn rank_rows(keep: u32) -> ([u32; ROWS], u32) {
        let of_row = |row: usize| (keep >> (row * T::PER_16) & ((1 << T::PER_16) - 1)).count_ones();
        let mut ranks = [0; ROWS];
        let mut count = 0;
        let mut first = 0;
        while first < ROWS {
            // The counts of four rows are scanned at once, 8 bits each: a row has 128 items at most.
            let mut packed = 0;
            let mut row = 0;
            while row < 4 && first + row < ROWS {
                packed |= of_row(first + row) << (8 * row);
                row += 1;
            }
            let (before, total) = exclusive_of::<u32, Sum>(inclusive::<u32, Sum>(packed));
            let mut row = 0;
            while row < 4 && first + row < ROWS {
                ranks[first + row] = count + (before >> (8 * row) & 0xFF);
                count += total >> (8 * row) & 0xFF;
                row += 1;
            }
            first += 4;
        }
        (ranks, count)
    }
}
