//! Scan on the CPU; see [the GPU version](crate::primitives::scan).

use super::lanes;
use kauri_kernels::block::tile::{WARPS, tile_items};
use kauri_kernels::policy::SCAN_ROWS;
use kauri_kernels::thread::operator::Operator;
use kauri_kernels::thread::words::Words;
use kauri_kernels::warp::look_back::GROUP;
use rayon::prelude::*;

/// Writes the inclusive scan of the input.
///
/// # Panics
/// Panics if the lengths differ.
pub fn inclusive<T: Words, O: Operator<T>>(input: &[T], output: &mut [T]) {
    scan::<T, O>(input, output, |_, with_item| with_item);
}

/// Writes the exclusive scan of the input; the first item becomes the operator's identity.
///
/// # Panics
/// Panics if the lengths differ.
pub fn exclusive<T: Words, O: Operator<T>>(input: &[T], output: &mut [T]) {
    scan::<T, O>(input, output, |before, _| before);
}

/// Scans the input; `pick` chooses between the sums without and with the item.
fn scan<T: Words, O: Operator<T>>(input: &[T], output: &mut [T], pick: impl Fn(T, T) -> T + Sync) {
    assert_eq!(input.len(), output.len(), "input and output must have the same length");
    let tiles = input.par_chunks(tile_items::<T, SCAN_ROWS>());
    let tile = |items: &[T]| Tile::<T, SCAN_ROWS>::new::<O>(items, T::PER_16);
    let mut before: Vec<T> = tiles.clone().map(|items| tile(items).sum).collect();
    fixed_order::<T, O>(&mut before);
    let tiles = tiles.zip(before).zip(output.par_chunks_mut(tile_items::<T, SCAN_ROWS>()));
    tiles.for_each(|((items, before), output)| tile(items).scan::<O>(items, before, output, &pick));
}

/// Replaces the sums of tiles by their exclusive scan, with the association of `FixedOrder`.
pub(super) fn fixed_order<T: Words, O: Operator<T>>(sums: &mut [T]) {
    let reduce = |values: &[T]| lanes::reduce::<T, O>(lanes::padded::<T, O>(values));
    let mut large_before = O::IDENTITY;
    for large in sums.chunks_mut(GROUP * GROUP) {
        let mut group_sums = Vec::with_capacity(GROUP);
        let mut before = large_before;
        for group in large.chunks_mut(GROUP) {
            before = O::combine(large_before, reduce(&group_sums));
            let sums = group.to_vec();
            for (i, slot) in group.iter_mut().enumerate() {
                *slot = O::combine(before, reduce(&sums[..i]));
            }
            let (last, others) = sums.split_last().expect("a chunk has items");
            group_sums.push(O::combine(reduce(others), *last));
        }
        let last = group_sums.last().copied().unwrap_or(O::IDENTITY);
        large_before = O::combine(before, last);
    }
}

/// The partial sums of a tile.
pub(super) struct Tile<T, const ROWS: usize> {
    /// For each warp, row and lane, the sum of the warp's items before the lane's 16 bytes.
    pub(super) lanes_before: Vec<T>,
    /// For each warp, the sum of the tile's earlier warps.
    warps_before: [T; WARPS],
    pub(super) sum: T,
}

impl<T: Words, const ROWS: usize> Tile<T, ROWS> {
    /// Sums the items of a tile with the kernel's association. A lane has `per_16` items in 16 bytes.
    pub(super) fn new<O: Operator<T>>(items: &[T], per_16: usize) -> Self {
        let mut lanes_before = Vec::with_capacity(WARPS * ROWS * 32);
        let mut warp_sums = [O::IDENTITY; 32];
        for (warp, warp_sum) in warp_sums.iter_mut().enumerate().take(WARPS) {
            for row in 0..ROWS {
                let begin = (warp * ROWS + row) * 32 * per_16;
                let item = |i: usize| items.get(begin + i).copied().unwrap_or(O::IDENTITY);
                let mut sums: [T; 32] = std::array::from_fn(|lane| {
                    let first = lane * per_16;
                    (1..per_16).fold(item(first), |sum, e| O::combine(sum, item(first + e)))
                });
                lanes::inclusive::<T, O>(&mut sums);
                let before = |lane: usize| if lane > 0 { sums[lane - 1] } else { O::IDENTITY };
                lanes_before.extend((0..32).map(|lane| O::combine(*warp_sum, before(lane))));
                *warp_sum = O::combine(*warp_sum, sums[31]);
            }
        }
        lanes::inclusive::<T, O>(&mut warp_sums);
        let warps_before =
            std::array::from_fn(|warp| if warp > 0 { warp_sums[warp - 1] } else { O::IDENTITY });
        Self { lanes_before, warps_before, sum: warp_sums[31] }
    }

    /// Returns the sum of all items before the warp of a lane, given the sum `before` the tile.
    pub(super) fn warp_before<O: Operator<T>>(&self, lane: usize, before: T) -> T {
        O::combine(before, self.warps_before[lane / (32 * ROWS)])
    }

    fn scan<O: Operator<T>>(&self, items: &[T], before: T, output: &mut [T], pick: impl Fn(T, T) -> T) {
        for (lane, (items, output)) in items.chunks(T::PER_16).zip(output.chunks_mut(T::PER_16)).enumerate() {
            let before = self.warp_before::<O>(lane, before);
            let mut sum = self.lanes_before[lane];
            for (&item, slot) in items.iter().zip(output) {
                let with_item = O::combine(sum, item);
                *slot = O::combine(before, pick(sum, with_item));
                sum = with_item;
            }
        }
    }
}
