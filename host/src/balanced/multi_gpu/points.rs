//! The points of a part in device memory.

use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::thread::coord::Float;

use crate::device::{Buffer, Gpu};
use crate::error::Result;

/// Coordinates and ids of points. The buffers may have a larger capacity.
pub(crate) struct Points<C> {
    coords: Buffer<C>,
    ids: Buffer<u32>,
    dims: usize,
    len: usize,
}

impl<C: Float> Points<C> {
    /// Allocates memory for `len` points, with undefined contents.
    pub(crate) fn uninitialized(gpu: &Gpu, len: usize, dims: usize) -> Result<Self> {
        let coords = Buffer::uninitialized(gpu, len * dims, "coordinates of a part")?;
        Ok(Self { coords, ids: Buffer::uninitialized(gpu, len, "ids of a part")?, dims, len })
    }

    /// Returns the memory for `len` other points, if the capacity is large enough.
    pub(crate) fn reuse(self, len: usize) -> Option<Self> {
        (len <= self.ids.len()).then_some(Self { len, ..self })
    }

    /// Keeps the first `len` points.
    pub(crate) fn truncate(self, len: usize) -> Self {
        Self { len: len.min(self.ids.len()), ..self }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of the buffers.
    pub(crate) fn bytes(&self) -> u64 {
        (self.coords.len() * size_of::<C>() + self.ids.len() * size_of::<u32>()) as u64
    }

    pub(crate) fn coords(&self) -> Slice<'_, C> {
        // SAFETY: the capacity is at least `len`.
        unsafe { self.coords.slice().part(0, self.len * self.dims) }
    }

    pub(crate) fn ids(&self) -> Slice<'_, u32> {
        // SAFETY: as in `coords`.
        unsafe { self.ids.slice().part(0, self.len) }
    }

    /// Returns views of coordinates and ids to write to.
    pub(crate) fn write(&mut self) -> (SliceMut<'_, C>, SliceMut<'_, u32>) {
        // SAFETY: as in `coords`.
        unsafe {
            let coords = self.coords.slice_mut().part(0, self.len * self.dims);
            (coords, self.ids.slice_mut().part(0, self.len))
        }
    }

    /// Returns the buffers. Their capacity is `len`.
    pub(crate) fn into_buffers(self) -> (Buffer<C>, Buffer<u32>) {
        debug_assert_eq!(self.len, self.ids.len());
        (self.coords, self.ids)
    }
}
