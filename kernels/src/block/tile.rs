//! A tile of consecutive items in the registers of a block.
//!
//! A warp has consecutive items too, in rows: one 16-byte access a lane. So the order of items is warp, row, lane, and
//! place in the 16 bytes; every access is coalesced and nothing is exchanged through shared memory.

use crate::policy::TILE_THREADS;
use crate::thread::words::{MAX_WORDS, Words};
use cuda_std::prelude::*;

/// Threads of a block.
pub const THREADS: usize = TILE_THREADS;
/// Warps of a block.
pub const WARPS: usize = THREADS / 32;

/// Items of a row.
pub const fn row_items<T: Words>() -> usize {
    32 * T::PER_16
}

/// Items of a tile whose warps have that many rows.
pub const fn tile_items<T: Words, const ROWS: usize>() -> usize {
    WARPS * ROWS * row_items::<T>()
}

/// Items of a thread, row by row; of a row the first `PER_16` are used.
pub type Items<T, const ROWS: usize> = [[T; MAX_WORDS]; ROWS];

/// Position in the tile of the thread's first item of a row.
#[inline(always)]
pub fn row_begin<T: Words, const ROWS: usize>(row: usize) -> usize {
    let thread = thread::thread_idx_x() as usize;
    (thread / 32 * ROWS + row) * row_items::<T>() + thread % 32 * T::PER_16
}

/// The 16 bytes of items from `i`, which is a multiple of `PER_16` in an aligned view.
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

/// How many items there are from the thread's first one of the tile on: more than the position of each of them, relative to
/// the first, that is within an array of length `len`. One number for a thread, and known ones to compare it with, take less
/// than a position an item.
#[inline(always)]
fn left<T: Words, const ROWS: usize>(begin: usize, len: usize) -> i32 {
    let left = len.saturating_sub(begin);
    let left = if left < tile_items::<T, ROWS>() { left } else { tile_items::<T, ROWS>() };
    left as i32 - row_begin::<T, ROWS>(0) as i32
}

/// The thread's items of the tile that begins at `begin`; `pad` where the input has ended.
///
/// # Safety
/// `begin` is a multiple of the items of a tile.
#[inline(always)]
pub unsafe fn load<T: Words, const ROWS: usize>(input: Slice<T>, begin: usize, pad: T) -> Items<T, ROWS> {
    let mut items = [[pad; MAX_WORDS]; ROWS];
    if begin + tile_items::<T, ROWS>() <= input.len() && is_aligned(input.as_ptr()) {
        let mut row = 0;
        while row < ROWS {
            items[row] = load_16(input, begin + row_begin::<T, ROWS>(row));
            row += 1;
        }
    } else {
        let (first, left) = (begin + row_begin::<T, ROWS>(0), left::<T, ROWS>(begin, input.len()));
        let mut row = 0;
        while row < ROWS {
            let mut e = 0;
            while e < T::PER_16 {
                let i = row * row_items::<T>() + e;
                if left > i as i32 {
                    items[row][e] = input.load(first + i);
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
pub unsafe fn store<T: Words, const ROWS: usize>(output: SliceMut<T>, begin: usize, items: Items<T, ROWS>) {
    if begin + tile_items::<T, ROWS>() <= output.len() && is_aligned(output.as_ptr()) {
        let mut row = 0;
        while row < ROWS {
            store_16(output, begin + row_begin::<T, ROWS>(row), items[row]);
            row += 1;
        }
    } else {
        let (first, left) = (begin + row_begin::<T, ROWS>(0), left::<T, ROWS>(begin, output.len()));
        let mut row = 0;
        while row < ROWS {
            let mut e = 0;
            while e < T::PER_16 {
                let i = row * row_items::<T>() + e;
                if left > i as i32 {
                    output.store(first + i, items[row][e]);
                }
                e += 1;
            }
            row += 1;
        }
    }
}

/// A bit an item of the thread, that of item `e` of row `row` at `row * PER_16 + e`: set where `is_set(row, e)`.
#[inline(always)]
pub fn bits<T: Words, const ROWS: usize>(is_set: impl Fn(usize, usize) -> bool) -> u32 {
    const { assert!(ROWS * T::PER_16 <= 32) };
    let mut bits = 0;
    let mut row = 0;
    while row < ROWS {
        let mut e = 0;
        while e < T::PER_16 {
            bits |= u32::from(is_set(row, e)) << (row * T::PER_16 + e);
            e += 1;
        }
        row += 1;
    }
    bits
}

/// The bits of the thread's items that are before item `len` of the input.
#[inline(always)]
pub fn valid_bits<T: Words, const ROWS: usize>(begin: usize, len: usize) -> u32 {
    if begin + tile_items::<T, ROWS>() <= len {
        return u32::MAX;
    }
    let left = left::<T, ROWS>(begin, len);
    bits::<T, ROWS>(|row, e| left > (row * row_items::<T>() + e) as i32)
}
