//! Stable merge sort: tiles are sorted in shared memory, then runs are merged pairwise until one is left. Keys stay
//! folded from the first pass to the last; see [`merge`](super::merge).

use super::merge::{Pair, THREADS, merge_min_blocks, min_blocks, tile_to_split};
use crate::block::merge::{Tile, TileSmem, clip};
use crate::policy::{MERGE, PER_ITEM_THREADS};
use crate::thread::carried::{Pairs, Source};
use crate::thread::order::*;
use crate::thread::radix_key::Fold;
use crate::thread::words::*;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// Returns how many blocks of the tile sort a multiprocessor must hold.
pub const fn sort_min_blocks<K: Words, V: Carried, O: Order<K, V>>() -> usize {
    min_blocks::<K, V, O>(MERGE.sort_min_blocks)
}

/// Sorts each tile; a block per tile. The number of items is `count[0]`, or the number of keys if `count` is empty. Keys
/// are folded by `fold` when they are loaded. `fold_out` is undone when they are stored: it is `fold` if no merge pass
/// follows, else none.
#[kernel(
    family = "primitives-merge", block = THREADS, min_blocks = sort_min_blocks::<K, V, O>(),
    shared = TileSmem<K, V, THREADS, ITEMS>, hot
)]
#[instances(K = [u32], V = [NoValue, u32], O = [Ascending], ITEMS = [23])]
#[instances(K = [u64], V = [NoValue, u32], O = [Ascending], ITEMS = [13])]
#[instance(Bits128, NoValue, Ascending, 7)]
pub unsafe fn primitives_sort_tiles<K: Words, V: Carried, O: Order<K, V>, const ITEMS: usize>(
    input: Source<'_, K, V>,
    output: Pairs<'_, K, V>,
    count: Slice<u64>,
    fold: Fold,
    fold_out: Fold,
    lookup: Lookup<'_, K>,
) {
    let len = num_items(count, input.keys.len());
    let begin = thread::block_idx_x() as usize * THREADS * ITEMS;
    if begin < len {
        let len = clip(len, begin, THREADS * ITEMS);
        let (input, output) = (input.part(begin, len), output.part(begin, len));
        SortTile::<_, _, O, ITEMS> { input, output, fold, fold_out, lookup, order: PhantomData }.run()
    }
}

/// Writes, for each tile of `tile_items` items, how many items of the first run of its pair precede it. Runs have
/// `width` tiles, a power of two. Otherwise like `primitives_merge_partition`, with a count as in
/// `primitives_sort_tiles`.
#[kernel(family = "primitives-merge", block = PER_ITEM_THREADS, min_blocks = MERGE.split_min_blocks, hot)]
#[instances(K = [u32, u64], V = [NoValue, u32], O = [Ascending])]
#[instance(Bits128, NoValue, Ascending)]
pub unsafe fn primitives_merge_runs_partition<K: Words, V: Carried, O: Order<K, V>>(
    input: Source<'_, K, V>,
    count: Slice<u64>,
    width: u64,
    splits: SliceMut<u64>,
    tile_items: u64,
    lookup: Lookup<'_, K>,
) {
    let (len, tile_items) = (num_items(count, input.keys.len()), tile_items as usize);
    let tile = tile_to_split(splits.len());
    let first_tile = first_of_pair(tile, width);
    let runs = Runs { all: input, len, width: width as usize * tile_items };
    let pair = runs.pair::<O>(first_tile * tile_items, lookup);
    pair.partition(splits, tile, (tile - first_tile) * tile_items)
}

/// Merges pairs of sorted runs of `width` tiles, a power of two; a block per tile of the output. `splits` are the
/// begins of the tiles. Otherwise like `primitives_sort_tiles`.
#[kernel(
    family = "primitives-merge", block = THREADS, min_blocks = merge_min_blocks::<K, V, O>(),
    shared = TileSmem<K, V, THREADS, ITEMS>, hot
)]
#[instances(K = [u32], V = [NoValue, u32], O = [Ascending], ITEMS = [23])]
#[instances(K = [u64], V = [NoValue, u32], O = [Ascending], ITEMS = [13])]
#[instance(Bits128, NoValue, Ascending, 7)]
pub unsafe fn primitives_merge_runs<K: Words, V: Carried, O: Order<K, V>, const ITEMS: usize>(
    input: Source<'_, K, V>,
    output: Pairs<'_, K, V>,
    count: Slice<u64>,
    width: u64,
    splits: Slice<u64>,
    fold_out: Fold,
    lookup: Lookup<'_, K>,
) {
    let (len, tile_items) = (num_items(count, input.keys.len()), THREADS * ITEMS);
    let tile = thread::block_idx_x() as usize;
    if tile * tile_items < len {
        let first_tile = first_of_pair(tile, width);
        let begin = first_tile * tile_items;
        let pair = Runs { all: input, len, width: width as usize * tile_items }.pair::<O>(begin, lookup);
        let output = output.part(begin, pair.len());
        pair.merge_tile::<ITEMS>(output, fold_out, splits, tile, (tile - first_tile) * tile_items)
    }
}

/// Pairs each point's first coordinate in the order of its super key with its id, the point's index; a thread per point.
#[kernel(family = "primitives-merge", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn primitives_super_keys<C: Words>(points: Lookup<'_, C>, pairs: Pairs<'_, C, u32>) {
    let point = thread::index_1d_u64() as usize;
    if point < pairs.keys.len() {
        let key = points.coords.load(point * points.dims as usize + points.axis as usize);
        pairs.store(point, key, point as u32);
    }
}

/// Returns the number of items.
#[inline(always)]
unsafe fn num_items(count: Slice<u64>, len: usize) -> usize {
    if count.is_empty() { len } else { count.load(0) as usize }
}

/// Adjacent sorted runs.
struct Runs<'a, K, V> {
    all: Source<'a, K, V>,
    len: usize,
    /// The items of a run; the last run may have fewer.
    width: usize,
}

impl<'a, K: Words, V: Carried> Runs<'a, K, V> {
    /// Returns the pair of runs that begins at `begin`; an empty pair beyond the end.
    #[inline(always)]
    unsafe fn pair<O: Order<K, V>>(&self, begin: usize, lookup: Lookup<'a, K>) -> Pair<'a, K, V, O> {
        let begin = if begin < self.len { begin } else { self.len };
        let first = self.all.part(begin, clip(self.len, begin, self.width));
        let second_begin = begin + first.keys.len();
        let second = self.all.part(second_begin, clip(self.len, second_begin, self.width));
        // Keys were folded when the tiles were sorted.
        Pair::new(first, second, Fold::NONE, lookup)
    }
}

/// Returns the first tile of the pair of runs of `width` tiles that contains `tile`.
#[inline(always)]
const fn first_of_pair(tile: usize, width: u64) -> usize {
    tile & !(2 * width as usize - 1)
}

/// The sort of one tile.
struct SortTile<'a, K, V, O, const ITEMS: usize> {
    input: Source<'a, K, V>,
    output: Pairs<'a, K, V>,
    fold: Fold,
    fold_out: Fold,
    lookup: Lookup<'a, K>,
    order: PhantomData<O>,
}

impl<K: Words, V: Carried, O: Order<K, V>, const ITEMS: usize> SortTile<'_, K, V, O, ITEMS> {
    #[inline(always)]
    unsafe fn run(self) {
        let tile = Tile::<K, V, O, ITEMS>::new(shared_mem::<TileSmem<K, V, THREADS, ITEMS>>(), self.lookup);
        let Self { input, output, fold, fold_out, .. } = self;
        let len = input.keys.len();
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
