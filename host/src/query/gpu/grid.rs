//! The grid of an index whose points are in the order of a Hilbert curve.

use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;
use crate::point::with_kernel_dims;
use crate::primitives::pairs::empty_view;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::query::grid::{GridPoints, query_grid_buckets, query_grid_codes};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::MAX_DIMS;

/// The grid, and the code of the first point of each bucket.
pub(crate) struct Grid<C> {
    /// The low corner and the high corner.
    pub(crate) corners: Buffer<C>,
    pub(crate) first_codes: Buffer<u64>,
}

impl<C: Coord> Grid<C> {
    /// Allocates the grid of points in `1 << levels` buckets.
    pub(crate) fn uninitialized(gpu: &Gpu, dims: usize, levels: u32) -> Result<Self> {
        Ok(Self {
            corners: Buffer::uninitialized(gpu, 2 * dims, "corners of a grid")?,
            first_codes: Buffer::uninitialized(gpu, 1 << levels, "codes of buckets")?,
        })
    }

    /// Returns points with the grid.
    pub(crate) fn points<'a>(&'a self, coords: Slice<'a, C>) -> GridPoints<'a, C> {
        GridPoints { coords, dims: self.dims() as u32, corners: self.corners.slice() }
    }

    fn dims(&self) -> usize {
        self.corners.len() / 2
    }

    /// Writes the codes and the numbers of points.
    ///
    /// # Safety
    /// Nothing else uses the memory until the stream has done the work.
    pub(crate) unsafe fn codes(
        &self,
        stream: &Stream,
        coords: Slice<'_, C>,
        codes: SliceMut<'_, u64>,
        numbers: SliceMut<'_, u32>,
    ) -> Result<()> {
        let args = (self.points(coords), 0, codes, numbers);
        // SAFETY: passed on to the caller.
        with_kernel_dims!(self.dims(), D in [2, 3] or MAX_DIMS => unsafe {
            stream.launch_items::<query_grid_codes<C, D>>(codes.len() as u64, args)
        })
    }

    /// Computes the codes of the first points of the buckets; there are points.
    ///
    /// # Safety
    /// As [`codes`](Self::codes).
    pub(crate) unsafe fn compute_first_codes(&mut self, stream: &Stream, coords: Slice<'_, C>) -> Result<()> {
        let dims = self.dims();
        let Self { corners, first_codes } = self;
        let points = GridPoints { coords, dims: dims as u32, corners: corners.slice() };
        let (num_slots, first_codes) = ((coords.len() / dims) as u32, first_codes.slice_mut());
        let args = (points, num_slots, first_codes, empty_view());
        // SAFETY: passed on to the caller.
        with_kernel_dims!(dims, D in [2, 3] or MAX_DIMS => unsafe {
            stream.launch_items::<query_grid_codes<C, D>>(first_codes.len() as u64, args)
        })
    }

    /// Writes the start bucket of each query, and the number of the query.
    ///
    /// # Safety
    /// As [`codes`](Self::codes).
    pub(crate) unsafe fn query_buckets(
        &self,
        stream: &Stream,
        queries: Slice<'_, C>,
        buckets: SliceMut<'_, u32>,
        numbers: SliceMut<'_, u32>,
    ) -> Result<()> {
        let args = (self.points(queries), self.first_codes.slice(), buckets, numbers);
        // SAFETY: passed on to the caller.
        with_kernel_dims!(self.dims(), D in [2, 3] or MAX_DIMS => unsafe {
            stream.launch_items::<query_grid_buckets<C, D>>(buckets.len() as u64, args)
        })
    }

    /// Returns the bytes of a grid.
    pub(crate) fn bytes(dims: usize, levels: u32) -> u64 {
        ((2 * dims * size_of::<C>()) + (size_of::<u64>() << levels)) as u64
    }
}
