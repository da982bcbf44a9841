//! Bounding box of points: the least and the greatest coordinate on every axis, for points of 1 to 8 dimensions, `f32`,
//! `f64` or `i32`. Each point is read once.
//!
//! -0.0 counts as 0.0. NaN coordinates are ignored. On an axis without any number, and for no points at all, the least
//! coordinate is infinity and the greatest is -infinity (of `i32`, the greatest and the least number). The result has the same bits on every run.

use super::planned::{bytes_of, carve};
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::point::with_kernel_dims;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::policy::{FOLD_MAX_BLOCKS, TILE_THREADS};
use kauri_kernels::primitives::bounds::{primitives_bounds, primitives_bounds_finish};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::MAX_DIMS;

/// The temporary memory of a bounding box.
pub(crate) struct Bounds<C: Coord> {
    /// The least key of each axis, then the greatest key of each axis.
    keys: Region<C::Key>,
}

impl<C: Coord> Bounds<C> {
    /// Plans bounding boxes of points of `dims` dimensions.
    pub(crate) fn plan(layout: &mut Layout, dims: usize) -> Self {
        Self { keys: layout.reserve(2 * dims) }
    }

    /// Writes the corners of the bounding box, the least corner first.
    ///
    /// # Safety
    /// `coords` belong to points of `dims` dimensions, as planned, and `corners` has `2 * dims` entries. Nothing else uses
    /// them until the stream has done the work.
    pub(crate) unsafe fn run(
        &self,
        temp: &Temp<'_>,
        coords: Slice<'_, C>,
        dims: usize,
        corners: SliceMut<'_, C>,
    ) -> Result<()> {
        let keys = temp.view(self.keys);
        let blocks = (coords.len() / dims).div_ceil(TILE_THREADS).min(FOLD_MAX_BLOCKS) as u64;
        let args = (coords, dims as u32, keys);
        // SAFETY: the plan has `2 * dims` keys; the rest is passed on to the caller.
        unsafe {
            temp.stream.fill_bytes(keys.part(0, dims), 0xFF)?;
            temp.stream.fill_bytes(keys.part(dims, dims), 0)?;
            with_kernel_dims!(dims, D in [2, 3] or MAX_DIMS => {
                temp.stream.launch::<primitives_bounds<C, D>>(blocks, args)
            })?;
            temp.stream.launch::<primitives_bounds_finish<C>>(1, (keys.read_only(), corners))
        }
    }
}

/// Returns the bytes of temporary memory, for any number of points.
pub fn plan<C: Coord, const D: usize>() -> u64 {
    bytes_of(|layout| Bounds::<C>::plan(layout, D))
}

/// Writes the least and the greatest corner of the bounding box of `points` to `corners`, which has two entries.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) unless there are two corners,
/// [`Error::WrongDevice`](crate::Error::WrongDevice), [`Error::OutOfMemory`](crate::Error::OutOfMemory), and errors of
/// the driver.
pub fn bounds<C: Coord, const D: usize>(
    stream: &Stream,
    workspace: &mut Workspace,
    points: &Buffer<[C; D]>,
    corners: &mut Buffer<[C; D]>,
) -> Result<()> {
    const { assert!(D >= 1 && D <= crate::MAX_DIMS, "points have 1 to 8 coordinates") };
    points.check_device(stream)?;
    corners.check(stream, "corners of a box", 2)?;
    let (bounds, temp) = carve(stream, workspace, "bounds", |layout| Bounds::<C>::plan(layout, D))?;
    let (points, corners) = (points.slice(), corners.slice_mut());
    // SAFETY: the same memory as coordinates; buffers wait for the device before they are freed.
    unsafe {
        let coords = Slice::from_raw_parts(points.as_ptr().cast(), points.len() * D);
        let corners = SliceMut::from_raw_parts(corners.as_ptr().cast(), corners.len() * D);
        bounds.run(&temp, coords, D, corners)
    }
}
