//! Views of keys and their values on the device.

use crate::device::{Buffer, Stream};
use crate::error::Result;
use cuda_std::mem::SliceMut;
use cust_core::DeviceCopy;
use kauri_kernels::thread::carried::NoValue;
pub(crate) use kauri_kernels::thread::carried::{Pairs, Source};

/// Returns an empty view.
pub(crate) fn empty_view<'a, T>() -> SliceMut<'a, T> {
    // SAFETY: no element is ever accessed.
    unsafe { SliceMut::from_raw_parts(std::ptr::dangling_mut(), 0) }
}

/// Checks the buffers of a sort of keys, and returns their views.
pub(super) fn keys_to_sort<'a, K: DeviceCopy, B>(
    stream: &Stream,
    keys: &'a Buffer<K>,
    sorted: &'a mut Buffer<K>,
) -> Result<(Source<'a, B, NoValue>, Pairs<'a, B, NoValue>)> {
    keys.check_device(stream)?;
    sorted.check(stream, "sorted keys", keys.len())?;
    Ok((Source::of_keys(keys.bits()), Pairs::of_keys(sorted.bits_mut())))
}

/// Checks the buffers of a sort of pairs, and returns their views.
pub(super) fn pairs_to_sort<'a, K: DeviceCopy, V: DeviceCopy, B, W>(
    stream: &Stream,
    (keys, values): (&'a Buffer<K>, &'a Buffer<V>),
    (sorted_keys, sorted_values): (&'a mut Buffer<K>, &'a mut Buffer<V>),
) -> Result<(Source<'a, B, W>, Pairs<'a, B, W>)> {
    keys.check_device(stream)?;
    values.check(stream, "values to sort with keys", keys.len())?;
    sorted_keys.check(stream, "sorted keys", keys.len())?;
    sorted_values.check(stream, "sorted values", keys.len())?;
    let to = Pairs { keys: sorted_keys.bits_mut(), values: sorted_values.bits_mut() };
    Ok((Source { keys: keys.bits(), values: values.bits() }, to))
}
