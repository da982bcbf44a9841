//! Segmented scan and reduce on the CPU; see [the GPU version](crate::primitives::segmented).

use super::lanes;
use super::scan::{Tile, fixed_order};
use kauri_kernels::block::tile::{WARPS, row_items, tile_items};
use kauri_kernels::policy::{SEGMENTED_REDUCE_LANE_ITEMS, SEGMENTED_ROWS};
use kauri_kernels::primitives::segmented::reduce::{chunk_items, shares};
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
    let starts = &offsets[..offsets.len() - 1];
    let (len, num_blocks) = shares(input.len(), starts.len());
    let shares: Vec<_> = (0..num_blocks * WARPS)
        .into_par_iter()
        .map(|warp| Share::new::<O>(input, starts, warp, len))
        .collect();
    let mut warps_before = Vec::with_capacity(shares.len());
    let mut before = Vec::with_capacity(num_blocks);
    for block in shares.chunks(WARPS) {
        let carries: Vec<_> = block.iter().map(|share| share.carry).collect();
        let mut sums = lanes::padded::<_, Restarting<O>>(&carries);
        lanes::inclusive::<_, Restarting<O>>(&mut sums);
        warps_before
            .extend((0..WARPS).map(|warp| if warp > 0 { sums[warp - 1] } else { Restarting::<O>::IDENTITY }));
        before.push(sums[31]);
    }
    fixed_order::<_, Restarting<O>>(&mut before);
    let mut sums = Vec::with_capacity(offsets.len());
    for (warp, mut share) in shares.into_iter().enumerate() {
        if let Some(first) = share.sums.first_mut() {
            let before = Restarting::<O>::combine(before[warp / WARPS], warps_before[warp]).sum;
            *first = O::combine(before, *first);
        }
        sums.append(&mut share.sums);
    }
    // No segment ends at the first start.
    sums.remove(0);
    sums
}

/// A warp's share of a segmented reduction.
struct Share<T> {
    /// The sums at the ends of segments, each since the end before it or the begin of the share.
    sums: Vec<T>,
    /// The sum since the last end.
    carry: SinceHead<T>,
}

impl<T: Words> Share<T> {
    /// Sums the share of a warp, `len` items and ends, with the kernel's association.
    fn new<O: Operator<T>>(input: &[T], starts: &[u64], warp: usize, len: usize) -> Self {
        let end = |s: usize| starts.get(s).map_or(input.len(), |&start| start as usize);
        let num_all = input.len() + starts.len() + 1;
        // The number of ends before a position of the merged items and ends.
        let split = |position: usize| {
            let (mut low, mut high) = (position.saturating_sub(input.len()), position.min(starts.len() + 1));
            while low < high {
                let middle = low.midpoint(high);
                match middle < starts.len() && end(middle) < position - middle {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            low
        };
        let sides = [warp, warp + 1].map(|warp| (warp * len).min(num_all));
        let ends = sides.map(split);
        let items = [sides[0] - ends[0], sides[1] - ends[1]];

        let first_row = items[0] - items[0] % row_items::<T>();
        let chunk_of = |end: usize| (end - first_row).saturating_sub(1) / chunk_items::<T>();
        let (mut sums, mut lanes, mut done) = (Vec::new(), [O::IDENTITY; 32], items[0]);
        let add = |lanes: &mut [T; 32], from: usize, to: usize| {
            for (i, &item) in (from..).zip(&input[from..to]) {
                let lane = i / T::PER_16 % 32;
                lanes[lane] = O::combine(lanes[lane], item);
            }
        };
        let mut last_chunk = None;
        for end in (ends[0]..ends[1]).map(end) {
            let is_open = last_chunk != Some(chunk_of(end));
            if is_open || end - done > SEGMENTED_REDUCE_LANE_ITEMS as usize {
                add(&mut lanes, done, end);
                sums.push(lanes::reduce::<T, O>(lanes));
            } else {
                sums.push(input[done..end].iter().fold(O::IDENTITY, |sum, &item| O::combine(sum, item)));
            }
            (lanes, done, last_chunk) = ([O::IDENTITY; 32], end, Some(chunk_of(end)));
        }
        add(&mut lanes, done, items[1]);
        Self { carry: SinceHead::new(lanes::reduce::<T, O>(lanes), !sums.is_empty()), sums }
    }
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
