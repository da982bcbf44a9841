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
    /// All threads of the block call; tiles are numbered by the ticket that lies in the shared memory.
    #[inline(always)]
    pub unsafe fn run(self, tile: usize, len: usize, items: Items<T, ROWS>, keep: u32) {
        let before = shared_field!(self.smem, before);
        let warp_counts = shared_field!(self.smem, warp_counts);
        let num_tiles = thread::grid_dim_x() as usize;
        let thread = thread::thread_idx_x() as usize;

        let counts = RowCounts::of(keep, T::PER_16);
        let (warps_before, kept) = exclusive_over_warps::<u32, Sum>(counts.sum(), warp_counts);
        let own = Count(kept.into());
        if thread == 0 {
            Decoupled::publish(self.words, num_tiles, tile, own);
        }
        // While the counts of other tiles arrive. With that the items have left the registers.
        let begin = tile * tile_items::<T, ROWS>();
        self.stage(begin, len, items, keep, kept, warps_before, &counts);
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

        // Read again: kept since the beginning it would take registers while items are in them.
        let tile = shared_field!(self.smem, ticket).load(0) as usize;
        let begin = tile * tile_items::<T, ROWS>();
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
        unsafe { SharedSlice::from_raw_parts(words.as_raw_ptr().cast(), tile_items::<T, ROWS>()) }
    }

    /// Puts the items into shared memory: those that are kept, and behind these, if they are wanted, the others. Of the tile
    /// `kept` items are kept, `rows_before` of them in the warps before.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "all that is known of a tile")]
    unsafe fn stage(
        &self,
        begin: usize,
        len: usize,
        items: Items<T, ROWS>,
        keep: u32,
        kept: u32,
        mut rows_before: u32,
        counts: &RowCounts,
    ) {
        let staged = self.staged();
        let others = if self.others.is_empty() { 0 } else { valid_bits::<T, ROWS>(begin, len) & !keep };
        let mut row = 0;
        while row < ROWS {
            let mut rank = rows_before + RowCounts::get(&counts.before, row);
            rows_before += RowCounts::get(&counts.total, row);
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
        let thread = thread::thread_idx_x() as usize;
        // Compared with a number that the assembler knows, so that no round needs a register for it.
        let left = len as i32 - thread as i32;
        // A fixed number of rounds, so that several are under way at once.
        let mut round = 0;
        while round < tile_items::<T, ROWS>() / THREADS {
            let i = round * THREADS;
            if left > i as i32 {
                to.store(begin + thread + i, staged.load(first + thread + i));
            }
            round += 1;
        }
    }
}

/// How many items of a warp's rows are kept, 8 bits a row: a row has 128 items at most.
struct RowCounts {
    /// Before the lane's first item of the row.
    before: [u32; ROWS.div_ceil(4)],
    /// Of the whole row.
    total: [u32; ROWS.div_ceil(4)],
}

impl RowCounts {
    /// Counts a lane's bits, `per_row` of each row.
    #[inline(always)]
    unsafe fn of(keep: u32, per_row: usize) -> Self {
        let mut counts = Self { before: [0; _], total: [0; _] };
        let mut word = 0;
        while word < counts.before.len() {
            // Four rows are scanned at once.
            let mut packed = 0;
            let mut row = 4 * word;
            while row < ROWS && row < 4 * word + 4 {
                let bits = keep >> (row * per_row) & ((1 << per_row) - 1);
                packed |= bits.count_ones() << (row % 4 * 8);
                row += 1;
            }
            (counts.before[word], counts.total[word]) =
                exclusive_of::<u32, Sum>(inclusive::<u32, Sum>(packed));
            word += 1;
        }
        counts
    }

    #[inline(always)]
    fn get(packed: &[u32], row: usize) -> u32 {
        packed[row / 4] >> (row % 4 * 8) & 0xFF
    }

    /// Items that the warp keeps.
    #[inline(always)]
    fn sum(&self) -> u32 {
        let mut sum = 0;
        let mut row = 0;
        while row < ROWS {
            sum += Self::get(&self.total, row);
            row += 1;
        }
        sum
    }
}
