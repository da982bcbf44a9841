//! Points in device memory.

use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::thread::coord::Coord;

use crate::device::{Buffer, Gpu};
use crate::error::Result;

/// Coordinates of points, and their ids beside them; there may be room for more.
pub(crate) struct Points<C> {
    coords: Buffer<C>,
    names: Buffer<u32>,
    dims: usize,
    len: usize,
}

impl<C: Coord> Points<C> {
    /// Room for so many points, with undefined contents.
    pub(crate) fn uninitialized(gpu: &Gpu, len: usize, dims: usize) -> Result<Self> {
        let coords = Buffer::uninitialized(gpu, len * dims, "coordinates of a part")?;
        Ok(Self { coords, names: Buffer::uninitialized(gpu, len, "ids of a part")?, dims, len })
    }

    /// The memory of these for as many others, if there is room for them.
    pub(crate) fn reused(self, len: usize) -> Option<Self> {
        (len <= self.names.len()).then_some(Self { len, ..self })
    }

    /// The first of these, so many.
    pub(crate) fn with_len(self, len: usize) -> Self {
        Self { len: len.min(self.names.len()), ..self }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the memory.
    pub(crate) fn bytes(&self) -> u64 {
        (self.coords.len() * size_of::<C>() + self.names.len() * size_of::<u32>()) as u64
    }

    pub(crate) fn coords(&self) -> Slice<'_, C> {
        // SAFETY: there is room for so many.
        unsafe { self.coords.slice().part(0, self.len * self.dims) }
    }

    pub(crate) fn names(&self) -> Slice<'_, u32> {
        // SAFETY: as in `coords`.
        unsafe { self.names.slice().part(0, self.len) }
    }

    /// Both, to be written.
    pub(crate) fn write(&mut self) -> (SliceMut<'_, C>, SliceMut<'_, u32>) {
        // SAFETY: as in `coords`.
        unsafe {
            let coords = self.coords.slice_mut().part(0, self.len * self.dims);
            (coords, self.names.slice_mut().part(0, self.len))
        }
    }

    /// The memory, of which all is used.
    pub(crate) fn into_buffers(self) -> (Buffer<C>, Buffer<u32>) {
        debug_assert_eq!(self.len, self.names.len());
        (self.coords, self.names)
    }
}
