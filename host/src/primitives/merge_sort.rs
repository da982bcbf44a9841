//! Stable merge sort by an order that is a type. Tiles are sorted in shared memory, then runs are merged pairwise by
//! merge path (Satish, Harris, Garland 2009; Green, McColl, Bader 2012).
//!
//! Any number of items. The tile sort and each of log2(n / 5888) merge passes read and write every item (for keys of 4
//! bytes; tiles of larger keys are smaller). Temporary memory is one copy of the items and 8 bytes per tile.
//! [`merge`](super::merge) lists the orders. For numbers, a radix sort moves less data.

use super::merge::{MergeOrder, OrderArgs, num_tiles, plan_splits, splits_by_kernel, with_items};
use super::order::{ByKey, Carried, NoValue, Order};
use super::pairs::{Pairs, Source, empty_view, keys_to_sort, pairs_to_sort};
use super::planned::{bytes_of, carve};
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use cuda_std::kernel::Kernel;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::policy::MERGE;
use kauri_kernels::primitives::merge_sort::{
    SortedRuns, TileSort, primitives_merge_runs, primitives_merge_runs_partition, primitives_sort_tiles,
};
use kauri_kernels::thread::radix_key::Fold;
use kauri_kernels::thread::words::Words;
use std::marker::PhantomData;

/// The temporary memory of sorts of up to a number of items: the target of every other pass.
pub(crate) struct MergeSort<K, V> {
    keys: Region<K>,
    /// `None` for sorts of keys alone.
    values: Option<Region<V>>,
    /// The begins of a pass's tiles in the runs.
    splits: Region<u64>,
    len: usize,
}

impl<K: Words, V: Carried> MergeSort<K, V> {
    /// Plans sorts of up to `len` items.
    pub(crate) fn plan(layout: &mut Layout, len: usize) -> Self {
        let scratch = if num_passes::<K>(len) > 0 { len } else { 0 };
        let values = V::IS_CARRIED.then(|| layout.reserve(scratch));
        Self { keys: layout.reserve(scratch), values, splits: plan_splits::<K>(layout, len), len }
    }

    /// Sorts as many items as were planned, or only the first `count[0]` of them if `count` is not empty.
    ///
    /// # Safety
    /// Input and output have the planned length, and are identical or do not overlap. Nothing else uses them until the
    /// stream has done the work.
    pub(crate) unsafe fn run<O: Order<K, V>>(
        &self,
        temp: &Temp<'_>,
        input: Source<'_, K, V>,
        output: Pairs<'_, K, V>,
        count: Slice<'_, u64>,
        order: OrderArgs<'_, K>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.run_with::<KernelsOf<O>>(temp, input, output, count, order) }
    }

    /// [`run`](Self::run) with other kernels.
    ///
    /// # Safety
    /// Like [`run`](Self::run).
    pub(super) unsafe fn run_with<S: SortKernels<K, V>>(
        &self,
        temp: &Temp<'_>,
        input: Source<'_, K, V>,
        output: Pairs<'_, K, V>,
        count: Slice<'_, u64>,
        OrderArgs { fold, lookup }: OrderArgs<'_, K>,
    ) -> Result<()> {
        let (num_tiles, passes) = (num_tiles::<K>(self.len) as u64, num_passes::<K>(self.len));
        let tile_items = MERGE.tile_items(K::WORDS) as u64;
        let values = self.values.map_or(empty_view(), |values| temp.view(values));
        let scratch = Pairs { keys: if passes > 0 { temp.view(self.keys) } else { empty_view() }, values };
        let splits = splits_by_kernel(&temp.stream, temp.view(self.splits));
        let lanes = (splits.len() * MERGE.split_lanes(splits.len())) as u64;
        // The last pass writes to the output, and unfolds the keys. Between passes keys are folded.
        let target = |pass: u32| if (passes - pass).is_multiple_of(2) { output } else { scratch };
        let fold_out = |pass| if pass == passes { fold } else { Fold::NONE };

        let sort = TileSort { input, output: target(0), count, fold, fold_out: fold_out(0), lookup };
        // SAFETY: passed on to the caller; a warp reads its part of a tile before it writes it.
        with_items!(K, unsafe { temp.stream.launch::<S::SortTiles<ITEMS>>(num_tiles, (sort,))? });
        for pass in 1..=passes {
            // The length of a run, in tiles.
            let width = 1_u64 << (pass - 1);
            let runs = SortedRuns { all: target(pass - 1).read_only(), count, width, lookup };
            // SAFETY: passed on to the caller.
            unsafe { temp.stream.launch_items::<S::Partition>(lanes, (runs, splits, tile_items))? };
            let args = (runs, target(pass), splits.read_only(), fold_out(pass));
            // SAFETY: passed on to the caller; source and target of a pass do not overlap.
            with_items!(K, unsafe { temp.stream.launch::<S::MergeRuns<ITEMS>>(num_tiles, args)? });
        }
        Ok(())
    }
}

/// The kernels of a sort.
pub(super) trait SortKernels<K: Words, V: Carried> {
    /// Sorts tiles of the input.
    type SortTiles<const ITEMS: usize>: for<'a> Kernel<Args<'a> = (TileSort<'a, K, V>,)>;
    /// Splits pairs of runs into tiles.
    type Partition: for<'a> Kernel<Args<'a> = (SortedRuns<'a, K, V>, SliceMut<'a, u64>, u64)>;
    /// Merges pairs of runs.
    type MergeRuns<const ITEMS: usize>: for<'a> Kernel<
        Args<'a> = (SortedRuns<'a, K, V>, Pairs<'a, K, V>, Slice<'a, u64>, Fold),
    >;
}

/// The kernels that take the order as a type.
struct KernelsOf<O>(PhantomData<O>);

impl<K: Words, V: Carried, O: Order<K, V>> SortKernels<K, V> for KernelsOf<O> {
    type SortTiles<const ITEMS: usize> = primitives_sort_tiles<K, V, O, ITEMS>;
    type Partition = primitives_merge_runs_partition<K, V, O>;
    type MergeRuns<const ITEMS: usize> = primitives_merge_runs<K, V, O, ITEMS>;
}

/// Returns the number of merge passes after the tile sort.
fn num_passes<K: Words>(len: usize) -> u32 {
    num_tiles::<K>(len).max(1).next_power_of_two().trailing_zeros()
}

/// Returns the bytes of temporary memory of a sort of `len` keys.
pub fn plan_keys<K: Words>(len: usize) -> u64 {
    bytes_of(|layout| MergeSort::<K, NoValue>::plan(layout, len))
}

/// Returns the bytes of temporary memory of a sort of `len` pairs.
pub fn plan_pairs<K: Words>(len: usize) -> u64 {
    bytes_of(|layout| MergeSort::<K, u32>::plan(layout, len))
}

/// Sorts keys.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the lengths differ, [`Error::WrongDevice`](crate::Error::WrongDevice),
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory), and errors of the driver.
pub fn sort_keys<K: Words, O: MergeOrder<K, NoValue> + ByKey>(
    stream: &Stream,
    workspace: &mut Workspace,
    keys: &Buffer<K>,
    sorted: &mut Buffer<K>,
) -> Result<()> {
    let (input, output) = keys_to_sort(stream, keys, sorted)?;
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { sort::<O::Bits, _, O::Kernel>(stream, workspace, input, output, OrderArgs::by_key(O::FOLD)) }
}

/// Sorts (key, value) pairs by their keys.
///
/// # Errors
/// Like [`sort_keys`].
pub fn sort_pairs<K: Words, O: MergeOrder<K, u32> + ByKey>(
    stream: &Stream,
    workspace: &mut Workspace,
    keys: &Buffer<K>,
    values: &Buffer<u32>,
    sorted_keys: &mut Buffer<K>,
    sorted_values: &mut Buffer<u32>,
) -> Result<()> {
    let (input, output) = pairs_to_sort(stream, (keys, values), (sorted_keys, sorted_values))?;
    // SAFETY: as in `sort_keys`.
    unsafe { sort::<O::Bits, _, O::Kernel>(stream, workspace, input, output, OrderArgs::by_key(O::FOLD)) }
}

/// # Safety
/// Like [`MergeSort::run`].
unsafe fn sort<K: Words, V: Carried, O: Order<K, V>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: Source<'_, K, V>,
    output: Pairs<'_, K, V>,
    order: OrderArgs<'_, K>,
) -> Result<()> {
    let plan = |layout: &mut _| MergeSort::<K, V>::plan(layout, input.keys.len());
    let (sort, temp) = carve(stream, workspace, "merge sort", plan)?;
    // SAFETY: passed on to the caller.
    unsafe { sort.run::<O>(&temp, input, output, empty_view().read_only(), order) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_double_until_there_is_one() {
        let tile = MERGE.tile_items(1);
        let expected =
            [(0, 0), (1, 0), (tile, 0), (tile + 1, 1), (2 * tile + 1, 2), (4 * tile, 2), (tile << 30, 30)];
        for (len, passes) in expected {
            assert_eq!(num_passes::<u32>(len), passes, "{len} items");
        }
    }
}
