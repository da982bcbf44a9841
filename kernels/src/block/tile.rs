//! A tile of consecutive items in the registers of a block.
//!
//! A warp has consecutive items too, in rows: one 16-byte access a lane. So the order of items is warp, row, lane, and
//! place in the 16 bytes; every access is coalesced and nothing is exchanged through shared memory.

use crate::policy::TILE;
use crate::thread::words::{MAX_WORDS, Words};
use cuda_std::prelude::*;

/// Threads of a block.
pub const THREADS: usize = TILE.threads_per_block;
/// Warps of a block.
pub const WARPS: usize = THREADS / 32;
/// Rows of a warp.
pub const ROWS: usize = TILE.rows;
/// Most items of a thread.
pub const MAX_ITEMS: usize = ROWS * MAX_WORDS;

/// Items of a row.
pub const fn row_items<T: Words>() -> usize {
    32 * T::PER_16
}

/// Items of a tile.
pub const fn tile_items<T: Words>() -> usize {
    WARPS * ROWS * row_items::<T>()
}

/// Items of a thread: item `e` of row `r` is at `r * PER_16 + e`; the rest is not used.
pub type Items<T> = [T; MAX_ITEMS];

/// Position in the tile of the thread's first item of a row.
#[inline(always)]
pub fn row_begin<T: Words>(row: usize) -> usize {
    let thread = thread::thread_idx_x() as usize;
    (thread / 32 * ROWS + row) * row_items::<T>() + thread % 32 * T::PER_16
}

/// The 16 bytes of items from `i`, which is a multiple of `PER_16` in an aligned view.
#[inline(always)]
pub unsafe fn load_16<T: Words>(input: Slice<T>, i: usize) -> [T; MAX_WORDS] {
    let words = Slice::<u32>::from_raw_parts(input.as_ptr().cast(), input.len() * T::WORDS);
    let loaded: [u32; MAX_WORDS] = words.load_16(i / T::PER_16);
    let mut items = [T::ZEROS; MAX_WORDS];
    let mut e = 0;
    while e < T::PER_16 {
        let mut own = [0; MAX_WORDS];
        let mut word = 0;
        while word < T::WORDS {
            own[word] = loaded[e * T::WORDS + word];
            word += 1;
        }
        items[e] = T::from_words(own);
        e += 1;
    }
    items
}

/// Writes 16 bytes of items from `i`, which is a multiple of `PER_16` in an aligned view.
#[inline(always)]
pub unsafe fn store_16<T: Words>(output: SliceMut<T>, i: usize, items: [T; MAX_WORDS]) {
    let words = SliceMut::<u32>::from_raw_parts(output.as_ptr().cast(), output.len() * T::WORDS);
    let mut stored = [0; MAX_WORDS];
    let mut e = 0;
    while e < T::PER_16 {
        let own = items[e].to_words();
        let mut word = 0;
        while word < T::WORDS {
            stored[e * T::WORDS + word] = own[word];
            word += 1;
        }
        e += 1;
    }
    words.store_16(i / T::PER_16, stored);
}

/// True if items can move 16 bytes at a time. A view of a part of an array may begin anywhere.
#[inline(always)]
pub fn is_aligned<T>(pointer: *const T) -> bool {
    (pointer as usize).is_multiple_of(16)
}

/// The thread's items of the tile that begins at `begin`; `pad` where the input has ended.
///
/// # Safety
/// `begin` is a multiple of the items of a tile.
#[inline(always)]
pub unsafe fn load<T: Words>(input: Slice<T>, begin: usize, pad: T) -> Items<T> {
    let mut items = [pad; MAX_ITEMS];
    if begin + tile_items::<T>() <= input.len() && is_aligned(input.as_ptr()) {
        let mut row = 0;
        while row < ROWS {
            let loaded = load_16(input, begin + row_begin::<T>(row));
            let mut e = 0;
            while e < T::PER_16 {
                items[row * T::PER_16 + e] = loaded[e];
                e += 1;
            }
            row += 1;
        }
    } else {
        let mut row = 0;
        while row < ROWS {
            let first = begin + row_begin::<T>(row);
            let mut e = 0;
            while e < T::PER_16 {
                if first + e < input.len() {
                    items[row * T::PER_16 + e] = input.load(first + e);
                }
                e += 1;
            }
            row += 1;
        }
    }
    items
}

/// Writes the thread's items of the tile that begins at `begin`, as far as the output goes.
///
/// # Safety
/// As [`load`]; the block writes the whole tile, so no other one may.
#[inline(always)]
pub unsafe fn store<T: Words>(output: SliceMut<T>, begin: usize, items: Items<T>) {
    if begin + tile_items::<T>() <= output.len() && is_aligned(output.as_ptr()) {
        let mut row = 0;
        while row < ROWS {
            let mut stored = [items[0]; MAX_WORDS];
            let mut e = 0;
            while e < T::PER_16 {
                stored[e] = items[row * T::PER_16 + e];
                e += 1;
            }
            store_16(output, begin + row_begin::<T>(row), stored);
            row += 1;
        }
    } else {
        let mut row = 0;
        while row < ROWS {
            let first = begin + row_begin::<T>(row);
            let mut e = 0;
            while e < T::PER_16 {
                if first + e < output.len() {
                    output.store(first + e, items[row * T::PER_16 + e]);
                }
                e += 1;
            }
            row += 1;
        }
    }
}
