//! Order-preserving compaction of a block's tile, one pass over the input: ranks by a scan of packed counts, places by
//! look-back, coalesced stores out of shared memory.

use super::scan::exclusive_over_warps;
use super::tile::{Items, ROWS, THREADS, WARPS, row_begin, tile_items};
use crate::policy::TILE;
use crate::thread::operator::Sum;
use crate::thread::words::Words;
use crate::warp::look_back::{Decoupled, LookBack};
use crate::warp::scan::{exclusive_of, inclusive};
use cuda_std::prelude::*;

/// Words of the items of a tile, of whatever type.
const TILE_WORDS: usize = TILE.threads_per_block * TILE.rows * 4;

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
    pub unsafe fn run(self, tile: usize, len: usize, items: Items<T>, keep: u32) {
        let before = shared_field!(self.smem, before);
        let staged = shared_field!(self.smem, items);
        let staged = SharedSlice::<T>::from_raw_parts(staged.as_ptr().cast(), tile_items::<T>());

        let (ranks, warp_count) = Self::rank_rows(keep);
        let warp_counts = shared_field!(self.smem, warp_counts);
        let (warps_before, kept) = exclusive_over_warps::<u32, Sum>(warp_count, warp_counts);
        // Look-back first: other blocks wait for this tile's count.
        if thread::thread_idx_x() < 32 {
            let num_tiles = thread::grid_dim_x() as usize;
            let tiles_before = Decoupled::before::<u64, Sum>(self.words, num_tiles, tile, kept.into());
            if warp::lane_id() == 0 {
                before.store(0, tiles_before);
                if tile == num_tiles - 1 {
                    self.count.store(0, tiles_before + u64::from(kept));
                }
            }
        }

        let begin = tile * tile_items::<T>();
        let kept = kept as usize;
        let wants_others = !self.others.is_empty();
        let mut row = 0;
        while row < ROWS {
            let mut rank = (warps_before + ranks[row]) as usize;
            let mut e = 0;
            while e < T::PER_16 {
                let i = row * T::PER_16 + e;
                let position = row_begin::<T>(row) + e;
                if keep >> i & 1 != 0 {
                    staged.store(rank, items[i]);
                    rank += 1;
                } else if wants_others && begin + position < len {
                    staged.store(kept + position - rank, items[i]);
                }
                e += 1;
            }
            row += 1;
        }
        thread::sync_threads();

        let before = before.load(0) as usize;
        let thread = thread::thread_idx_x() as usize;
        let mut i = thread;
        while i < kept {
            self.kept.store(before + i, staged.load(i));
            i += THREADS;
        }
        if wants_others {
            // Of the items before the tile those that were not kept.
            let others_before = begin - before;
            let valid = if len - begin < tile_items::<T>() { len - begin } else { tile_items::<T>() };
            let mut i = thread;
            while i < valid - kept {
                self.others.store(others_before + i, staged.load(kept + i));
                i += THREADS;
            }
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
