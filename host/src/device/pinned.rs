//! Page-locked host memory, which the GPU copies at full speed.

use super::buffer::checked_bytes;
use super::driver::Memory;
use super::gpu::Gpu;
use crate::error::Result;
use bytemuck::Zeroable;
use cuda_std::mem::SliceMut;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// An array in page-locked host memory, which the GPU copies at full speed and without a wait of the host. It is used as a
/// slice.
///
/// ```
/// use kauri::device::{Buffer, PinnedBuffer, Stream};
///
/// if let Some(gpu) = kauri::Device::best()?.gpu() {
///     let mut numbers = PinnedBuffer::<u32>::zeroed(gpu, 1000, "numbers")?;
///     numbers[7] = 1;
///     let on_device = Buffer::from_slice(&Stream::new(gpu)?, &numbers, "numbers")?;
///     assert_eq!(on_device.len(), 1000);
/// }
/// # Ok::<(), kauri::Error>(())
/// ```
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
    /// [`OutOfMemory`](crate::Error::OutOfMemory), and errors of the driver.
    pub fn zeroed(gpu: &Gpu, len: usize, label: &'static str) -> Result<Self> {
        let bytes = checked_bytes::<T>(len, Memory::PinnedHost, label)?;
        let pointer = if bytes == 0 {
            NonNull::dangling()
        } else {
            let pointer = gpu.driver.alloc(Memory::PinnedHost, bytes, label)? as *mut u8;
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
            // SAFETY: the pointer comes from `alloc` and is freed once; copies are waited for before they return.
            unsafe { self.gpu.driver.free(Memory::PinnedHost, self.pointer.as_ptr() as u64) };
        }
    }
}

impl<T> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedBuffer").field("len", &self.len).finish_non_exhaustive()
    }
}
