//! Views of keys and their values on the device.

use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::thread::carried::NoValue;

/// Read-only keys and values.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a, K, V> {
    pub(crate) keys: Slice<'a, K>,
    pub(crate) values: Slice<'a, V>,
}

impl<'a, K> Source<'a, K, NoValue> {
    /// Returns a run of keys alone.
    pub(crate) fn of_keys(keys: Slice<'a, K>) -> Self {
        Self { keys, values: empty_view().read_only() }
    }
}

/// Writable keys and values.
#[derive(Clone, Copy)]
pub(crate) struct Pairs<'a, K, V> {
    pub(crate) keys: SliceMut<'a, K>,
    pub(crate) values: SliceMut<'a, V>,
}

impl<'a, K, V> Pairs<'a, K, V> {
    /// Returns the read-only views.
    pub(crate) fn read_only(&self) -> Source<'a, K, V> {
        Source { keys: self.keys.read_only(), values: self.values.read_only() }
    }
}

impl<'a, K> Pairs<'a, K, NoValue> {
    /// Returns an output for keys alone.
    pub(crate) fn of_keys(keys: SliceMut<'a, K>) -> Self {
        Self { keys, values: empty_view() }
    }
}

/// Returns an empty view.
pub(crate) fn empty_view<'a, T>() -> SliceMut<'a, T> {
    // SAFETY: no element is ever accessed.
    unsafe { SliceMut::from_raw_parts(std::ptr::dangling_mut(), 0) }
}
