//! Keys and their values on the device, as views.

use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::thread::carried::NoValue;

/// Keys to be read and their values.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a, K, V> {
    pub(crate) keys: Slice<'a, K>,
    pub(crate) values: Slice<'a, V>,
}

impl<'a, K> Source<'a, K, NoValue> {
    /// Keys alone.
    pub(crate) fn of_keys(keys: Slice<'a, K>) -> Self {
        Self { keys, values: empty_view().read_only() }
    }
}

/// Keys and their values.
#[derive(Clone, Copy)]
pub(crate) struct Pairs<'a, K, V> {
    pub(crate) keys: SliceMut<'a, K>,
    pub(crate) values: SliceMut<'a, V>,
}

impl<'a, K, V> Pairs<'a, K, V> {
    /// To be read.
    pub(crate) fn read_only(&self) -> Source<'a, K, V> {
        Source { keys: self.keys.read_only(), values: self.values.read_only() }
    }
}

impl<'a, K> Pairs<'a, K, NoValue> {
    /// Keys alone.
    pub(crate) fn of_keys(keys: SliceMut<'a, K>) -> Self {
        Self { keys, values: empty_view() }
    }
}

/// A view of nothing.
pub(crate) fn empty_view<'a, T>() -> SliceMut<'a, T> {
    // SAFETY: no element is ever accessed.
    unsafe { SliceMut::from_raw_parts(std::ptr::dangling_mut(), 0) }
}
