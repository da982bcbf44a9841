//! All pairs of boxes by a grid with a layer for each partition of the left boxes (Ward, He, Zhang, Qin 2014, *Real-time continuous
//! intersection joins over large sets of moving objects using graphic processing units*, as Løvik 2020 describes its static part).
//!
//! A bit of a cell's words says that boxes of a partition touch the cell. The bit string of a right box tells the partitions that may
//! have pairs with it. The right boxes of a partition are its stream.

use super::flat_grid::{FlatGrid, warp_or};
use super::geometry::Shape;
use super::nested::{BoxSets, NestedSmem, Tile};
use super::output::PairOutput;
use crate::policy::{JOIN_THREADS, PER_ITEM_THREADS};
use crate::thread::coord::Float;
use crate::thread::items::{own_item, strided};
use cuda_std::prelude::*;

/// Partitions of a word.
pub const WORD_PARTITIONS: u32 = u64::BITS;

/// Returns the first of the boxes of a partition, of `len` boxes in order: box `i` belongs to partition `i * num_partitions / len`.
#[inline(always)]
pub const fn partition_begin(partition: u32, num_partitions: u32, len: usize) -> usize {
    (partition as u64 * len as u64).div_ceil(num_partitions as u64) as usize
}

/// Writes the position along a Z-order curve of each box, and its id; a thread per box.
#[kernel(family = "research-join-boxes", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_boxes_z_codes<C: Float, const D: usize>(
    corners: Slice<C>,
    dims: u32,
    grid: Slice<f64>,
    shape: u32,
    codes: SliceMut<u64>,
    ids: SliceMut<u32>,
) {
    let Some(i) = own_item(ids.len()) else { return };
    let grid = FlatGrid::<D>::load(grid, dims as usize, Shape::from_word(shape).bits);
    codes.store(i, grid.z_code(corners, i));
    ids.store(i, i as u32);
}

/// Marks the cells that the left boxes touch, which are 0 before; a thread per box. With layers, the number of each cell of the layer of
/// the box's partition becomes 1. Otherwise the bit of the partition is set in a word of the cell; there is an array of words for every
/// [`WORD_PARTITIONS`] partitions.
#[kernel(family = "research-join-boxes", block = PER_ITEM_THREADS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_boxes_mark<C: Float, const D: usize>(
    corners: Slice<C>,
    dims: u32,
    grid: Slice<f64>,
    shape: u32,
    num_partitions: u32,
    num_cells: u32,
    layers: SliceMut<u32>,
    words: SliceMut<u64>,
) {
    let i = thread::index_1d_u64() as usize;
    let grid = FlatGrid::<D>::load(grid, dims as usize, Shape::from_word(shape).bits);
    let len = corners.len() / (2 * dims as usize);
    let partition = (i as u64 * u64::from(num_partitions) / len as u64) as u32;
    grid.for_each_cell(&grid.load_range(corners, i), partition, u64::MAX, |partition, cell| {
        if layers.is_empty() {
            let at = (partition / WORD_PARTITIONS) as usize * num_cells as usize + cell;
            words.atomic_or(at, 1 << (partition % WORD_PARTITIONS), Ordering::Relaxed, Scope::Device);
        } else {
            // A plain store on a GPU. Several threads may store the same number.
            let at = partition as usize * num_cells as usize + cell;
            layers.atomic_store(at, 1, Ordering::Relaxed, Scope::Device);
        }
        0
    });
}

/// Combines the layers to words; a thread per word.
#[kernel(family = "research-join-boxes", block = PER_ITEM_THREADS)]
pub unsafe fn join_boxes_combine(
    layers: Slice<u32>,
    num_partitions: u32,
    num_cells: u32,
    words: SliceMut<u64>,
) {
    let Some(i) = own_item(words.len()) else { return };
    let (num_cells, mut word) = (num_cells as usize, 0_u64);
    let (first, cell) = ((i / num_cells) as u32 * WORD_PARTITIONS, i % num_cells);
    for bit in 0..WORD_PARTITIONS {
        if first + bit < num_partitions {
            word |= u64::from(layers.load((first + bit) as usize * num_cells + cell)) << bit;
        }
    }
    words.store(i, word);
}

/// Writes a word of the bit string of each right box: the combined words of the cells that it touches; a thread per box. `full` has the
/// bits of the partitions of the word.
#[kernel(family = "research-join-boxes", block = PER_ITEM_THREADS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_boxes_probe<C: Float, const D: usize>(
    corners: Slice<C>,
    dims: u32,
    grid: Slice<f64>,
    shape: u32,
    full: u64,
    words: Slice<u64>,
    bits: SliceMut<u64>,
) {
    let i = thread::index_1d_u64() as usize;
    let grid = FlatGrid::<D>::load(grid, dims as usize, Shape::from_word(shape).bits);
    let found = grid.for_each_cell(&grid.load_range(corners, i), 0, full, |_, cell| words.load(cell));
    if i < bits.len() {
        bits.store(i, found);
    }
}

/// Counts the boxes of each stream, whose lengths are 0 before, and writes their ids unless `ids` is empty; a thread per right box.
#[kernel(family = "research-join-boxes", block = PER_ITEM_THREADS, hot)]
pub unsafe fn join_boxes_streams(
    bits: Slice<u64>,
    num_right: u32,
    lens: SliceMut<u32>,
    begins: Slice<u64>,
    ids: SliceMut<u32>,
) {
    let (i, num_right) = (thread::index_1d_u64() as usize, num_right as usize);
    for first in strided(0, lens.len(), WORD_PARTITIONS as usize) {
        let at = first / WORD_PARTITIONS as usize * num_right + i;
        let word = if i < num_right { bits.load(at) } else { 0 };
        let mut all = warp_or(word);
        while all != 0 {
            let bit = all.trailing_zeros();
            all &= all - 1;
            let (stream, is_in) = (first + bit as usize, word >> bit & 1 != 0);
            let lanes = warp::warp_vote_ballot(warp::FULL_MASK, is_in);
            let mut begin = 0;
            if warp::lane_id() == 0 {
                begin = lens.atomic_add(stream, lanes.count_ones(), Ordering::Relaxed, Scope::Device);
            }
            if !ids.is_empty() {
                let begin = warp::shuffle_idx(warp::FULL_MASK, begin, 0);
                let own = begin + (lanes & warp::lane_mask_lt()).count_ones();
                if is_in {
                    ids.store(begins.load(stream) as usize + own as usize, i as u32);
                }
            }
        }
    }
}

/// The partitions of the left boxes, and the right boxes that may have pairs with them.
#[derive(Clone, Copy, KernelArgs)]
pub struct Streams<'a> {
    /// Number of partitions.
    pub num_partitions: u32,
    /// The ids of the left boxes in the order of the partitions; empty if this is the order of the input.
    pub left_ids: Slice<'a, u32>,
    /// The bit strings of the right boxes, an array for every [`WORD_PARTITIONS`] partitions. Used if there are no streams.
    pub bits: Slice<'a, u64>,
    /// Where the streams begin.
    pub begins: Slice<'a, u64>,
    /// The lengths of the streams.
    pub lens: Slice<'a, u32>,
    /// The ids of the streams; empty if there are none.
    pub ids: Slice<'a, u32>,
}

/// Counts or writes the pairs of tiles of left boxes, one per thread, with their streams. The left boxes of a block are of one partition,
/// which has `num_tiles` tiles; `num_parts` blocks share its stream. Counts are 0 before.
#[kernel(family = "research-join-boxes", block = JOIN_THREADS, shared = NestedSmem<C, D>, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_boxes_multi_layer<C: Float, const D: usize>(
    sets: BoxSets<'_, C>,
    streams: Streams<'_>,
    num_tiles: u32,
    num_parts: u32,
    output: PairOutput<'_>,
) {
    let tile = Tile::<C, D>::new(shared_mem(), sets);
    let (block, thread) = (thread::block_idx_x(), thread::thread_idx_x() as usize);
    let (part, partition) = ((block % num_parts) as usize, block / num_parts / num_tiles);
    let [num_left, num_right] = sets.lens();
    let begin = |partition| partition_begin(partition, streams.num_partitions, num_left);
    let first = begin(partition) + (block / num_parts % num_tiles) as usize * JOIN_THREADS;
    let end = begin(partition + 1);
    // The whole block returns.
    if first >= end {
        return;
    }
    let i = first + thread;
    let own = if i < end { tile.left_box(i) } else { None };
    let own_id = if i < end && !streams.left_ids.is_empty() { streams.left_ids.load(i) } else { i as u32 };

    let has_streams = !streams.ids.is_empty();
    let stream = partition as usize;
    let (begin, len) = if has_streams {
        (streams.begins.load(stream) as usize, streams.lens.load(stream) as usize)
    } else {
        ((partition / WORD_PARTITIONS) as usize * num_right, num_right)
    };
    let mut count = 0;
    for chunk in strided(part, len.div_ceil(JOIN_THREADS), num_parts as usize) {
        let at = chunk * JOIN_THREADS + thread;
        let (mut id, mut is_in) = (at as u32, at < len);
        if is_in {
            if has_streams {
                id = streams.ids.load(begin + at);
            } else {
                is_in = streams.bits.load(begin + at) >> (partition % WORD_PARTITIONS) & 1 != 0;
            }
        }
        let num_staged = tile.stage(if is_in { Some(id) } else { None });
        if let Some(own) = &own {
            count += tile.join(own_id, own, num_staged, &output);
        }
    }
    output.add_to_total(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_hold_the_boxes_of_the_formula() {
        for (len, num_partitions) in [(10_usize, 4_u32), (3, 64), (64, 64), (1000, 7), (5, 1)] {
            for partition in 0..num_partitions {
                let range = partition_begin(partition, num_partitions, len)
                    ..partition_begin(partition + 1, num_partitions, len);
                for i in 0..len {
                    let own = (i as u64 * u64::from(num_partitions) / len as u64) as u32;
                    assert_eq!(range.contains(&i), own == partition, "{i} of {len} in {num_partitions}");
                }
            }
        }
    }
}
