//! Reduce, see [the GPU's](crate::primitives::reduce).

use super::lanes;
use kauri_kernels::block::tile::{WARPS, row_items};
use kauri_kernels::primitives::reduce::{MAX_BLOCKS, shape};
use kauri_kernels::thread::operator::Operator;
use kauri_kernels::thread::words::Words;
use rayon::prelude::*;

/// Items of a task where the brackets may be anywhere.
const CHUNK: usize = 1 << 14;

/// What all items add up to, in their order; the identity if there are none.
pub fn reduce<T: Words, O: Operator<T>>(input: &[T]) -> T {
    if O::EXACT {
        let fold = |items: &[T]| items.iter().fold(O::IDENTITY, |a, &b| O::combine(a, b));
        let sums: Vec<T> = input.par_chunks(CHUNK).map(fold).collect();
        return fold(&sums);
    }
    let (warp_rows, num_blocks) = shape::<T>(input.len(), MAX_BLOCKS);
    let sums = blocks::<T, O>(input, warp_rows);
    if num_blocks > 1 {
        let (warp_rows, _) = shape::<T>(num_blocks, 1);
        blocks::<T, O>(&sums, warp_rows)[0]
    } else {
        sums.first().copied().unwrap_or(reduce_block::<T, O>(&[], warp_rows))
    }
}

/// The sums of the kernel's blocks.
fn blocks<T: Words, O: Operator<T>>(input: &[T], warp_rows: usize) -> Vec<T> {
    let block_items = WARPS * warp_rows * row_items::<T>();
    input.par_chunks(block_items).map(|items| reduce_block::<T, O>(items, warp_rows)).collect()
}

fn reduce_block<T: Words, O: Operator<T>>(items: &[T], warp_rows: usize) -> T {
    let mut warp_sums = [O::IDENTITY; 32];
    for (warp_sum, items) in warp_sums.iter_mut().zip(items.chunks(warp_rows * row_items::<T>())) {
        *warp_sum = reduce_warp::<T, O>(items);
    }
    for warp_sum in &mut warp_sums[items.len().div_ceil(warp_rows * row_items::<T>())..WARPS] {
        *warp_sum = reduce_warp::<T, O>(&[]);
    }
    lanes::reduce::<T, O>(warp_sums)
}

/// The sum of a warp's rows, a sum a lane at first; only for operators that are not exact, which are commutative here.
fn reduce_warp<T: Words, O: Operator<T>>(items: &[T]) -> T {
    let mut sums = [O::IDENTITY; 32];
    for row in items.chunks(row_items::<T>()) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            let item = |e: usize| row.get(lane * T::PER_16 + e).copied().unwrap_or(O::IDENTITY);
            let own = (1..T::PER_16).fold(item(0), |own, e| O::combine(own, item(e)));
            *sum = O::combine(*sum, own);
        }
    }
    lanes::reduce::<T, O>(sums)
}
