//! Order-preserving compaction of a block's tile, in one pass over the input: ranks by a scan of packed counts, output
//! positions by look-back, coalesced stores out of shared memory.

use super::scan::exclusive_over_warps;
use super::tile::{Items, THREADS, WARPS, row_begin, tile_items, valid_bits};
use crate::policy::SELECT_ROWS as ROWS;
use crate::thread::operator::{Count, Sum};
use crate::thread::words::{MAX_WORDS, Words};
use crate::warp::look_back::{Decoupled, LookBack};
use crate::warp::scan::{exclusive_of, inclusive};
use cuda_std::prelude::*;

/// The most words that the items of a tile have, for any item type.
const TILE_WORDS: usize = THREADS * ROWS * MAX_WORDS;

/// Shared memory of a compaction.
#[repr(C, align(16))]
pub struct CompactSmem {
    /// The kept items, then the others.
    items: [u32; TILE_WORDS],
    /// The number of kept items in earlier tiles.
    before: [u64; 1],
    /// Scratch memory of the block's ticket.
    pub ticket: [u64; 1],
    warp_counts: [u32; WARPS],
}

/// The outputs of a compaction.
pub struct Compact<'a, T> {
    /// The output of the kept items.
    pub kept: SliceMut<'a, T>,
    /// The output of the other items; empty if they are not needed.
    pub others: SliceMut<'a, T>,
    /// One word: the number of kept items of all tiles.
    pub count: SliceMut<'a, u64>,
    /// The words of the look-back.
    pub words: SliceMut<'a, u64>,
    /// The block's shared memory.
    pub smem: *mut CompactSmem,
}

impl<T: Words> Compact<'_, T> {
    /// Compacts tile `tile` of an input of `len` items. Bit i of `keep` belongs to item i of the thread; it is 0 beyond
    /// the input.
    ///
    /// # Safety
    /// All threads of the block call. Tiles are numbered by the ticket in the shared memory.
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
        // While the counts of other tiles arrive, the items move from registers to shared memory.
        let begin = tile * tile_items::<T, ROWS>();
        self.stage(begin, len, items, keep, kept, warps_before, &counts);
        if thread < 32 {
            let tiles_before = Decoupled::exclusive_prefix::<Count, Sum>(self.words, num_tiles, tile, own).0;
            if thread == 0 {
                before.store(0, tiles_before);
                if tile == num_tiles - 1 {
                    self.count.store(0, tiles_before + own.0);
                }
            }
        }
        thread::sync_threads();

        // Reloaded: kept since the beginning, the tile's number would take a register while items are in registers.
        let tile = shared_field!(self.smem, ticket).load(0) as usize;
        let begin = tile * tile_items::<T, ROWS>();
        let before = before.load(0) as usize;
        let kept = kept as usize;
        self.write(self.kept, before, 0, kept);
        if !self.others.is_empty() {
            let valid =
                if len - begin < tile_items::<T, ROWS>() { len - begin } else { tile_items::<T, ROWS>() };
            // All items before the tile that were not kept precede its others.
            self.write(self.others, begin - before, kept, valid - kept);
        }
    }

    /// Returns the tile's items in shared memory.
    #[inline(always)]
    fn staged(&self) -> SharedSlice<'_, T> {
        let words = shared_field!(self.smem, items);
        // SAFETY: the array has enough words for the items of a tile, and is aligned for any item type.
        unsafe { SharedSlice::from_raw_parts(words.as_raw_ptr().cast(), tile_items::<T, ROWS>()) }
    }

    /// Stores the items in shared memory: the kept ones first, then, if they are needed, the others. The tile keeps
    /// `kept` items, `rows_before` of them in the warps before the caller's.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "the state of a tile, all in registers")]
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
        for row in 0..ROWS {
            let mut rank = rows_before + RowCounts::get(&counts.before, row);
            rows_before += RowCounts::get(&counts.total, row);
            for e in 0..T::PER_16 {
                let bit = row * T::PER_16 + e;
                if keep >> bit & 1 != 0 {
                    staged.store(rank as usize, items[row][e]);
                    rank += 1;
                } else if others >> bit & 1 != 0 {
                    let position = (row_begin::<T, ROWS>(row) + e) as u32;
                    staged.store((kept + position - rank) as usize, items[row][e]);
                }
            }
        }
    }

    /// Writes `len` staged items, beginning with item `first`, to `to` from index `begin` on.
    #[inline(always)]
    unsafe fn write(&self, to: SliceMut<'_, T>, begin: usize, first: usize, len: usize) {
        let staged = self.staged();
        let thread = thread::thread_idx_x() as usize;
        // Compared with a constant, so that no round needs a register for the bound.
        let remaining = len as i32 - thread as i32;
        // A fixed number of rounds, so that several loads are in flight at once.
        for round in 0..tile_items::<T, ROWS>() / THREADS {
            let i = round * THREADS;
            if remaining > i as i32 {
                to.store(begin + thread + i, staged.load(first + thread + i));
            }
        }
    }
}

/// The numbers of kept items in a warp's rows, 8 bits per row: a row has at most 128 items.
struct RowCounts {
    /// Kept items of the row before the lane's first one.
    before: [u32; ROWS.div_ceil(4)],
    /// Kept items of the whole row.
    total: [u32; ROWS.div_ceil(4)],
}

impl RowCounts {
    /// Counts the set bits of a lane, `per_row` bits per row.
    #[inline(always)]
    unsafe fn of(keep: u32, per_row: usize) -> Self {
        let mut counts = Self { before: [0; _], total: [0; _] };
        for word in 0..counts.before.len() {
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
        }
        counts
    }

    #[inline(always)]
    fn get(packed: &[u32], row: usize) -> u32 {
        packed[row / 4] >> (row % 4 * 8) & 0xFF
    }

    /// Returns the number of items that the warp keeps.
    #[inline(always)]
    fn sum(&self) -> u32 {
        let mut sum = 0;
        for row in 0..ROWS {
            sum += Self::get(&self.total, row);
        }
        sum
    }
}
