//! Unique: the first item of every run of equal items, in one pass.

use super::select::{Choice, Select};
use crate::block::compact::CompactSmem;
use crate::block::tile::{self, Items, THREADS, row_begin};
use crate::policy::{SELECT_MIN_BLOCKS, SELECT_ROWS as ROWS};
use crate::thread::predicate::*;
use crate::thread::words::{Bits128, Words, computed};
use crate::warp::shuffle::shuffle_idx;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// Selects the heads of runs by comparison `R`; a block per tile. Otherwise like `primitives_select_flagged`.
#[kernel(family = "primitives-select", block = THREADS, min_blocks = SELECT_MIN_BLOCKS, shared = CompactSmem, hot)]
#[instances(T = [u32, u64, Bits128], R = [EqualBits])]
#[instance(u64, EqualHigh)]
pub unsafe fn primitives_unique<T: Words, R: SameRun<T>>(select: Select<'_, T>) {
    select.run(Heads::<T, R> { input: select.input, run: PhantomData })
}

/// Comparisons that have kernels.
#[diagnostic::on_unimplemented(
    message = "there is no kernel for runs of `{T}` by `{Self}`",
    note = "add an instance to `primitives_unique` in a kernel crate of your own"
)]
pub trait UniqueRun<T: Words>: SameRun<T> {}
impl UniqueRun<u32> for EqualBits {}
impl UniqueRun<u64> for EqualBits {}
impl UniqueRun<Bits128> for EqualBits {}
impl UniqueRun<u64> for EqualHigh {}

/// Selection of the heads of runs.
struct Heads<'a, T, R> {
    input: Slice<'a, T>,
    run: PhantomData<R>,
}

impl<T: Words, R: SameRun<T>> Choice<T> for Heads<'_, T, R> {
    #[inline(always)]
    unsafe fn choose(&self, begin: usize, len: usize, items: &Items<T, ROWS>) -> u32 {
        let first = begin + row_begin::<T, ROWS>(0);
        let mut before = items[0][0];
        if warp::lane_id() == 0 && first > 0 && first < len {
            before = self.input.load(first - 1);
        }
        // The first item of the input is a head.
        let mut heads = u32::from(first == 0);
        for row in 0..ROWS {
            // The item before the lane's first one is in the lane below. What lane 0 receives precedes its first item
            // of the next row.
            let below = shuffle_idx(items[row][T::PER_16 - 1], warp::lane_id().wrapping_sub(1) & 31);
            let mut previous = if warp::lane_id() == 0 { before } else { below };
            before = below;
            for e in 0..T::PER_16 {
                heads |= u32::from(!R::same(previous, items[row][e])) << (row * T::PER_16 + e);
                previous = items[row][e];
            }
            heads = computed(heads);
        }
        heads & tile::valid_bits::<T, ROWS>(begin, len)
    }
}
