//! Reduce: all items combined. Each block reduces a piece of the input; a second launch of one block reduces the sums
//! of the blocks. The association depends only on the number of items.

use crate::block::tile::{Items, THREADS, WARPS, is_aligned, load_16, row_items};
use crate::policy::{REDUCE_MAX_BLOCKS, STREAM_ROWS as ROWS};
use crate::thread::operator::*;
use crate::thread::words::Words;
use crate::warp::scan::reduce;
use cuda_std::prelude::*;

/// Reduces with operator `O`: each warp reduces `warp_rows` consecutive rows, a multiple of [`STREAM_ROWS`](ROWS); each
/// block writes its sum to `sums`.
#[kernel(family = "primitives-scan", block = THREADS, shared = ReduceSmem<T>, hot)]
#[instances(T = [u32, i32, u64, i64, f32, f64], O = [Sum, Min, Max])]
#[instance(Affine, Compose)]
pub unsafe fn primitives_reduce<T: Words, O: Operator<T>>(
    input: Slice<T>,
    sums: SliceMut<T>,
    warp_rows: u64,
) {
    Reduce { input, sums, warp_rows: warp_rows as usize }.run::<O>()
}

/// Returns the rows per warp and the number of blocks for an input of `len` items.
pub const fn shape<T: Words>(len: usize, max_blocks: usize) -> (usize, usize) {
    let steps = len.div_ceil(ROWS * row_items::<T>());
    let warp_steps = steps.div_ceil(max_blocks * WARPS);
    // An empty input has a sum too, which one block writes.
    let warp_steps = if warp_steps == 0 { 1 } else { warp_steps };
    let num_blocks = steps.div_ceil(warp_steps * WARPS);
    (warp_steps * ROWS, if num_blocks == 0 { 1 } else { num_blocks })
}

/// The most blocks of the first launch.
pub const MAX_BLOCKS: usize = REDUCE_MAX_BLOCKS;

/// Shared memory of a reduction.
#[repr(C)]
pub struct ReduceSmem<T> {
    warp_sums: [T; WARPS],
}

/// The reduction of one block.
struct Reduce<'a, T> {
    input: Slice<'a, T>,
    sums: SliceMut<'a, T>,
    warp_rows: usize,
}

impl<T: Words> Reduce<'_, T> {
    #[inline(always)]
    unsafe fn run<O: Operator<T>>(self) {
        let warp_sums = shared_field!(shared_mem::<ReduceSmem<T>>(), warp_sums);
        let (lane, warp) = (warp::lane_id() as usize, thread::thread_idx_x() as usize / 32);
        let block = thread::block_idx_x() as usize;

        let warp_sum = self.reduce_warp::<O>((block * WARPS + warp) * self.warp_rows * row_items::<T>());
        if lane == 0 {
            warp_sums.store(warp, warp_sum);
        }
        thread::sync_threads();
        if warp == 0 {
            let sum = reduce::<T, O>(if lane < WARPS { warp_sums.load(lane) } else { O::IDENTITY });
            if lane == 0 {
                self.sums.store(block, sum);
            }
        }
    }

    /// Returns the sum of a warp's rows, which begin at item `begin`.
    #[inline(always)]
    unsafe fn reduce_warp<O: Operator<T>>(&self, begin: usize) -> T {
        let first = begin + warp::lane_id() as usize * T::PER_16;
        let is_aligned = is_aligned(self.input.as_ptr());
        let mut sum = O::IDENTITY;
        let mut row = 0;
        // Rows beyond the input are skipped: most of a large last piece may be beyond.
        while row < self.warp_rows && begin + row * row_items::<T>() < self.input.len() {
            // All loads of a step are in flight before the first one is used.
            let end = begin + (row + ROWS) * row_items::<T>();
            let items = if is_aligned && end <= self.input.len() {
                self.load_rows(first + row * row_items::<T>())
            } else {
                self.load_last_rows(first + row * row_items::<T>(), O::IDENTITY)
            };
            for r in 0..ROWS {
                let mut row_sum = items[r][0];
                for e in 1..T::PER_16 {
                    row_sum = O::combine(row_sum, items[r][e]);
                }
                // Rows and lanes combine in the order of the items, unless the operator commutes.
                let row_sum = if O::COMMUTATIVE { row_sum } else { reduce::<T, O>(row_sum) };
                sum = O::combine(sum, row_sum);
            }
            row += ROWS;
        }
        if O::COMMUTATIVE { reduce::<T, O>(sum) } else { sum }
    }

    #[inline(always)]
    unsafe fn load_rows(&self, first: usize) -> Items<T, ROWS> {
        let mut items = [[T::ZEROS; 4]; ROWS];
        for r in 0..ROWS {
            items[r] = load_16(self.input, first + r * row_items::<T>());
        }
        items
    }

    #[inline(always)]
    unsafe fn load_last_rows(&self, first: usize, pad: T) -> Items<T, ROWS> {
        let mut items = [[pad; 4]; ROWS];
        for r in 0..ROWS {
            for e in 0..T::PER_16 {
                let i = first + r * row_items::<T>() + e;
                if i < self.input.len() {
                    items[r][e] = self.input.load(i);
                }
            }
        }
        items
    }
}
