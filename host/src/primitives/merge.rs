//! Stable merge of two sorted runs: equal items of the first run precede those of the second (Green, McColl, Bader
//! 2012, *GPU Merge Path*).
//!
//! Either run may have any number of items, including none. Each item is read and written once. Temporary memory is 8
//! bytes per tile of thousands of items ([`plan`]). Runs that are not sorted give an unspecified selection of their
//! items.
//!
//! Orders are types; see [`order`](super::order). [`Ascending`](super::order::Ascending) and
//! [`Descending`](super::order::Descending) are for keys `u32`, `u64`, `i32`, `i64`, `f32` and `f64`, alone or with
//! values of 32 bits. Floats have IEEE 754's total order, as in the [radix sort](super::radix_sort): -NaN, -infinity,
//! …, -0.0, 0.0, …, infinity, NaN.

use super::order::{ByKey, Carried, Lookup, NoValue, Order, SuperKey};
use super::pairs::{Pairs, Source, empty_view};
use super::planned::{bytes_of, carve};
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use cuda_std::mem::SliceMut;
use kauri_kernels::policy::MERGE;
pub use kauri_kernels::primitives::merge::MergeOrder;
use kauri_kernels::primitives::merge::{TwoRuns, primitives_merge, primitives_merge_partition};
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::radix_key::Fold;
use kauri_kernels::thread::words::Words;

/// The run-time arguments of an order.
#[derive(Clone, Copy)]
pub(crate) struct OrderArgs<'a, K> {
    pub(crate) fold: Fold,
    pub(crate) lookup: Lookup<'a, K>,
}

impl<K> OrderArgs<'_, K> {
    /// Returns the arguments of an order that looks up nothing.
    pub(crate) fn by_key(fold: Fold) -> Self {
        Self { fold, lookup: no_lookup() }
    }
}

/// Evaluates an expression in which the constant `ITEMS` is the number of items per thread for keys of type `$key`. (A
/// macro, because a const generic argument cannot depend on a type parameter.)
macro_rules! with_items {
    ($key:ty, $run:expr) => {
        match <$key as Words>::WORDS {
            1 => with_items!(@0, $run),
            2 => with_items!(@1, $run),
            _ => with_items!(@2, $run),
        }
    };
    (@$class:literal, $run:expr) => {{
        const ITEMS: usize = MERGE.items_per_thread[$class];
        $run
    }};
}
pub(crate) use with_items;

/// Returns the number of tiles of `len` items.
pub(crate) const fn num_tiles<K: Words>(len: usize) -> usize {
    len.div_ceil(MERGE.tile_items(K::WORDS))
}

/// Plans the begins of the tiles of `len` items in the runs. A single tile needs none.
pub(crate) fn plan_splits<K: Words>(layout: &mut Layout, len: usize) -> Region<u64> {
    let num_tiles = num_tiles::<K>(len);
    layout.reserve(if num_tiles > 1 { num_tiles } else { 0 })
}

/// Returns `splits` if a kernel is to compute them, else an empty view: with few tiles, each tile finds its own begin.
pub(crate) fn splits_by_kernel<'a>(stream: &Stream, splits: SliceMut<'a, u64>) -> SliceMut<'a, u64> {
    let few = MERGE.self_split_tiles_per_sm * stream.gpu().info().num_sms as usize;
    if splits.len() > few { splits } else { empty_view() }
}

/// Returns the bytes of temporary memory of a merge of runs with `len` items in total.
pub fn plan<K: Words>(len: usize) -> u64 {
    bytes_of(|layout| plan_splits::<K>(layout, len))
}

/// Merges two runs. `splits` is scratch memory for the begins of the tiles.
///
/// # Safety
/// The output is as long as both runs together and does not overlap them. Nothing else uses the views until the
/// stream has done the work.
unsafe fn merge<K: Words, V: Carried, O: Order<K, V>>(
    stream: &Stream,
    splits: SliceMut<'_, u64>,
    runs: TwoRuns<'_, K, V>,
    output: Pairs<'_, K, V>,
) -> Result<()> {
    let splits = splits_by_kernel(stream, splits);
    let lanes = (splits.len() * MERGE.split_lanes(splits.len())) as u64;
    let args = (runs, splits, MERGE.tile_items(K::WORDS) as u64);
    // SAFETY: passed on to the caller.
    unsafe { stream.launch_items::<primitives_merge_partition<K, V, O>>(lanes, args)? };
    let args = (runs, output, splits.read_only());
    let num_tiles = num_tiles::<K>(output.keys.len()) as u64;
    // SAFETY: passed on to the caller; tiles begin where the splits say, if there are any.
    with_items!(K, unsafe { stream.launch::<primitives_merge<K, V, O, ITEMS>>(num_tiles, args) })
}

/// Merges two runs with temporary memory of a workspace.
///
/// # Safety
/// Like [`merge`].
unsafe fn merge_in<K: Words, V: Carried, O: Order<K, V>>(
    stream: &Stream,
    workspace: &mut Workspace,
    runs: TwoRuns<'_, K, V>,
    output: Pairs<'_, K, V>,
) -> Result<()> {
    let plan = |layout: &mut _| plan_splits::<K>(layout, output.keys.len());
    let (splits, temp) = carve(stream, workspace, "merge", plan)?;
    // SAFETY: passed on to the caller.
    unsafe { merge::<K, V, O>(stream, temp.view(splits), runs, output) }
}

/// The temporary memory of consecutive merges of points by super key.
pub(crate) struct MergePoints {
    splits: Region<u64>,
}

impl MergePoints {
    /// Plans merges of runs with up to `len` points in total.
    pub(crate) fn plan<C: Float>(layout: &mut Layout, len: usize) -> Self {
        Self { splits: plan_splits::<C>(layout, len) }
    }

    /// Merges two runs of ids. Each id is paired with the point's coordinate on the first axis of the order.
    ///
    /// # Safety
    /// Like [`merge`]; `lookup` has the points of the ids.
    pub(crate) unsafe fn run<C: Float>(
        &self,
        temp: &Temp<'_>,
        [first, second]: [Source<'_, C, u32>; 2],
        output: Pairs<'_, C, u32>,
        lookup: Lookup<'_, C>,
    ) -> Result<()> {
        let num_tiles = num_tiles::<C>(first.keys.len() + second.keys.len());
        // SAFETY: no more tiles than planned.
        let splits = unsafe { temp.view(self.splits).part(0, if num_tiles > 1 { num_tiles } else { 0 }) };
        // SAFETY: passed on to the caller.
        unsafe {
            let runs = TwoRuns { first, second, fold: Fold::NONE, lookup };
            merge::<_, _, SuperKey>(&temp.stream, splits, runs, output)
        }
    }
}

/// Merges two runs of keys.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) unless the output is as long as both runs together,
/// [`Error::WrongDevice`](crate::Error::WrongDevice), [`Error::OutOfMemory`](crate::Error::OutOfMemory), and errors of
/// the driver.
pub fn merge_keys<K: Words, O: MergeOrder<K, NoValue> + ByKey>(
    stream: &Stream,
    workspace: &mut Workspace,
    first: &Buffer<K>,
    second: &Buffer<K>,
    merged: &mut Buffer<K>,
) -> Result<()> {
    first.check_device(stream)?;
    second.check_device(stream)?;
    merged.check(stream, "merged keys", first.len() + second.len())?;
    let (first, second) = (Source::of_keys(first.bits()), Source::of_keys(second.bits()));
    let runs = TwoRuns { first, second, fold: O::FOLD, lookup: no_lookup() };
    let output = Pairs::of_keys(merged.bits_mut());
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { merge_in::<O::Bits, _, O::Kernel>(stream, workspace, runs, output) }
}

/// Merges two runs of (key, value) pairs.
///
/// # Errors
/// Like [`merge_keys`]; a run must have as many values as keys.
pub fn merge_pairs<K: Words, O: MergeOrder<K, u32> + ByKey>(
    stream: &Stream,
    workspace: &mut Workspace,
    first: (&Buffer<K>, &Buffer<u32>),
    second: (&Buffer<K>, &Buffer<u32>),
    merged: (&mut Buffer<K>, &mut Buffer<u32>),
) -> Result<()> {
    merged.0.check(stream, "merged keys", first.0.len() + second.0.len())?;
    merged.1.check(stream, "merged values", merged.0.len())?;
    let (first, second) = (checked(stream, first)?, checked(stream, second)?);
    let runs = TwoRuns { first, second, fold: O::FOLD, lookup: no_lookup() };
    let output = Pairs { keys: merged.0.bits_mut(), values: merged.1.slice_mut() };
    // SAFETY: as in `merge_keys`.
    unsafe { merge_in::<O::Bits, _, O::Kernel>(stream, workspace, runs, output) }
}

/// Checks a run of pairs, and reinterprets its keys as bits.
fn checked<'a, K: Words, B>(
    stream: &Stream,
    run: (&'a Buffer<K>, &'a Buffer<u32>),
) -> Result<Source<'a, B, u32>> {
    let (keys, values) = run;
    keys.check_device(stream)?;
    values.check(stream, "values of a run", keys.len())?;
    Ok(Source { keys: keys.bits(), values: values.slice() })
}

/// Returns the lookup of orders that look up nothing.
pub(crate) fn no_lookup<'a, K>() -> Lookup<'a, K> {
    Lookup { coords: empty_view().read_only(), dims: 0, axis: 0 }
}
