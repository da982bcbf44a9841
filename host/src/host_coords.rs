//! Coordinates in host memory. Those for a GPU are checked during their copy to it, because a separate check reads them once more, which takes
//! a third of the time of the copy.

use crate::device::{Buffer, Device, LARGE_BYTES, Stream, gpu_of};
use crate::error::{Result, check_len};
use crate::point::{
    CHECK_CHUNK, Dispatch, DistanceOf, MAX_DIMS, PerCoordinate, Point, Typed, are_floats_copied,
    check_each_coordinate, checked_coordinates, dims,
};
use crate::stats::Stats;
use bytemuck::NoUninit;
use cuda_std::mem::SliceMut;
use cust_core::DeviceCopy;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;

/// Number of points of a block. A block is checked, and then copied from the cache.
const BLOCK: usize = 512;
// The check of a block runs on one thread, because threads of copies do not use rayon.
const _: () = assert!(BLOCK * MAX_DIMS <= CHECK_CHUNK);

/// Name of the points of an index in errors.
const POINT: &str = "point";

/// Coordinates in host memory, one point after another. If they are not yet checked, the owner of the points reports the first invalid point
/// after any error.
#[derive(Clone, Copy)]
pub(crate) struct HostCoords<'a, C> {
    coords: &'a [C],
    dims: usize,
    is_checked: bool,
}

/// [`HostCoords`] for each type of coordinates.
pub(crate) struct InHost<'a>(PhantomData<&'a ()>);

impl<'a> PerCoordinate for InHost<'a> {
    type Of<C: Coord> = HostCoords<'a, C>;
}

/// Coordinates of any type in host memory.
pub(crate) type Coords<'a> = Typed<InHost<'a>>;

/// Calls `build` with the coordinates of points. Those for a GPU that need no conversion are not yet checked. If `build` fails, the error of
/// the first invalid point comes first.
pub(crate) fn build_over_coordinates<P: Point, T>(
    points: &[P],
    device: &Device,
    stats: &mut Stats,
    build: impl FnOnce(Coords<'_>, &mut Stats) -> Result<T>,
) -> Result<T> {
    if gpu_of!(device).is_some()
        && let Some(coords) = unchecked::<P>(points)
    {
        return build(P::Coord::wrap::<InHost<'_>>(coords), stats)
            .or_else(|error| checked_coordinates(points, POINT).and(Err(error)));
    }
    let coords = stats.phase("validate", || checked_coordinates(points, POINT))?;
    build(P::Coord::wrap::<InHost<'_>>(HostCoords::of_checked(&coords, P::DIMS)), stats)
}

/// Returns the coordinates of points, not yet checked; `None` if they need a conversion.
fn unchecked<P: Point>(points: &[P]) -> Option<HostCoords<'_, P::Coord>> {
    let dims = dims::<P>();
    let coords =
        P::unchecked(points).filter(|coords| Some(coords.len()) == points.len().checked_mul(dims))?;
    Some(HostCoords { coords, dims, is_checked: false })
}

/// Returns the coordinates of points in the type of distances, not yet checked; `None` if they need a conversion.
pub(crate) fn unchecked_floats<P: Point>(points: &[P]) -> Option<HostCoords<'_, DistanceOf<P>>> {
    if are_floats_copied::<P>() {
        return None;
    }
    let HostCoords { coords, dims, is_checked } = unchecked(points)?;
    match P::Coord::widened(Cow::Borrowed(coords)) {
        Ok(Cow::Borrowed(coords)) => Some(HostCoords { coords, dims, is_checked }),
        _ => None,
    }
}

impl<'a, C: Coord> HostCoords<'a, C> {
    /// Takes coordinates that have been checked.
    pub(crate) fn of_checked(coords: &'a [C], dims: usize) -> Self {
        Self { coords, dims, is_checked: true }
    }

    /// Returns the number of coordinates of all points.
    pub(crate) fn len(&self) -> usize {
        self.coords.len()
    }

    pub(crate) fn num_points(&self) -> usize {
        self.len() / self.dims
    }

    /// Returns some of the points.
    pub(crate) fn part(self, points: Range<usize>) -> Self {
        Self { coords: &self.coords[points.start * self.dims..points.end * self.dims], ..self }
    }

    /// Returns the coordinates, after a check if none was made.
    pub(crate) fn checked(self) -> Result<&'a [C]> {
        if !self.is_checked {
            check(self.coords, self.dims)?;
        }
        Ok(self.coords)
    }
}

/// Returns an error if a coordinate is invalid. Its index is not that of the point in the input.
fn check<C: Coord>(coords: &[C], dims: usize) -> Result<()> {
    check_each_coordinate(coords, dims, POINT, |point| point as u64)
}

impl<C: Coord + DeviceCopy + NoUninit> HostCoords<'_, C> {
    /// Copies the coordinates to a view in device memory. Returns when the copy is done. After an error the view has undefined contents.
    ///
    /// # Safety
    /// The view is in live device memory, which no other work uses.
    pub(crate) unsafe fn upload(self, stream: &Stream, to: SliceMut<'_, C>) -> Result<()> {
        if self.is_checked || size_of_val(self.coords) < LARGE_BYTES {
            // SAFETY: passed on to the caller.
            return unsafe { stream.upload(to, self.checked()?) };
        }
        check_len("coordinates copied to device memory", to.len(), self.len())?;
        let (dims, block) = (self.dims, BLOCK * self.dims);
        // SAFETY: passed on to the caller; all items are written.
        unsafe {
            stream.upload_by(to, dims, |first, to| {
                let from = &self.coords[first * dims..][..to.len()];
                from.chunks(block).zip(to.chunks_mut(block)).try_for_each(|(from, to)| {
                    check(from, dims)?;
                    to.write_copy_of_slice(from);
                    Ok(())
                })
            })
        }
    }

    /// Copies the coordinates to a new buffer. `label` names it in errors.
    pub(crate) fn to_buffer(self, stream: &Stream, label: &'static str) -> Result<Buffer<C>> {
        let mut buffer = Buffer::uninitialized(stream.gpu(), self.len(), label)?;
        // SAFETY: nothing else uses the new memory.
        unsafe { self.upload(stream, buffer.slice_mut())? };
        Ok(buffer)
    }
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;
    use crate::device::SimOptions;

    #[test]
    fn copies_with_a_check_are_whole() {
        let device = Device::sim(SimOptions::default()).unwrap();
        let stream = Stream::new(device.gpu().unwrap()).unwrap();
        // Enough for a copy in pieces.
        let numbers: Vec<i32> = (0..3 << 20).collect();
        let coords = HostCoords { coords: &numbers, dims: 3, is_checked: false };
        let copied = coords.part(5..1 << 20).to_buffer(&stream, "numbers").unwrap();
        assert!(copied.to_vec(&stream).unwrap() == numbers[15..]);
    }
}
