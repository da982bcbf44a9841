//! Stable merge sort by an order that is a type. Tiles are sorted in shared memory, then runs are merged pairwise by
//! merge path (Satish, Harris, Garland 2009; Green, McColl, Bader 2012).
//!
//! Any number of items. The tile sort and each of log2(n / 5888) merge passes read and write every item (for keys of 4
//! bytes; tiles of larger keys are smaller). Temporary memory is one copy of the items and 8 bytes per tile. Orders are
//! those of [`merge`](super::merge), in which -0.0 precedes 0.0, and the super key of points ([`sort_points`]), in
//! which they are equal. For numbers, a radix sort moves less data.

use super::merge::{MergeOrder, OrderArgs, num_tiles, plan_splits, splits_by_kernel, with_items};
use super::order::{ByKey, Carried, Lookup, NoValue, Order, SuperKey};
use super::pairs::{Pairs, Source, empty_view};
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::{Error, Result};
use cuda_std::mem::Slice;
use cust_core::DeviceCopy;
use kauri_kernels::policy::MERGE;
use kauri_kernels::primitives::merge_sort::{
    primitives_merge_runs, primitives_merge_runs_partition, primitives_sort_tiles, primitives_super_keys,
};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::radix_key::Fold;
use kauri_kernels::thread::words::Words;

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
        stream: &Stream,
        temp: &Temp<'_>,
        input: Source<'_, K, V>,
        output: Pairs<'_, K, V>,
        count: Slice<'_, u64>,
        order: OrderArgs<'_, K>,
    ) -> Result<()> {
        let (num_tiles, passes) = (num_tiles::<K>(self.len) as u64, num_passes::<K>(self.len));
        let tile_items = MERGE.tile_items(K::WORDS) as u64;
        let OrderArgs { fold, lookup: Lookup { coords, dims, axis } } = order;
        let values = self.values.map_or(empty_view(), |values| temp.view(values));
        let scratch = Pairs { keys: if passes > 0 { temp.view(self.keys) } else { empty_view() }, values };
        let splits = splits_by_kernel(stream, temp.view(self.splits));
        // The last pass writes to the output, and unfolds the keys. Between passes keys are folded.
        let target = |pass: u32| if (passes - pass).is_multiple_of(2) { output } else { scratch };
        let fold_out = |pass| if pass == passes { fold } else { Fold::NONE };

        let (from, to) = (input, target(0));
        let Fold { negative, flip } = fold;
        let Fold { negative: negative_out, flip: flip_out } = fold_out(0);
        let args = (
            from.keys,
            from.values,
            to.keys,
            to.values,
            count,
            negative,
            flip,
            negative_out,
            flip_out,
            coords,
            dims,
            axis,
        );
        // SAFETY: passed on to the caller; a warp reads its part of a tile before it writes it.
        with_items!(K, unsafe { stream.launch::<primitives_sort_tiles<K, V, O, ITEMS>>(num_tiles, args)? });
        for pass in 1..=passes {
            // The length of a run, in tiles.
            let width = 1_u64 << (pass - 1);
            let (from, to) = (target(pass - 1).read_only(), target(pass));
            let lanes = (splits.len() * MERGE.split_lanes(splits.len())) as u64;
            let args = (from.keys, from.values, count, width, splits, tile_items, coords, dims, axis);
            // SAFETY: passed on to the caller.
            unsafe { stream.launch_items::<primitives_merge_runs_partition<K, V, O>>(lanes, args)? };
            let (splits, Fold { negative, flip }) = (splits.read_only(), fold_out(pass));
            let args = (
                from.keys,
                from.values,
                to.keys,
                to.values,
                count,
                width,
                splits,
                negative,
                flip,
                coords,
                dims,
                axis,
            );
            // SAFETY: passed on to the caller; source and target of a pass do not overlap.
            with_items!(K, unsafe {
                stream.launch::<primitives_merge_runs<K, V, O, ITEMS>>(num_tiles, args)?
            });
        }
        Ok(())
    }
}

/// Returns the number of merge passes after the tile sort.
fn num_passes<K: Words>(len: usize) -> u32 {
    num_tiles::<K>(len).max(1).next_power_of_two().trailing_zeros()
}

/// Returns the bytes of temporary memory of a sort of `len` keys.
pub fn plan_keys<K: Words>(len: usize) -> u64 {
    let mut layout = Layout::new();
    MergeSort::<K, NoValue>::plan(&mut layout, len);
    layout.bytes()
}

/// Returns the bytes of temporary memory of a sort of `len` pairs, or of `len` points with coordinates of type `K`.
pub fn plan_pairs<K: Words>(len: usize) -> u64 {
    let mut layout = Layout::new();
    MergeSort::<K, u32>::plan(&mut layout, len);
    layout.bytes()
}

/// Sorts keys.
///
/// # Errors
/// [`Error::Shape`] if the lengths differ, [`Error::WrongDevice`], [`Error::OutOfMemory`], and errors of the driver.
pub fn sort_keys<K: Words, O: MergeOrder<K, NoValue> + ByKey>(
    stream: &Stream,
    workspace: &mut Workspace,
    keys: &Buffer<K>,
    sorted: &mut Buffer<K>,
) -> Result<()> {
    sorted.check_items("sorted keys", keys.len())?;
    keys.check_device(stream)?;
    sorted.check_device(stream)?;
    let (input, output) = (Source::of_keys(keys.bits()), Pairs::of_keys(sorted.bits_mut()));
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
    values.check_items("values to sort with keys", keys.len())?;
    check_pairs(stream, keys.len(), sorted_keys, sorted_values)?;
    keys.check_device(stream)?;
    values.check_device(stream)?;
    let input = Source { keys: keys.bits(), values: values.slice() };
    let output = Pairs { keys: sorted_keys.bits_mut(), values: sorted_values.slice_mut() };
    // SAFETY: as in `sort_keys`.
    unsafe { sort::<O::Bits, _, O::Kernel>(stream, workspace, input, output, OrderArgs::by_key(O::FOLD)) }
}

/// Sorts points of `D` coordinates by the super key that begins on axis `axis`: by the coordinate on this axis, then on
/// the following axes cyclically, then by id, which is the index in the input (Robinson, after Brown 2015). -0.0 equals
/// 0.0. NaNs come first or last.
///
/// Writes the ids and the coordinate of each point on axis `axis`. Points are looked up only where two of these
/// coordinates are equal.
///
/// # Errors
/// Like [`sort_keys`]; [`Error::Shape`] if there is no such axis; [`Error::TooManyItems`] for more than 2^32 points.
pub fn sort_points<C: Coord + Words, const D: usize>(
    stream: &Stream,
    workspace: &mut Workspace,
    points: &Buffer<[C; D]>,
    axis: usize,
    sorted_coords: &mut Buffer<C>,
    sorted_ids: &mut Buffer<u32>,
) -> Result<()>
where
    [C; D]: DeviceCopy,
    SuperKey: MergeOrder<C, u32>,
{
    check_points(points.len(), axis, D)?;
    check_pairs(stream, points.len(), sorted_coords, sorted_ids)?;
    points.check_device(stream)?;
    let points = points.slice();
    // SAFETY: the same memory; points are arrays of coordinates.
    let coords = unsafe { Slice::from_raw_parts(points.as_ptr().cast::<C>(), points.len() * D) };
    let output = Pairs { keys: sorted_coords.slice_mut(), values: sorted_ids.slice_mut() };
    let mut layout = Layout::new();
    let sort = SortPoints::plan(&mut layout, points.len());
    let temp = workspace.carve(stream, &layout, "merge sort")?;
    // SAFETY: as in `sort_keys`.
    unsafe { sort.run(stream, &temp, coords, D, axis, output) }
}

/// The temporary memory of sorts of points by super key.
pub(crate) struct SortPoints<C>(MergeSort<C, u32>);

impl<C: Coord> SortPoints<C> {
    /// Plans sorts of up to `len` points.
    pub(crate) fn plan(layout: &mut Layout, len: usize) -> Self {
        Self(MergeSort::plan(layout, len))
    }

    /// Sorts as many points as were planned, by the super key that begins on `axis`.
    ///
    /// # Safety
    /// The output has as many keys and values as there are points, and does not overlap the points. Nothing else uses
    /// the views until the stream has done the work.
    pub(crate) unsafe fn run(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        coords: Slice<'_, C>,
        dims: usize,
        axis: usize,
        output: Pairs<'_, C, u32>,
    ) -> Result<()> {
        let lookup = Lookup { coords, dims: dims as u32, axis: axis as u32 };
        // SAFETY: passed on to the caller; ids are less than the number of points.
        unsafe {
            let args = (coords, lookup.dims, lookup.axis, output.keys, output.values);
            stream.launch_items::<primitives_super_keys<C>>(output.keys.len() as u64, args)?;
            let (order, input) = (OrderArgs { fold: Fold::NONE, lookup }, output.read_only());
            self.0.run::<SuperKey>(stream, temp, input, output, empty_view().read_only(), order)
        }
    }
}

/// Returns an error for more points than ids, and for an axis that does not exist.
fn check_points(len: usize, axis: usize, dims: usize) -> Result<()> {
    let (count, max) = (len as u64, 1 << 32);
    if count > max {
        return Err(Error::TooManyItems { what: "points to sort", count, max });
    }
    if axis >= dims {
        let what = "number of axes to sort on this one";
        return Err(Error::Shape { what, expected: axis as u64 + 1, got: dims as u64 });
    }
    Ok(())
}

fn check_pairs<K: DeviceCopy>(
    stream: &Stream,
    len: usize,
    sorted_keys: &Buffer<K>,
    sorted_values: &Buffer<u32>,
) -> Result<()> {
    sorted_keys.check_items("sorted keys", len)?;
    sorted_values.check_items("sorted values", len)?;
    sorted_keys.check_device(stream)?;
    sorted_values.check_device(stream)
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
    let mut layout = Layout::new();
    let sort = MergeSort::<K, V>::plan(&mut layout, input.keys.len());
    let temp = workspace.carve(stream, &layout, "merge sort")?;
    // SAFETY: passed on to the caller.
    unsafe { sort.run::<O>(stream, &temp, input, output, empty_view().read_only(), order) }
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
