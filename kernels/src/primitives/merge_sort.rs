//! Merge of two sorted runs, and merge sort: tiles are sorted in shared memory, then runs merged pairwise, twice as long
//! each time. Stable. A tile of a merge finds its part of the runs by merge path (Green, McColl, Bader 2012).

use crate::block::merge::{THREADS, TILE, Tile, TileSmem, clip, min_blocks};
use crate::policy::PER_ITEM_THREADS;
use crate::thread::order::*;
use crate::thread::words::*;
use crate::warp::search::merge_split;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// Sorts each tile; a block a tile. Of the items there are `count`, or as many as keys if the count is empty. Values are empty
/// if there are none.
#[kernel(family = "primitives-merge", block = THREADS, min_blocks = min_blocks::<K>(), shared = TileSmem<K, V>, hot)]
#[instance(u32, NoValue, Ascending)]
#[instance(i32, NoValue, Ascending)]
#[instance(u64, NoValue, Ascending)]
#[instance(i64, NoValue, Ascending)]
#[instance(f32, NoValue, Ascending)]
#[instance(f64, NoValue, Ascending)]
#[instance(Bits128, NoValue, Ascending)]
#[instance(u32, u32, Ascending)]
#[instance(i32, u32, Ascending)]
#[instance(u64, u32, Ascending)]
#[instance(i64, u32, Ascending)]
#[instance(f32, u32, Ascending)]
#[instance(f64, u32, Ascending)]
#[instance(u32, u32, Descending)]
#[instance(u64, u32, Descending)]
#[instance(f32, u32, Descending)]
#[instance(f64, u32, Descending)]
#[instance(f32, u32, SuperKey)]
#[instance(f64, u32, SuperKey)]
pub unsafe fn primitives_sort_tiles<K: Words, V: Carried, O: Order<K, V>>(
    keys: Slice<K>,
    values: Slice<V>,
    keys_out: SliceMut<K>,
    values_out: SliceMut<V>,
    count: Slice<u64>,
    coords: Slice<K>,
    dims: u32,
    axis: u32,
) {
    let len = effective(count, keys.len());
    let begin = thread::block_idx_x() as usize * TILE;
    if begin < len {
        let input = Run { keys, values }.part(begin, clip(len, begin, TILE));
        let output = RunMut { keys: keys_out, values: values_out };
        SortTile::<_, _, O> { input, output, lookup: Lookup { coords, dims, axis }, order: PhantomData }
            .run(begin)
    }
}

/// Merges pairs of sorted runs of `width` items; a block a tile of the output. Otherwise as `primitives_sort_tiles`.
#[kernel(family = "primitives-merge", block = THREADS, min_blocks = min_blocks::<K>(), shared = MergeSmem<K, V>, hot)]
#[instance(u32, NoValue, Ascending)]
#[instance(i32, NoValue, Ascending)]
#[instance(u64, NoValue, Ascending)]
#[instance(i64, NoValue, Ascending)]
#[instance(f32, NoValue, Ascending)]
#[instance(f64, NoValue, Ascending)]
#[instance(Bits128, NoValue, Ascending)]
#[instance(u32, u32, Ascending)]
#[instance(i32, u32, Ascending)]
#[instance(u64, u32, Ascending)]
#[instance(i64, u32, Ascending)]
#[instance(f32, u32, Ascending)]
#[instance(f64, u32, Ascending)]
#[instance(u32, u32, Descending)]
#[instance(u64, u32, Descending)]
#[instance(f32, u32, Descending)]
#[instance(f64, u32, Descending)]
#[instance(f32, u32, SuperKey)]
#[instance(f64, u32, SuperKey)]
pub unsafe fn primitives_merge_runs<K: Words, V: Carried, O: Order<K, V>>(
    keys: Slice<K>,
    values: Slice<V>,
    keys_out: SliceMut<K>,
    values_out: SliceMut<V>,
    count: Slice<u64>,
    width: u64,
    coords: Slice<K>,
    dims: u32,
    axis: u32,
) {
    let (len, width) = (effective(count, keys.len()), width as usize);
    let begin = thread::block_idx_x() as usize * TILE;
    if begin < len {
        let pair = begin / (2 * width) * (2 * width);
        let input = Run { keys, values };
        let first = input.part(pair, clip(len, pair, width));
        let second = input.part(pair + first.keys.len(), clip(len, pair + width, width));
        let output = RunMut { keys: keys_out, values: values_out };
        let lookup = Lookup { coords, dims, axis };
        MergeTile::<_, _, O> { first, second, output, lookup, order: PhantomData }.run(pair, begin - pair)
    }
}

/// Merges two sorted runs; a block a tile of the output. Otherwise as `primitives_sort_tiles`.
#[kernel(family = "primitives-merge", block = THREADS, min_blocks = min_blocks::<K>(), shared = MergeSmem<K, V>, hot)]
#[instance(u32, NoValue, Ascending)]
#[instance(i32, NoValue, Ascending)]
#[instance(u64, NoValue, Ascending)]
#[instance(i64, NoValue, Ascending)]
#[instance(f32, NoValue, Ascending)]
#[instance(f64, NoValue, Ascending)]
#[instance(Bits128, NoValue, Ascending)]
#[instance(u32, u32, Ascending)]
#[instance(i32, u32, Ascending)]
#[instance(u64, u32, Ascending)]
#[instance(i64, u32, Ascending)]
#[instance(f32, u32, Ascending)]
#[instance(f64, u32, Ascending)]
#[instance(u32, u32, Descending)]
#[instance(u64, u32, Descending)]
#[instance(f32, u32, Descending)]
#[instance(f64, u32, Descending)]
#[instance(f32, u32, SuperKey)]
#[instance(f64, u32, SuperKey)]
pub unsafe fn primitives_merge<K: Words, V: Carried, O: Order<K, V>>(
    first_keys: Slice<K>,
    first_values: Slice<V>,
    second_keys: Slice<K>,
    second_values: Slice<V>,
    keys_out: SliceMut<K>,
    values_out: SliceMut<V>,
    coords: Slice<K>,
    dims: u32,
    axis: u32,
) {
    let first = Run { keys: first_keys, values: first_values };
    let second = Run { keys: second_keys, values: second_values };
    let output = RunMut { keys: keys_out, values: values_out };
    let lookup = Lookup { coords, dims, axis };
    let begin = thread::block_idx_x() as usize * TILE;
    MergeTile::<_, _, O> { first, second, output, lookup, order: PhantomData }.run(0, begin)
}

/// Sets each key to a coordinate of a point, and each id to the point's number; a thread a point.
#[kernel(family = "primitives-merge", block = PER_ITEM_THREADS)]
#[instance(f32)]
#[instance(f64)]
pub unsafe fn primitives_super_keys<C: Words>(
    coords: Slice<C>,
    dims: u32,
    axis: u32,
    keys: SliceMut<C>,
    ids: SliceMut<u32>,
) {
    let point = thread::index_1d_u64() as usize;
    if point < keys.len() {
        keys.store(point, coords.load(point * dims as usize + axis as usize));
        ids.store(point, point as u32);
    }
}

/// Orders with kernels.
#[diagnostic::on_unimplemented(
    message = "there is no kernel for the order `{Self}` of keys `{K}` with values `{V}`",
    note = "add an instance to `primitives_sort_tiles`, `primitives_merge_runs` and `primitives_merge` in a kernel crate \
            of your own"
)]
pub trait MergeOrder<K: Words, V: Carried>: Order<K, V> {}

macro_rules! merge_orders {
    ($($o:ty, $v:ty: $($k:ty),*;)*) => { $($( impl MergeOrder<$k, $v> for $o {} )*)* };
}
merge_orders! {
    Ascending, NoValue: u32, i32, u64, i64, f32, f64, Bits128;
    Ascending, u32: u32, i32, u64, i64, f32, f64;
    Descending, u32: u32, u64, f32, f64;
    SuperKey, u32: f32, f64;
}

/// How many items there are.
#[inline(always)]
unsafe fn effective(count: Slice<u64>, len: usize) -> usize {
    if count.is_empty() { len } else { count.load(0) as usize }
}

/// Shared memory of a merge.
#[repr(C)]
pub struct MergeSmem<K, V> {
    tile: TileSmem<K, V>,
    /// Items of the first run before the tile, and before its end.
    splits: [u64; 2],
}

/// Keys and values.
#[derive(Clone, Copy)]
struct Run<'a, K, V> {
    keys: Slice<'a, K>,
    values: Slice<'a, V>,
}

impl<K: Words, V: Carried> Run<'_, K, V> {
    #[inline(always)]
    unsafe fn part(&self, begin: usize, len: usize) -> Self {
        let values = if V::IS_CARRIED { self.values.part(begin, len) } else { self.values };
        Self { keys: self.keys.part(begin, len), values }
    }

    #[inline(always)]
    unsafe fn load(&self, i: usize) -> (K, V) {
        (self.keys.load(i), if V::IS_CARRIED { self.values.load(i) } else { V::ANY })
    }
}

/// Room for keys and values.
#[derive(Clone, Copy)]
struct RunMut<'a, K, V> {
    keys: SliceMut<'a, K>,
    values: SliceMut<'a, V>,
}

impl<K: Words, V: Carried> RunMut<'_, K, V> {
    /// Writes the first items of a tile from item `begin` on.
    #[inline(always)]
    unsafe fn store_tile<O: Order<K, V>>(&self, begin: usize, tile: &Tile<'_, K, V, O>, len: usize) {
        let mut i = thread::thread_idx_x() as usize;
        while i < len {
            let (key, value) = tile.get(i);
            self.keys.store(begin + i, key);
            if V::IS_CARRIED {
                self.values.store(begin + i, value);
            }
            i += THREADS;
        }
    }
}

/// One tile to be sorted.
struct SortTile<'a, K, V, O> {
    input: Run<'a, K, V>,
    output: RunMut<'a, K, V>,
    lookup: Lookup<'a, K>,
    order: PhantomData<O>,
}

impl<K: Words, V: Carried, O: Order<K, V>> SortTile<'_, K, V, O> {
    #[inline(always)]
    unsafe fn run(self, begin: usize) {
        let tile = Tile::<K, V, O>::new(shared_mem(), self.lookup);
        let len = self.input.keys.len();
        let mut i = thread::thread_idx_x() as usize;
        while i < len {
            tile.set(i, self.input.load(i));
            i += THREADS;
        }
        thread::sync_threads();
        tile.sort(len);
        self.output.store_tile(begin, &tile, len);
    }
}

/// One tile of the merge of two runs.
struct MergeTile<'a, K, V, O> {
    first: Run<'a, K, V>,
    second: Run<'a, K, V>,
    output: RunMut<'a, K, V>,
    lookup: Lookup<'a, K>,
    order: PhantomData<O>,
}

impl<K: Words, V: Carried, O: Order<K, V>> MergeTile<'_, K, V, O> {
    /// Writes the items from `diagonal` on; the merged ones begin at `begin` in the output.
    #[inline(always)]
    unsafe fn run(self, begin: usize, diagonal: usize) {
        let smem = shared_mem::<MergeSmem<K, V>>();
        let splits = shared_field!(smem, splits);
        let tile = Tile::<K, V, O>::new(&raw mut (*smem).tile, self.lookup);
        let thread = thread::thread_idx_x() as usize;
        let len = clip(self.first.keys.len() + self.second.keys.len(), diagonal, TILE);

        // A warp for where the tile begins, another for where it ends.
        let warp = thread / 32;
        if warp < 2 {
            let split = self.split(diagonal + warp * len);
            if warp::lane_id() == 0 {
                splits.store(warp, split as u64);
            }
        }
        thread::sync_threads();
        let (from, to) = (splits.load(0) as usize, splits.load(1) as usize);
        let (first_len, second_from) = (to - from, diagonal - from);

        let mut i = thread;
        while i < len {
            let item = if i < first_len {
                self.first.load(from + i)
            } else {
                self.second.load(second_from + i - first_len)
            };
            tile.set(i, item);
            i += THREADS;
        }
        thread::sync_threads();
        tile.merge(first_len, len - first_len);
        self.output.store_tile(begin + diagonal, &tile, len);
    }

    #[inline(always)]
    unsafe fn split(&self, diagonal: usize) -> usize {
        merge_split(self.first.keys.len(), self.second.keys.len(), diagonal, |i, j| {
            !O::is_before(&self.lookup, self.second.load(j), self.first.load(i))
        })
    }
}
