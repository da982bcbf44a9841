//! Merge: two sorted runs become one, stable: of items of which neither has to come before the other those of the first run
//! come first (Green, McColl, Bader 2012, *GPU Merge Path*).
//!
//! Any number of items, also none, in either run. Each item is read and written once; no temporary memory. Runs that are not
//! sorted give a result of the same items in some order. Orders are types, see [`order`](super::order): there are kernels for
//! [`Ascending`](super::order::Ascending) with keys alone and with values of 32 bits, and for
//! [`Descending`](super::order::Descending) with values.

use super::order::{ByKey, Carried, Lookup, NoValue};
use crate::device::{Buffer, Stream};
use crate::error::Result;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::block::merge::TILE;
pub use kauri_kernels::primitives::merge_sort::MergeOrder;
use kauri_kernels::primitives::merge_sort::primitives_merge;
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

/// Merges two runs.
///
/// # Safety
/// The output has room for both and is apart from them, and all are used by nothing else until the stream has done the work.
pub(crate) unsafe fn run<K: Words, V: Carried, O: MergeOrder<K, V>>(
    stream: &Stream,
    first: Run<'_, K, V>,
    second: Run<'_, K, V>,
    output: RunMut<'_, K, V>,
    lookup: Lookup<'_, K>,
) -> Result<()> {
    let num_tiles = (first.keys.len() + second.keys.len()).div_ceil(TILE) as u64;
    let Lookup { coords, dims, axis } = lookup;
    let args = (
        first.keys,
        first.values,
        second.keys,
        second.values,
        output.keys,
        output.values,
        coords,
        dims,
        axis,
    );
    // SAFETY: passed on to the caller.
    unsafe { stream.launch::<primitives_merge<K, V, O>>(num_tiles, args) }
}

/// Merges two runs of keys.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the output is not as long as both runs together,
/// [`Error::WrongDevice`](crate::Error::WrongDevice), or the driver's.
pub fn merge_keys<K: Words, O: MergeOrder<K, NoValue> + ByKey>(
    stream: &Stream,
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
    unsafe { run::<K, NoValue, O>(stream, first, second, output, no_lookup()) }
}

/// Merges two runs of pairs, each given by its keys and its values.
///
/// # Errors
/// As [`merge_keys`]; there are as many values as keys.
pub fn merge_pairs<K: Words, O: MergeOrder<K, u32> + ByKey>(
    stream: &Stream,
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
    unsafe { run::<K, u32, O>(stream, first, second, output, no_lookup()) }
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
