//! Generators of arrays: a constant, an arithmetic sequence, noise; a block per tile.

use crate::block::tile::{self, THREADS, row_begin, tile_items};
use crate::policy::STREAM_ROWS as ROWS;
use crate::thread::words::*;
use cuda_std::prelude::*;

/// Sets every item to the 16-byte value (`low`, `high`), truncated to the item's size.
#[kernel(family = "primitives-moves", block = THREADS)]
#[instances(T = [u32, u64, Bits128])]
pub unsafe fn primitives_fill<T: Words>(output: SliceMut<T>, low: u64, high: u64) {
    let (low, high) = (split(low), split(high));
    let value = T::from_words([low[0], low[1], high[0], high[1]]);
    Generate { output }.run(|_| value)
}

/// Sets item i to `first + i * step`, modulo 2^32 or 2^64.
#[kernel(family = "primitives-moves", block = THREADS)]
#[instances(T = [u32, u64])]
pub unsafe fn primitives_iota<T: Words>(output: SliceMut<T>, first: u64, step: u64) {
    Generate { output }.run(|i| T::from_words(split(first.wrapping_add(i.wrapping_mul(step)))))
}

/// Sets item i to [`splitmix64`] of `seed + i`, truncated to the item's size.
#[kernel(family = "primitives-moves", block = THREADS)]
#[instances(T = [u32, u64])]
pub unsafe fn primitives_noise<T: Words>(output: SliceMut<T>, seed: u64) {
    Generate { output }.run(|i| T::from_words(split(splitmix64(seed.wrapping_add(i)))))
}

/// Returns a pseudorandom hash of `x` (Steele, Lea, Flood 2014, *Fast Splittable Pseudorandom Number Generators*).
#[inline(always)]
pub const fn splitmix64(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

/// The items of one tile.
struct Generate<'a, T> {
    output: SliceMut<'a, T>,
}

impl<T: Words> Generate<'_, T> {
    #[inline(always)]
    unsafe fn run(self, item: impl Fn(u64) -> T) {
        let begin = thread::block_idx_x() as usize * tile_items::<T, ROWS>();
        let mut items = [[T::ZEROS; MAX_WORDS]; ROWS];
        for row in 0..ROWS {
            let first = (begin + row_begin::<T, ROWS>(row)) as u64;
            for e in 0..T::PER_16 {
                items[row][e] = item(first + e as u64);
            }
        }
        tile::store(self.output, begin, items)
    }
}
