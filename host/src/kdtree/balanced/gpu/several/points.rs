//! Points in device memory.

use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::thread::coord::Coord;

use crate::device::{Buffer, Gpu};
use crate::error::Result;

/// Coordinates of points, and their ids beside them; there may be room for more.
pub(super) struct Points<C> {
    coords: Buffer<C>,
    names: Buffer<u32>,
    dims: usize,
    len: usize,
}

impl<C: Coord> Points<C> {
    /// Room for so many points, with undefined contents.
    pub(super) fn uninitialized(gpu: &Gpu, len: usize, dims: usize) -> Result<Self> {
        let coords = Buffer::uninitialized(gpu, len * dims, "coordinates of a part")?;
        Ok(Self { coords, names: Buffer::uninitialized(gpu, len, "ids of a part")?, dims, len })
    }

    /// The memory of these for as many others, if there is room for them.
    pub(super) fn reused(self, len: usize) -> Option<Self> {
        (len <= self.names.len()).then_some(Self { len, ..self })
    }

    /// The first of these, so many.
    pub(super) fn with_len(self, len: usize) -> Self {
        Self { len: len.min(self.names.len()), ..self }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the memory.
    pub(super) fn bytes(&self) -> u64 {
        (self.coords.len() * size_of::<C>() + self.names.len() * size_of::<u32>()) as u64
    }

    pub(super) fn coords(&self) -> Slice<'_, C> {
        // SAFETY: there is room for so many.
        unsafe { self.coords.slice().part(0, self.len * self.dims) }
    }

    pub(super) fn names(&self) -> Slice<'_, u32> {
        // SAFETY: as in `coords`.
        unsafe { self.names.slice().part(0, self.len) }
    }

    /// Both, to be written.
    pub(super) fn write(&mut self) -> (SliceMut<'_, C>, SliceMut<'_, u32>) {
        // SAFETY: as in `coords`.
        unsafe {
            let coords = self.coords.slice_mut().part(0, self.len * self.dims);
            (coords, self.names.slice_mut().part(0, self.len))
        }
    }

    /// The memory, of which all is used.
    pub(super) fn into_buffers(self) -> (Buffer<C>, Buffer<u32>) {
        debug_assert_eq!(self.len, self.names.len());
        (self.coords, self.names)
    }
}
