//! Page-locked host memory, which the GPU copies at full speed.

use super::buffer::ALIGNMENT;
use super::gpu::Gpu;
use crate::error::{Error, Result};
use bytemuck::Zeroable;
use cuda_std::mem::SliceMut;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// An array in page-locked host memory; used as a slice.
pub struct PinnedBuffer<T> {
    gpu: Gpu,
    /// Dangling for an empty buffer.
    pointer: NonNull<T>,
    len: usize,
}

// SAFETY: the buffer owns its items, as a Vec does.
unsafe impl<T: Send> Send for PinnedBuffer<T> {}
// SAFETY: shared access only reads.
unsafe impl<T: Sync> Sync for PinnedBuffer<T> {}

impl<T: Copy + Zeroable> PinnedBuffer<T> {
    /// Allocates `len` zeroed items. `label` names the purpose in errors.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and errors of the driver.
    pub fn zeroed(gpu: &Gpu, len: usize, label: &'static str) -> Result<Self> {
        const { assert!(align_of::<T>() <= ALIGNMENT, "items of a buffer are aligned to 256 bytes at most") };
        let too_large = Error::OutOfMemory { memory: "pinned host", requested: u64::MAX, free: 0, label };
        let bytes = len.checked_mul(size_of::<T>()).ok_or(too_large)?;
        let pointer = if bytes == 0 {
            NonNull::dangling()
        } else {
            let pointer = gpu.driver().alloc_pinned(bytes, label)?;
            // SAFETY: fresh memory of that size; all-zero bits are a T.
            unsafe { pointer.write_bytes(0, bytes) };
            NonNull::new(pointer.cast()).expect("drivers do not return null for success")
        };
        Ok(Self { gpu: gpu.clone(), pointer, len })
    }
}

impl<T> PinnedBuffer<T> {
    /// Returns a view for kernels, which write it over the bus.
    pub(crate) fn slice_mut(&mut self) -> SliceMut<'_, T> {
        // SAFETY: `len` items, which the device reaches at the same address; they stay borrowed.
        unsafe { SliceMut::from_raw_parts(self.pointer.as_ptr(), self.len) }
    }
}

impl<T> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialized items, owned by this buffer.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.len) }
    }
}

impl<T> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        if self.len * size_of::<T>() != 0 {
            // SAFETY: the pointer comes from `alloc_pinned` and is freed once; copies are waited for before they return.
            unsafe { self.gpu.driver().free_pinned(self.pointer.as_ptr().cast()) };
        }
    }
}

impl<T> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedBuffer").field("len", &self.len).finish_non_exhaustive()
    }
}
