//! Device memory that grows.

use crate::device::{Buffer, Stream};
use crate::error::Result;
use bytemuck::Pod;
use cuda_std::mem::{Slice, SliceMut};
use cust_core::DeviceCopy;

/// A list in device memory whose length becomes known step by step. Its memory never shrinks, so that later builds reuse it.
pub(crate) struct GrowableBuffer<T> {
    buffer: Option<Buffer<T>>,
    len: usize,
}

impl<T> Default for GrowableBuffer<T> {
    fn default() -> Self {
        Self { buffer: None, len: 0 }
    }
}

impl<T: DeviceCopy + Pod> GrowableBuffer<T> {
    /// Returns a list of these items.
    pub(crate) fn from_slice(stream: &Stream, items: &[T], label: &'static str) -> Result<Self> {
        Ok(Self { buffer: Some(Buffer::from_slice(stream, items, label)?), len: items.len() })
    }

    /// Sets the length to `len` items, which are undefined. Errors name the memory by `label`.
    pub(crate) fn reserve(&mut self, stream: &Stream, len: usize, label: &'static str) -> Result<()> {
        self.grow(stream, len, 0, label)
    }

    /// Sets the length to `len` items. The first `kept` items stay, the others are undefined.
    pub(crate) fn grow(
        &mut self,
        stream: &Stream,
        len: usize,
        kept: usize,
        label: &'static str,
    ) -> Result<()> {
        let old = self.buffer.take();
        let capacity = old.as_ref().map_or(0, Buffer::len);
        self.len = len;
        if capacity >= len && capacity > 0 {
            self.buffer = old;
            return Ok(());
        }
        // Without items to keep, the old memory is freed first, so that both are never held together.
        let old = old.filter(|_| kept > 0);
        let capacity = if kept > 0 { len.max(capacity + capacity / 2) } else { len.max(1) };
        let mut buffer = Buffer::uninitialized(stream.gpu(), capacity, label)?;
        if let Some(old) = old {
            // SAFETY: both have at least `kept` items, and wait for the device before they are freed.
            unsafe { stream.copy(buffer.slice_mut().part(0, kept), old.slice().part(0, kept))? };
        }
        self.buffer = Some(buffer);
        Ok(())
    }

    /// Number of items.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns a view of the items, for which memory must be reserved.
    pub(crate) fn view(&self) -> Slice<'_, T> {
        self.first(self.len)
    }

    /// Returns a mutable view of the items.
    pub(crate) fn view_mut(&mut self) -> SliceMut<'_, T> {
        // SAFETY: the memory has at least this length.
        unsafe { self.buffer.as_mut().expect("memory was reserved").slice_mut().part(0, self.len) }
    }

    /// Returns a view of the first `len` items.
    pub(crate) fn first(&self, len: usize) -> Slice<'_, T> {
        assert!(len <= self.len, "{len} items of {}", self.len);
        // SAFETY: the memory has at least this length.
        unsafe { self.buffer.as_ref().expect("memory was reserved").slice().part(0, len) }
    }

    /// Copies the items to host memory.
    pub(crate) fn to_vec(&self, stream: &Stream) -> Result<Vec<T>> {
        self.buffer.as_ref().map_or(Ok(Vec::new()), |buffer| buffer.front_to_vec(stream, self.len))
    }

    /// Returns the bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.buffer.as_ref().map_or(0, |buffer| (buffer.len() * size_of::<T>()) as u64)
    }
}
