//! Merge: two sorted runs become one, stable: of items of which neither has to come before the other those of the first run
//! come first (Green, McColl, Bader 2012, *GPU Merge Path*).
//!
//! Any number of items, also none, in either run. Each item is read and written once; temporary memory is 8 bytes for each tile
//! of thousands of items ([`plan`]). Runs that are not sorted give some of their items in some order. Orders are types, see
//! [`order`](super::order): there are kernels for [`Ascending`](super::order::Ascending) with keys alone and with values of 32
//! bits, and for [`Descending`](super::order::Descending) with values.

use super::order::{ByKey, Carried, Lookup, NoValue};
use crate::device::{Buffer, Layout, Region, Stream, Workspace};
use crate::error::Result;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::policy::MERGE;
pub use kauri_kernels::primitives::merge::MergeOrder;
use kauri_kernels::primitives::merge::{primitives_merge, primitives_merge_partition};
use kauri_kernels::thread::words::Words;

/// Keys and values.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a, K, V> {
    pub(crate) keys: Slice<'a, K>,
    pub(crate) values: Slice<'a, V>,
}

/// Room for keys and values.
#[derive(Clone, Copy)]
pub(crate) struct RunMut<'a, K, V> {
    pub(crate) keys: SliceMut<'a, K>,
    pub(crate) values: SliceMut<'a, V>,
}

impl<'a, K, V> RunMut<'a, K, V> {
    pub(crate) fn read_only(&self) -> Run<'a, K, V> {
        Run { keys: self.keys.read_only(), values: self.values.read_only() }
    }
}

/// Tiles of so many items.
pub(crate) const fn num_tiles<K: Words>(len: usize) -> usize {
    len.div_ceil(MERGE.tile_items(K::WORDS))
}

/// Plans where the tiles of so many items begin in the runs. A single tile begins where they do.
pub(crate) fn plan_splits<K: Words>(layout: &mut Layout, len: usize) -> Region<u64> {
    let num_tiles = num_tiles::<K>(len);
    layout.reserve(if num_tiles > 1 { num_tiles } else { 0 })
}

/// Bytes of temporary memory of a merge of runs that have `len` items together.
pub fn plan<K: Words>(len: usize) -> u64 {
    let mut layout = Layout::new();
    plan_splits::<K>(&mut layout, len);
    layout.bytes()
}

/// Two runs, and room for both.
struct Merge<'a, K, V> {
    first: Run<'a, K, V>,
    second: Run<'a, K, V>,
    output: RunMut<'a, K, V>,
}

impl<K: Words, V: Carried> Merge<'_, K, V> {
    /// Merges the runs.
    ///
    /// # Safety
    /// The output has room for both runs and is apart from them, and all are used by nothing else until the stream has done
    /// the work.
    unsafe fn run<O: MergeOrder<K, V>>(&self, stream: &Stream, workspace: &mut Workspace) -> Result<()> {
        let Self { first, second, .. } = *self;
        let Lookup { coords, dims, axis } = no_lookup();
        let len = first.keys.len() + second.keys.len();
        let mut layout = Layout::new();
        let splits = plan_splits::<K>(&mut layout, len);
        let splits = workspace.carve(stream, &layout, "merge")?.view(splits);
        let (lanes, tile_items) = (splits.len() * MERGE.split_lanes, MERGE.tile_items(K::WORDS) as u64);
        let runs = (first.keys, first.values, second.keys, second.values);
        let args = (runs.0, runs.1, runs.2, runs.3, splits, tile_items, coords, dims, axis);
        // SAFETY: passed on to the caller.
        unsafe {
            stream.launch_items::<primitives_merge_partition<K, V, O>>(lanes as u64, args)?;
            const ITEMS: [usize; 3] = MERGE.items_per_thread;
            match K::WORDS {
                1 => self.merge_tiles::<O, { ITEMS[0] }>(stream, splits.read_only()),
                2 => self.merge_tiles::<O, { ITEMS[1] }>(stream, splits.read_only()),
                _ => self.merge_tiles::<O, { ITEMS[2] }>(stream, splits.read_only()),
            }
        }
    }

    /// # Safety
    /// As [`run`](Self::run), and tiles begin where the splits say.
    unsafe fn merge_tiles<O: MergeOrder<K, V>, const ITEMS: usize>(
        &self,
        stream: &Stream,
        splits: Slice<'_, u64>,
    ) -> Result<()> {
        let Self { first, second, output } = *self;
        let Lookup { coords, dims, axis } = no_lookup();
        let num_tiles = num_tiles::<K>(first.keys.len() + second.keys.len()) as u64;
        let (from, to) =
            ((first.keys, first.values, second.keys, second.values), (output.keys, output.values));
        let args = (from.0, from.1, from.2, from.3, to.0, to.1, splits, coords, dims, axis);
        // SAFETY: passed on to the caller.
        unsafe { stream.launch::<primitives_merge<K, V, O, ITEMS>>(num_tiles, args) }
    }
}

/// Merges two runs of keys.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the output is not as long as both runs together,
/// [`Error::WrongDevice`](crate::Error::WrongDevice), [`Error::OutOfMemory`](crate::Error::OutOfMemory), or the driver's.
pub fn merge_keys<K: Words, O: MergeOrder<K, NoValue> + ByKey>(
    stream: &Stream,
    workspace: &mut Workspace,
    first: &Buffer<K>,
    second: &Buffer<K>,
    merged: &mut Buffer<K>,
) -> Result<()> {
    merged.check_items("merged keys", first.len() + second.len())?;
    first.check_device(stream)?;
    second.check_device(stream)?;
    merged.check_device(stream)?;
    let first = Run { keys: first.slice(), values: nothing().read_only() };
    let second = Run { keys: second.slice(), values: nothing().read_only() };
    let output = RunMut { keys: merged.slice_mut(), values: nothing() };
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { Merge { first, second, output }.run::<O>(stream, workspace) }
}

/// Merges two runs of pairs, each given by its keys and its values.
///
/// # Errors
/// As [`merge_keys`]; there are as many values as keys.
pub fn merge_pairs<K: Words, O: MergeOrder<K, u32> + ByKey>(
    stream: &Stream,
    workspace: &mut Workspace,
    first: (&Buffer<K>, &Buffer<u32>),
    second: (&Buffer<K>, &Buffer<u32>),
    merged: (&mut Buffer<K>, &mut Buffer<u32>),
) -> Result<()> {
    merged.0.check_items("merged keys", first.0.len() + second.0.len())?;
    merged.1.check_items("merged values", merged.0.len())?;
    merged.0.check_device(stream)?;
    merged.1.check_device(stream)?;
    let (first, second) = (checked(stream, first)?, checked(stream, second)?);
    let output = RunMut { keys: merged.0.slice_mut(), values: merged.1.slice_mut() };
    // SAFETY: as in `merge_keys`.
    unsafe { Merge { first, second, output }.run::<O>(stream, workspace) }
}

/// A run of pairs.
fn checked<'a, K: Words>(stream: &Stream, run: (&'a Buffer<K>, &'a Buffer<u32>)) -> Result<Run<'a, K, u32>> {
    let (keys, values) = run;
    values.check_items("values of a run", keys.len())?;
    keys.check_device(stream)?;
    values.check_device(stream)?;
    Ok(Run { keys: keys.slice(), values: values.slice() })
}

/// A view of nothing.
pub(crate) fn nothing<'a, T>() -> SliceMut<'a, T> {
    // SAFETY: no element is ever accessed.
    unsafe { SliceMut::from_raw_parts(std::ptr::dangling_mut(), 0) }
}

/// For orders that look up nothing.
pub(crate) fn no_lookup<'a, K>() -> Lookup<'a, K> {
    Lookup { coords: nothing().read_only(), dims: 0, axis: 0 }
}
