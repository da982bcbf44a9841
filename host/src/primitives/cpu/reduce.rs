//! Reduce on the CPU; see [the GPU version](crate::primitives::reduce).

use super::lanes;
use kauri_kernels::block::tile::{WARPS, row_items};
use kauri_kernels::primitives::reduce::{MAX_BLOCKS, shape};
use kauri_kernels::thread::operator::Operator;
use kauri_kernels::thread::words::Words;
use rayon::prelude::*;

/// Items per task for operators whose association does not matter.
const CHUNK: usize = 1 << 14;

/// Combines all items in their order. The result of no items is the operator's identity.
pub fn reduce<T: Words, O: Operator<T>>(input: &[T]) -> T {
    if O::EXACT {
        let fold = |items: &[T]| items.iter().fold(O::IDENTITY, |a, &b| O::combine(a, b));
        let sums: Vec<T> = input.par_chunks(CHUNK).map(fold).collect();
        return fold(&sums);
    }
    let (warp_rows, num_blocks) = shape::<T>(input.len(), MAX_BLOCKS);
    let sums = block_sums::<T, O>(input, warp_rows);
    if num_blocks > 1 {
        let (warp_rows, _) = shape::<T>(num_blocks, 1);
        block_sums::<T, O>(&sums, warp_rows)[0]
    } else {
        sums.first().copied().unwrap_or(reduce_block::<T, O>(&[], warp_rows))
    }
}

/// Returns the sums of the kernel's blocks.
fn block_sums<T: Words, O: Operator<T>>(input: &[T], warp_rows: usize) -> Vec<T> {
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

/// Returns the sum of a warp's rows, keeping one sum per lane. Only for operators that are not exact; those are
/// commutative here.
fn reduce_warp<T: Words, O: Operator<T>>(items: &[T]) -> T {
    let mut sums = [O::IDENTITY; 32];
    for row in items.chunks(row_items::<T>()) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            let item = |e: usize| row.get(lane * T::PER_16 + e).copied().unwrap_or(O::IDENTITY);
            let lane_sum = (1..T::PER_16).fold(item(0), |lane_sum, e| O::combine(lane_sum, item(e)));
            *sum = O::combine(*sum, lane_sum);
        }
    }
    lanes::reduce::<T, O>(sums)
}
