//! Segmented scan and reduce on the CPU; see [the GPU version](crate::primitives::segmented).

use super::scan::{Tile, fixed_order};
use kauri_kernels::block::tile::tile_items;
use kauri_kernels::policy::SEGMENTED_ROWS;
use kauri_kernels::primitives::segmented::{Restarting, SinceHead};
use kauri_kernels::thread::operator::Operator;
use kauri_kernels::thread::words::Words;
use rayon::prelude::*;

/// Writes the inclusive scan of every segment. An item whose byte in `heads` is not 0 begins a segment.
///
/// # Panics
/// Panics if the lengths differ.
pub fn inclusive<T: Words, O: Operator<T>>(input: &[T], heads: &[u8], output: &mut [T]) {
    scan::<T, O>(input, heads, output, |_, with_item| with_item);
}

/// Writes the exclusive scan of every segment; the first item of a segment becomes the operator's identity.
///
/// # Panics
/// Panics if the lengths differ.
pub fn exclusive<T: Words, O: Operator<T>>(input: &[T], heads: &[u8], output: &mut [T]) {
    scan::<T, O>(input, heads, output, |before, _| before);
}

/// Returns the sum of each segment, the identity for an empty one.
///
/// # Panics
/// Panics if the offsets do not ascend from 0 to the number of items.
pub fn reduce<T: Words, O: Operator<T>>(input: &[T], offsets: &[u64]) -> Vec<T> {
    let mut sums = input.to_vec();
    inclusive::<T, O>(input, &heads(offsets, input.len()), &mut sums);
    let sum = |ends: &[u64]| if ends[0] < ends[1] { sums[ends[1] as usize - 1] } else { O::IDENTITY };
    offsets.windows(2).map(sum).collect()
}

/// Returns a byte per item, 1 where a segment begins.
pub fn heads(offsets: &[u64], num_items: usize) -> Vec<u8> {
    let mut heads = vec![0; num_items];
    for &begin in offsets {
        if let Some(head) = heads.get_mut(begin as usize) {
            *head = 1;
        }
    }
    heads
}

fn scan<T: Words, O: Operator<T>>(
    input: &[T],
    heads: &[u8],
    output: &mut [T],
    pick: impl Fn(T, T) -> T + Sync,
) {
    assert_eq!(input.len(), heads.len(), "each item needs one head");
    assert_eq!(input.len(), output.len(), "input and output must have the same length");
    let tiles = input
        .par_chunks(tile_items::<T, SEGMENTED_ROWS>())
        .zip(heads.par_chunks(tile_items::<T, SEGMENTED_ROWS>()));
    let tile = |(items, heads): (&[T], &[u8])| {
        let items: Vec<_> =
            items.iter().zip(heads).map(|(&item, &head)| SinceHead::new(item, head != 0)).collect();
        Tile::<_, SEGMENTED_ROWS>::new::<Restarting<O>>(&items, T::PER_16)
    };
    let mut before: Vec<SinceHead<T>> = tiles.clone().map(|part| tile(part).sum).collect();
    fixed_order::<_, Restarting<O>>(&mut before);
    let tiles = tiles.zip(before).zip(output.par_chunks_mut(tile_items::<T, SEGMENTED_ROWS>()));
    tiles.for_each(|(((items, heads), before), output)| {
        let sums = tile((items, heads));
        for (lane, output) in output.chunks_mut(T::PER_16).enumerate() {
            let before = sums.warp_before::<Restarting<O>>(lane, before).sum;
            let mut sum = sums.lanes_before[lane];
            for (e, slot) in output.iter_mut().enumerate() {
                let item = SinceHead::new(items[lane * T::PER_16 + e], heads[lane * T::PER_16 + e] != 0);
                let without = if item.has_head() { O::IDENTITY } else { sum.sum };
                sum = Restarting::<O>::combine(sum, item);
                let warp_sum = pick(without, sum.sum);
                *slot = if sum.has_head() { warp_sum } else { O::combine(before, warp_sum) };
            }
        }
    });
}
