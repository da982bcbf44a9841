//! Stable merge of two sorted runs by merge path (Green, McColl, Bader 2012). One kernel finds where each tile of the
//! output begins in the runs; the next one merges the tiles, reading two words and then all its items at once. With few
//! tiles, each tile finds its begin itself, which takes less time than a launch.
//!
//! Numbers of all types are merged as unsigned ones. Keys are folded to those when they are loaded, and unfolded when
//! they are stored. The numbers of a [`Fold`] are kernel arguments, because the assembler uses an argument as mask without
//! a register, but not a computed value.

use crate::block::merge::{Tile, TileSmem, clip};
use crate::policy::{MERGE, MergePolicy, PER_ITEM_THREADS};
use crate::thread::carried::{Pairs, Source};
use crate::thread::order::*;
use crate::thread::radix_key::{Fold, KeyOrder, RadixKey, SortKey};
use crate::thread::words::*;
use crate::warp::search::merge_split;
use cuda_std::prelude::*;

/// The number of threads of a block that merges or sorts a tile.
pub const THREADS: usize = MERGE.threads_per_block;

/// Returns the tile whose begin the thread searches for, one of `num_tiles`.
#[inline(always)]
pub(super) unsafe fn tile_to_split(num_tiles: usize) -> usize {
    thread::index_1d_u64() as usize >> MERGE.split_lanes(num_tiles).trailing_zeros()
}

/// Returns how many blocks of the merge kernels a multiprocessor must hold.
pub const fn merge_min_blocks<K: Words, V: Carried, O: Order<K, V>>() -> usize {
    let blocks = if V::IS_CARRIED { MERGE.merge_pairs_min_blocks } else { MERGE.merge_keys_min_blocks };
    min_blocks::<K, V, O>(blocks)
}

/// Returns the entry of `blocks` for the key size, or the policy's entry for orders that compare values.
pub(super) const fn min_blocks<K: Words, V: Carried, O: Order<K, V>>(blocks: [usize; 3]) -> usize {
    let blocks = if V::IS_CARRIED && O::COMPARES_VALUES { MERGE.lookup_min_blocks } else { blocks };
    blocks[MergePolicy::key_class(K::WORDS)]
}

/// Writes, for each tile of `tile_items` items of the output, how many items of the first run precede it;
/// `MERGE.split_lanes` lanes per tile.
#[kernel(family = "primitives-merge", block = PER_ITEM_THREADS, min_blocks = MERGE.split_min_blocks, hot)]
#[instances(K = [u32, u64], V = [NoValue, u32], O = [Ascending])]
#[instances(K = [f32, f64], V = [u32], O = [SuperKey])]
#[instance(Bits128, NoValue, Ascending)]
pub unsafe fn primitives_merge_partition<K: Words, V: Carried, O: Order<K, V>>(
    runs: TwoRuns<'_, K, V>,
    splits: SliceMut<u64>,
    tile_items: u64,
) {
    let tile = tile_to_split(splits.len());
    runs.partition::<O>(splits, tile, tile * tile_items as usize)
}

/// Merges two sorted runs; a block per tile of the output. If `splits`, the begins of the tiles, is empty, blocks
/// search for their own.
#[kernel(
    family = "primitives-merge", block = THREADS, min_blocks = merge_min_blocks::<K, V, O>(),
    shared = TileSmem<K, V, THREADS, ITEMS>, hot
)]
#[instances(K = [u32], V = [NoValue, u32], O = [Ascending], ITEMS = [23])]
#[instances(K = [u64], V = [NoValue, u32], O = [Ascending], ITEMS = [13])]
#[instance(Bits128, NoValue, Ascending, 7)]
#[instance(f32, u32, SuperKey, 23)]
#[instance(f64, u32, SuperKey, 13)]
pub unsafe fn primitives_merge<K: Words, V: Carried, O: Order<K, V>, const ITEMS: usize>(
    runs: TwoRuns<'_, K, V>,
    output: Pairs<'_, K, V>,
    splits: Slice<u64>,
) {
    let tile = thread::block_idx_x() as usize;
    runs.merge_tile::<O, ITEMS>(output, runs.fold, splits, tile, tile * THREADS * ITEMS)
}

/// Orders that have kernels. Numbers are folded to unsigned ones of the same order, so that one kernel serves all types
/// of a size.
#[diagnostic::on_unimplemented(
    message = "there is no kernel for the order `{Self}` of keys `{K}` with values `{V}`",
    note = "add an instance to the kernels of `primitives::merge` and `primitives::merge_sort` in a kernel crate of your \
            own"
)]
pub trait MergeOrder<K: Words, V: Carried>: Order<K, V> {
    /// The key type of the kernels, of the same size.
    type Bits: Words;
    /// The order that the kernels use.
    type Kernel: Order<Self::Bits, V>;
    /// The folding that the kernels apply to keys.
    const FOLD: Fold;
}

macro_rules! merge_orders {
    ($($o:ty, $v:ty: $($k:ty),*;)*) => { $($(
        impl MergeOrder<$k, $v> for $o {
            type Bits = $k;
            type Kernel = $o;
            const FOLD: Fold = Fold::NONE;
        }
    )*)* };
}
merge_orders! {
    Ascending, NoValue: Bits128;
}

macro_rules! merge_numbers {
    ($($o:ty, $rule:ident: $($v:ty),*;)*) => { $($(
        impl<K: SortKey> MergeOrder<K, $v> for $o {
            type Bits = K::Bits;
            type Kernel = Ascending;
            const FOLD: Fold = Fold::of(K::ORDER.with(KeyOrder::$rule), K::Bits::BITS);
        }
    )*)* };
}
merge_numbers! {
    Ascending, UNSIGNED: NoValue, u32;
    Descending, DESCENDING: NoValue, u32;
}

/// Two sorted runs that are merged.
#[derive(Clone, Copy, KernelArgs)]
pub struct TwoRuns<'a, K, V> {
    /// The first run.
    pub first: crate::thread::carried::Source<'a, K, V>,
    /// The second run.
    pub second: crate::thread::carried::Source<'a, K, V>,
    /// The folding of keys when they are loaded.
    pub fold: crate::thread::radix_key::Fold,
    /// The data that the order looks up.
    pub lookup: crate::thread::order::Lookup<'a, K>,
}

impl<K: Words, V: Carried> TwoRuns<'_, K, V> {
    /// Returns the number of items of both runs.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.first.keys.len() + self.second.keys.len()
    }

    /// Writes the split of tile `tile`, which begins at item `diagonal` of the merge, if there is such a tile: the
    /// number of items of the first run before it. All lanes of the warp call.
    #[inline(always)]
    pub(super) unsafe fn partition<O: Order<K, V>>(
        &self,
        splits: SliceMut<'_, u64>,
        tile: usize,
        diagonal: usize,
    ) {
        let diagonal = if diagonal < self.len() { diagonal } else { self.len() };
        let split = if splits.len() < MERGE.many_tiles {
            self.split::<O, { MERGE.split_lanes[0] as u32 }>(diagonal)
        } else {
            self.split::<O, { MERGE.split_lanes[1] as u32 }>(diagonal)
        };
        // The first lane of the group writes.
        let lane = warp::lane_id() as usize & (MERGE.split_lanes(splits.len()) - 1);
        if tile < splits.len() && lane == 0 {
            splits.store(tile, split as u64);
        }
    }

    /// Returns how many items of the first run precede item `diagonal` of the merge. Each group of `LANES` lanes makes
    /// one search.
    #[inline(always)]
    unsafe fn split<O: Order<K, V>, const LANES: u32>(&self, diagonal: usize) -> usize {
        let (first_len, second_len) = (self.first.keys.len(), self.second.keys.len());
        merge_split::<LANES>(first_len, second_len, diagonal, |i, j| self.takes_first::<O>(i, j))
    }

    /// Returns true unless item `j` of the second run has to come before item `i` of the first.
    #[inline(always)]
    unsafe fn takes_first<O: Order<K, V>>(&self, i: usize, j: usize) -> bool {
        let key = |run: &Source<'_, K, V>, i: usize| O::loaded(self.fold, run.keys.load(i));
        let (mut a, mut b) = ((key(&self.first, i), V::ANY), (key(&self.second, j), V::ANY));
        if O::COMPARES_VALUES {
            (a.1, b.1) = (self.first.values.load(i), self.second.values.load(j));
        }
        !O::is_before(&self.lookup, b, a)
    }

    /// Merges the tile that begins at item `diagonal` of the merge. `output` begins with the merge; `fold` is undone when
    /// its keys are stored.
    #[inline(always)]
    pub(super) unsafe fn merge_tile<O: Order<K, V>, const ITEMS: usize>(
        &self,
        output: Pairs<'_, K, V>,
        fold: Fold,
        splits: Slice<'_, u64>,
        tile: usize,
        diagonal: usize,
    ) {
        let len = clip(self.len(), diagonal, THREADS * ITEMS);
        let (from, to) = if splits.is_empty() {
            (self.split::<O, 32>(diagonal), self.split::<O, 32>(diagonal + len))
        } else {
            // The next tile may belong to another pair.
            let is_last = diagonal + len == self.len();
            let from = if diagonal == 0 { 0 } else { splits.load(tile) as usize };
            (from, if is_last { self.first.keys.len() } else { splits.load(tile + 1) as usize })
        };
        // If runs are not sorted, the split is arbitrary, but clamped, so that nothing beyond the runs is read.
        let to = if to < from { from } else { to };
        let to = if to > from + len { from + len } else { to };
        let first = self.first.part(from, to - from);
        let second = self.second.part(diagonal - from, len - first.keys.len());
        let output = output.part(diagonal, len);
        let (first_len, second_len) = (first.keys.len() as u32, second.keys.len() as u32);
        let loaded = self.fold;
        let item = move |i: u32, distance: usize| {
            // Per item, only a 32-bit comparison and a choice between two addresses remain.
            if i + (distance as u32) < first_len {
                let i = i as usize + distance;
                (O::loaded(loaded, first.keys.load(i)), first.value(i))
            } else {
                // Without `distance` the index may be negative.
                let i = (i as usize).wrapping_sub(first_len as usize).wrapping_add(distance);
                (O::loaded(loaded, second.keys.load(i)), second.value(i))
            }
        };

        let tile = Tile::<K, V, O, ITEMS>::new(shared_mem::<TileSmem<K, V, THREADS, ITEMS>>(), self.lookup);
        tile.fill(len, THREADS, item);
        thread::sync_threads();
        let merged = tile.merge(first_len, second_len);
        // All threads have read their items before the tile is overwritten.
        thread::sync_threads();
        tile.set_own(&merged);
        warp::sync_warp(warp::FULL_MASK);
        let store = |i: usize, (key, value): (K, V)| output.store(i, O::stored(fold, key), value);
        tile.drain(len, THREADS, store);
    }
}
