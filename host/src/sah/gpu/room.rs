//! Device memory that grows.

use crate::device::{Buffer, Stream};
use crate::error::Result;
use bytemuck::Pod;
use cuda_std::mem::{Slice, SliceMut};
use cust_core::DeviceCopy;

/// Device memory for a number of items that is known step by step: kept for the next time, and larger where that needs more.
pub(super) struct Room<T> {
    buffer: Option<Buffer<T>>,
    label: &'static str,
}

impl<T: DeviceCopy + Pod> Room<T> {
    pub(super) fn new(label: &'static str) -> Self {
        Self { buffer: None, label }
    }

    /// With these items.
    pub(super) fn with(stream: &Stream, items: &[T], label: &'static str) -> Result<Self> {
        Ok(Self { buffer: Some(Buffer::from_slice(stream, items, label)?), label })
    }

    /// Room for so many items, the first `kept` of which stay.
    pub(super) fn reserve(&mut self, stream: &Stream, len: usize, kept: usize) -> Result<()> {
        let old = self.buffer.take();
        let has = old.as_ref().map_or(0, Buffer::len);
        if has >= len && has > 0 {
            self.buffer = old;
            return Ok(());
        }
        // What does not stay goes first, so that growing never holds both.
        let old = old.filter(|_| kept > 0);
        let len = if kept > 0 { len.max(has + has / 2) } else { len.max(1) };
        let mut buffer = Buffer::uninitialized(stream.gpu(), len, self.label)?;
        if let Some(old) = old {
            // SAFETY: both have so many items, and wait for the device before they are freed.
            unsafe { stream.copy(buffer.slice_mut().part(0, kept), old.slice().part(0, kept))? };
        }
        self.buffer = Some(buffer);
        Ok(())
    }

    /// The first items.
    pub(super) fn first(&self, len: usize) -> Slice<'_, T> {
        let all = self.buffer.as_ref().expect("room was reserved").slice();
        assert!(len <= all.len(), "as many as were reserved");
        // SAFETY: so many there are.
        unsafe { all.part(0, len) }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.buffer.as_ref().map_or(0, |buffer| (buffer.len() * size_of::<T>()) as u64)
    }

    /// A copy of the first items in host memory.
    pub(super) fn to_vec(&self, stream: &Stream, len: usize) -> Result<Vec<T>> {
        self.buffer.as_ref().map_or(Ok(Vec::new()), |buffer| buffer.front_to_vec(stream, len))
    }

    /// All items, to be written.
    pub(super) fn all_mut(&mut self) -> SliceMut<'_, T> {
        self.buffer.as_mut().expect("room was reserved").slice_mut()
    }
}
