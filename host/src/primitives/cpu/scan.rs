//! Scan, see [the GPU's](crate::primitives::scan).

use super::lanes;
use kauri_kernels::block::tile::{WARPS, tile_items};
use kauri_kernels::policy::SCAN_ROWS;
use kauri_kernels::thread::operator::Operator;
use kauri_kernels::thread::words::Words;
use kauri_kernels::warp::look_back::GROUP;
use rayon::prelude::*;

/// Makes of each item what it and the items before it add up to.
///
/// # Panics
/// If the lengths differ.
pub fn inclusive<T: Words, O: Operator<T>>(input: &[T], output: &mut [T]) {
    scan::<T, O>(input, output, |_, with_item| with_item);
}

/// Makes of each item what the items before it add up to; the first becomes the operator's identity.
///
/// # Panics
/// If the lengths differ.
pub fn exclusive<T: Words, O: Operator<T>>(input: &[T], output: &mut [T]) {
    scan::<T, O>(input, output, |before, _| before);
}

/// Writes for each item what `pick` takes of the sums without and with it.
fn scan<T: Words, O: Operator<T>>(input: &[T], output: &mut [T], pick: impl Fn(T, T) -> T + Sync) {
    assert_eq!(input.len(), output.len(), "as many items come out as go in");
    let tiles = input.par_chunks(tile_items::<T, SCAN_ROWS>());
    let tile = |items: &[T]| Tile::<T, SCAN_ROWS>::new::<O>(items, T::PER_16);
    let mut before: Vec<T> = tiles.clone().map(|items| tile(items).sum).collect();
    fixed_order::<T, O>(&mut before);
    let tiles = tiles.zip(before).zip(output.par_chunks_mut(tile_items::<T, SCAN_ROWS>()));
    tiles.for_each(|((items, before), output)| tile(items).scan::<O>(items, before, output, &pick));
}

/// Makes of the sums of tiles what the tiles before each add up to, with the brackets of `FixedOrder`.
pub(super) fn fixed_order<T: Words, O: Operator<T>>(sums: &mut [T]) {
    let reduce = |values: &[T]| lanes::reduce::<T, O>(lanes::padded::<T, O>(values));
    let mut large_before = O::IDENTITY;
    for large in sums.chunks_mut(GROUP * GROUP) {
        let mut group_sums = Vec::with_capacity(GROUP);
        let mut before = large_before;
        for group in large.chunks_mut(GROUP) {
            before = O::combine(large_before, reduce(&group_sums));
            let sums = group.to_vec();
            for (i, place) in group.iter_mut().enumerate() {
                *place = O::combine(before, reduce(&sums[..i]));
            }
            let (last, others) = sums.split_last().expect("a chunk has items");
            group_sums.push(O::combine(reduce(others), *last));
        }
        let last = group_sums.last().copied().unwrap_or(O::IDENTITY);
        large_before = O::combine(before, last);
    }
}

/// The sums within a tile.
pub(super) struct Tile<T, const ROWS: usize> {
    /// For each warp, row and lane what the warp's items before the lane's 16 bytes add up to.
    pub(super) lanes_before: Vec<T>,
    /// For each warp what the tile's warps before add up to.
    warps_before: [T; WARPS],
    pub(super) sum: T,
}

impl<T: Words, const ROWS: usize> Tile<T, ROWS> {
    /// Sums up the items of a tile with the kernel's brackets; a lane has `per_16` in 16 bytes.
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

    /// What the items before the warp of a lane add up to, with `before` the tile.
    pub(super) fn warp_before<O: Operator<T>>(&self, lane: usize, before: T) -> T {
        O::combine(before, self.warps_before[lane / (32 * ROWS)])
    }

    fn scan<O: Operator<T>>(&self, items: &[T], before: T, output: &mut [T], pick: impl Fn(T, T) -> T) {
        for (lane, (items, output)) in items.chunks(T::PER_16).zip(output.chunks_mut(T::PER_16)).enumerate() {
            let before = self.warp_before::<O>(lane, before);
            let mut sum = self.lanes_before[lane];
            for (&item, place) in items.iter().zip(output) {
                let with_item = O::combine(sum, item);
                *place = O::combine(before, pick(sum, with_item));
                sum = with_item;
            }
        }
    }
}
