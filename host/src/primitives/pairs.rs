//! Views of keys and their values on the device.

use cuda_std::mem::SliceMut;
pub(crate) use kauri_kernels::thread::carried::{Pairs, Source};

/// Returns an empty view.
pub(crate) fn empty_view<'a, T>() -> SliceMut<'a, T> {
    // SAFETY: no element is ever accessed.
    unsafe { SliceMut::from_raw_parts(std::ptr::dangling_mut(), 0) }
}
