//! Stable merge sort: tiles are sorted in shared memory, then runs are merged pairwise until one is left. Keys stay
//! folded from the first pass to the last; see [`merge`](super::merge).

use super::merge::{THREADS, TwoRuns, merge_min_blocks, min_blocks, tile_to_split};
use crate::block::merge::{Tile, TileSmem, clip};
use crate::policy::{MERGE, PER_ITEM_THREADS};
use crate::thread::carried::Pairs;
use crate::thread::items::own_item;
use crate::thread::order::*;
use crate::thread::radix_key::Fold;
use crate::thread::words::*;
use cuda_std::prelude::*;

/// Returns how many blocks of the tile sort a multiprocessor must hold.
pub const fn sort_min_blocks<K: Words, V: Carried, O: Order<K, V>>() -> usize {
    min_blocks::<K, V, O>(MERGE.sort_min_blocks)
}

/// Sorts each tile; a block per tile.
#[kernel(
    family = "primitives-merge", block = THREADS, min_blocks = sort_min_blocks::<K, V, O>(),
    shared = TileSmem<K, V, THREADS, ITEMS>, hot
)]
#[instances(K = [u32], V = [NoValue, u32], O = [Ascending], ITEMS = [23])]
#[instances(K = [u64], V = [NoValue, u32], O = [Ascending], ITEMS = [13])]
#[instance(Bits128, NoValue, Ascending, 7)]
pub unsafe fn primitives_sort_tiles<K: Words, V: Carried, O: Order<K, V>, const ITEMS: usize>(
    sort: TileSort<'_, K, V>,
) {
    sort.run::<O, ITEMS>()
}

/// Writes, for each tile of `tile_items` items, how many items of the first run of its pair precede it. Otherwise like
/// `primitives_merge_partition`.
#[kernel(family = "primitives-merge", block = PER_ITEM_THREADS, min_blocks = MERGE.split_min_blocks, hot)]
#[instances(K = [u32, u64], V = [NoValue, u32], O = [Ascending])]
#[instance(Bits128, NoValue, Ascending)]
pub unsafe fn primitives_merge_runs_partition<K: Words, V: Carried, O: Order<K, V>>(
    runs: SortedRuns<'_, K, V>,
    splits: SliceMut<u64>,
    tile_items: u64,
) {
    runs.partition::<O>(splits, tile_items as usize)
}

/// Merges pairs of sorted runs; a block per tile of the output. `splits` are the begins of the tiles. `fold_out` is undone
/// when keys are stored.
#[kernel(
    family = "primitives-merge", block = THREADS, min_blocks = merge_min_blocks::<K, V, O>(),
    shared = TileSmem<K, V, THREADS, ITEMS>, hot
)]
#[instances(K = [u32], V = [NoValue, u32], O = [Ascending], ITEMS = [23])]
#[instances(K = [u64], V = [NoValue, u32], O = [Ascending], ITEMS = [13])]
#[instance(Bits128, NoValue, Ascending, 7)]
pub unsafe fn primitives_merge_runs<K: Words, V: Carried, O: Order<K, V>, const ITEMS: usize>(
    runs: SortedRuns<'_, K, V>,
    output: Pairs<'_, K, V>,
    splits: Slice<u64>,
    fold_out: Fold,
) {
    runs.merge::<O, ITEMS>(output, splits, fold_out)
}

/// Pairs each point's first coordinate in the order of its super key with its id, the point's index; a thread per point.
#[kernel(family = "primitives-merge", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn primitives_super_keys<C: Words>(points: Lookup<'_, C>, pairs: Pairs<'_, C, u32>) {
    let Some(point) = own_item(pairs.keys.len()) else { return };
    let key = points.coords.load(point * points.dims as usize + points.axis as usize);
    pairs.store(point, key, point as u32);
}

/// Returns the number of items.
#[inline(always)]
unsafe fn num_items(count: Slice<u64>, len: usize) -> usize {
    if count.is_empty() { len } else { count.load(0) as usize }
}

/// Adjacent sorted runs.
#[derive(Clone, Copy, KernelArgs)]
pub struct SortedRuns<'a, K, V> {
    /// The items, with folded keys.
    pub all: crate::thread::carried::Source<'a, K, V>,
    /// The number of items; empty for all.
    pub count: Slice<'a, u64>,
    /// The tiles of a run, a power of two; the last run may have fewer.
    pub width: u64,
    /// The data that the order looks up.
    pub lookup: crate::thread::order::Lookup<'a, K>,
}

impl<'a, K: Words, V: Carried> SortedRuns<'a, K, V> {
    /// Splits the tiles of all pairs of runs.
    #[inline(always)]
    pub(super) unsafe fn partition<O: Order<K, V>>(&self, splits: SliceMut<'_, u64>, tile_items: usize) {
        let tile = tile_to_split(splits.len());
        let (first_tile, pair) = self.pair(tile, tile_items);
        pair.partition::<O>(splits, tile, (tile - first_tile) * tile_items)
    }

    /// Merges the tile of the block.
    #[inline(always)]
    pub(super) unsafe fn merge<O: Order<K, V>, const ITEMS: usize>(
        &self,
        output: Pairs<'_, K, V>,
        splits: Slice<'_, u64>,
        fold_out: Fold,
    ) {
        let (tile, tile_items) = (thread::block_idx_x() as usize, THREADS * ITEMS);
        if tile * tile_items < num_items(self.count, self.all.keys.len()) {
            let (first_tile, pair) = self.pair(tile, tile_items);
            let output = output.part(first_tile * tile_items, pair.len());
            pair.merge_tile::<O, ITEMS>(output, fold_out, splits, tile, (tile - first_tile) * tile_items)
        }
    }

    /// Returns the pair of runs that contains tile `tile`, and its first tile; an empty pair beyond the end.
    #[inline(always)]
    unsafe fn pair(&self, tile: usize, tile_items: usize) -> (usize, TwoRuns<'a, K, V>) {
        let len = num_items(self.count, self.all.keys.len());
        let (first_tile, run_len) = (tile & !(2 * self.width as usize - 1), self.width as usize * tile_items);
        let begin = first_tile * tile_items;
        let begin = if begin < len { begin } else { len };
        let first = self.all.part(begin, clip(len, begin, run_len));
        let second_begin = begin + first.keys.len();
        let second = self.all.part(second_begin, clip(len, second_begin, run_len));
        // Keys were folded when the tiles were sorted.
        (first_tile, TwoRuns { first, second, fold: Fold::NONE, lookup: self.lookup })
    }
}

/// The sort of tiles.
#[derive(Clone, Copy, KernelArgs)]
pub struct TileSort<'a, K, V> {
    /// The input.
    pub input: crate::thread::carried::Source<'a, K, V>,
    /// The output.
    pub output: crate::thread::carried::Pairs<'a, K, V>,
    /// The number of items; empty for all.
    pub count: Slice<'a, u64>,
    /// The folding of keys when they are loaded.
    pub fold: crate::thread::radix_key::Fold,
    /// The folding that is undone when keys are stored: `fold` if no merge pass follows, else none.
    pub fold_out: crate::thread::radix_key::Fold,
    /// The data that the order looks up.
    pub lookup: crate::thread::order::Lookup<'a, K>,
}

impl<K: Words, V: Carried> TileSort<'_, K, V> {
    /// Sorts the tile of the block.
    #[inline(always)]
    pub(super) unsafe fn run<O: Order<K, V>, const ITEMS: usize>(self) {
        let Self { fold, fold_out, .. } = self;
        let len = num_items(self.count, self.input.keys.len());
        let begin = thread::block_idx_x() as usize * THREADS * ITEMS;
        if begin >= len {
            return;
        }
        let len = clip(len, begin, THREADS * ITEMS);
        let (input, output) = (self.input.part(begin, len), self.output.part(begin, len));
        let tile = Tile::<K, V, O, ITEMS>::new(shared_mem::<TileSmem<K, V, THREADS, ITEMS>>(), self.lookup);
        let load = |i: u32, distance: usize| {
            let i = i as usize + distance;
            (O::loaded(fold, input.keys.load(i)), input.value(i))
        };
        tile.fill(len, THREADS, load);
        // A warp loads, sorts and writes the items of its own threads: a warp barrier is enough.
        warp::sync_warp(warp::FULL_MASK);
        tile.sort(len);
        warp::sync_warp(warp::FULL_MASK);
        let store = |i: usize, (key, value): (K, V)| output.store(i, O::stored(fold_out, key), value);
        tile.drain(len, THREADS, store);
    }
}
