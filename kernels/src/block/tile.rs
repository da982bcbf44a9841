//! A tile of consecutive items in the registers of a block.
//!
//! A warp also has consecutive items, in rows: one 16-byte access per lane. The order of items is thus warp, row, lane,
//! and position in the 16 bytes. Every access is coalesced, and no exchange through shared memory is needed.

use crate::policy::TILE_THREADS;
use crate::thread::words::{MAX_WORDS, Words};
use cuda_std::prelude::*;
use cuda_std::shared::SharedSlice;

/// The number of threads of a block.
pub const THREADS: usize = TILE_THREADS;
/// The number of warps of a block.
pub const WARPS: usize = THREADS / 32;

/// Returns the number of items of a warp's row.
pub const fn row_items<T: Words>() -> usize {
    32 * T::PER_16
}

/// Returns the number of items of a tile whose warps have `ROWS` rows.
pub const fn tile_items<T: Words, const ROWS: usize>() -> usize {
    WARPS * ROWS * row_items::<T>()
}

/// The items of a thread, row by row. The first `PER_16` of each row are used.
pub type Items<T, const ROWS: usize> = [[T; MAX_WORDS]; ROWS];

/// Returns the index, within the tile, of the thread's first item of a row.
#[inline(always)]
pub fn row_begin<T: Words, const ROWS: usize>(row: usize) -> usize {
    let thread = thread::thread_idx_x() as usize;
    (thread / 32 * ROWS + row) * row_items::<T>() + thread % 32 * T::PER_16
}

/// Loads 16 bytes of items from index `i` on, a multiple of `PER_16` in an aligned view.
#[inline(always)]
pub unsafe fn load_16<T: Words>(input: Slice<T>, i: usize) -> [T; MAX_WORDS] {
    let loaded: [u32; MAX_WORDS] = if T::WORDS == 2 {
        let words = Slice::<u64>::from_raw_parts(input.as_ptr().cast(), input.len());
        let [first, second] = words.load_16(i / T::PER_16);
        [first as u32, (first >> 32) as u32, second as u32, (second >> 32) as u32]
    } else {
        let words = Slice::<u32>::from_raw_parts(input.as_ptr().cast(), input.len() * T::WORDS);
        words.load_16(i / T::PER_16)
    };
    items_of(loaded)
}

/// Loads 16 bytes of items of shared memory as [`load_16`] does.
#[inline(always)]
pub unsafe fn load_shared_16<T: Words>(input: SharedSlice<T>, i: usize) -> [T; MAX_WORDS] {
    let words = SharedSlice::<u32>::from_raw_parts(input.as_raw_ptr().cast(), input.len() * T::WORDS);
    items_of(words.load_16(i / T::PER_16))
}

#[inline(always)]
fn items_of<T: Words>(words: [u32; MAX_WORDS]) -> [T; MAX_WORDS] {
    let mut items = [T::ZEROS; MAX_WORDS];
    for e in 0..T::PER_16 {
        let mut item_words = [0; MAX_WORDS];
        for word in 0..T::WORDS {
            item_words[word] = words[e * T::WORDS + word];
        }
        items[e] = T::from_words(item_words);
    }
    items
}

/// Stores 16 bytes of items from index `i` on, a multiple of `PER_16` in an aligned view.
#[inline(always)]
pub unsafe fn store_16<T: Words>(output: SliceMut<T>, i: usize, items: [T; MAX_WORDS]) {
    let words = SliceMut::<u32>::from_raw_parts(output.as_ptr().cast(), output.len() * T::WORDS);
    words.store_16(i / T::PER_16, words_of(items));
}

/// Stores 16 bytes of items to shared memory as [`store_16`] does.
#[inline(always)]
pub unsafe fn store_shared_16<T: Words>(output: SharedSlice<T>, i: usize, items: [T; MAX_WORDS]) {
    let words = SharedSlice::<u32>::from_raw_parts(output.as_raw_ptr().cast(), output.len() * T::WORDS);
    words.store_16(i / T::PER_16, words_of(items));
}

#[inline(always)]
fn words_of<T: Words>(items: [T; MAX_WORDS]) -> [u32; MAX_WORDS] {
    let mut words = [0; MAX_WORDS];
    for e in 0..T::PER_16 {
        let item_words = items[e].to_words();
        for word in 0..T::WORDS {
            words[e * T::WORDS + word] = item_words[word];
        }
    }
    words
}

/// Returns true if 16-byte accesses are possible. A view of a part of an array may begin anywhere.
#[inline(always)]
pub fn is_aligned<T>(pointer: *const T) -> bool {
    (pointer as usize).is_multiple_of(16)
}

/// Returns the number of items from the thread's first item of the tile to the end of the array, clamped to the tile;
/// at most 0 if the thread has none. An item exists if its offset from the thread's first item is less than this. One
/// such number per thread, compared with constants, takes fewer registers than an index per item.
#[inline(always)]
fn remaining<T: Words, const ROWS: usize>(begin: usize, len: usize) -> i32 {
    let remaining = len.saturating_sub(begin);
    let remaining = if remaining < tile_items::<T, ROWS>() { remaining } else { tile_items::<T, ROWS>() };
    remaining as i32 - row_begin::<T, ROWS>(0) as i32
}

/// Loads the thread's items of the tile that begins at `begin`; `pad` beyond the end of the input.
///
/// # Safety
/// `begin` is a multiple of the items of a tile.
#[inline(always)]
pub unsafe fn load<T: Words, const ROWS: usize>(input: Slice<T>, begin: usize, pad: T) -> Items<T, ROWS> {
    let mut items = [[pad; MAX_WORDS]; ROWS];
    if begin + tile_items::<T, ROWS>() <= input.len() && is_aligned(input.as_ptr()) {
        for row in 0..ROWS {
            items[row] = load_16(input, begin + row_begin::<T, ROWS>(row));
        }
    } else {
        let (first, remaining) = (begin + row_begin::<T, ROWS>(0), remaining::<T, ROWS>(begin, input.len()));
        for row in 0..ROWS {
            for e in 0..T::PER_16 {
                let i = row * row_items::<T>() + e;
                if remaining > i as i32 {
                    items[row][e] = input.load(first + i);
                }
            }
        }
    }
    items
}

/// Stores the thread's items of the tile that begins at `begin`, up to the end of the output.
///
/// # Safety
/// As [`load`]; no other block writes to the tile.
#[inline(always)]
pub unsafe fn store<T: Words, const ROWS: usize>(output: SliceMut<T>, begin: usize, items: Items<T, ROWS>) {
    if begin + tile_items::<T, ROWS>() <= output.len() && is_aligned(output.as_ptr()) {
        for row in 0..ROWS {
            store_16(output, begin + row_begin::<T, ROWS>(row), items[row]);
        }
    } else {
        let (first, remaining) = (begin + row_begin::<T, ROWS>(0), remaining::<T, ROWS>(begin, output.len()));
        for row in 0..ROWS {
            for e in 0..T::PER_16 {
                let i = row * row_items::<T>() + e;
                if remaining > i as i32 {
                    output.store(first + i, items[row][e]);
                }
            }
        }
    }
}

/// Returns one bit per item of the thread: bit `row * PER_16 + e` is `is_set(row, e)`.
#[inline(always)]
pub fn bits<T: Words, const ROWS: usize>(is_set: impl Fn(usize, usize) -> bool) -> u32 {
    const { assert!(ROWS * T::PER_16 <= 32) };
    let mut bits = 0;
    for row in 0..ROWS {
        for e in 0..T::PER_16 {
            bits |= u32::from(is_set(row, e)) << (row * T::PER_16 + e);
        }
    }
    bits
}

/// Returns one bit per item of the thread, set for items before item `len` of the input.
#[inline(always)]
pub fn valid_bits<T: Words, const ROWS: usize>(begin: usize, len: usize) -> u32 {
    if begin + tile_items::<T, ROWS>() <= len {
        return u32::MAX;
    }
    let remaining = remaining::<T, ROWS>(begin, len);
    bits::<T, ROWS>(|row, e| remaining > (row * row_items::<T>() + e) as i32)
}
