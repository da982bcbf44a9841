//! Coordinates in host memory. The CPU checks them for NaN, infinities and too large values. From 8 MiB on the GPU checks them after the copy,
//! because host memory is the bottleneck of the copy. The page of the suite `copies` has the measurements.

use crate::device::{Buffer, Device, LARGE_BYTES, Layout, Stream, Workspace, gpu_of};
use crate::error::Result;
use crate::point::{
    Dispatch, DistanceOf, PerCoordinate, Point, Typed, are_floats_copied, check_each_coordinate,
    checked_coordinates, dims, is_usable,
};
use crate::primitives::planned::carve;
use crate::primitives::reduce::Reduce;
use crate::stats::Stats;
use bytemuck::NoUninit;
use cuda_std::mem::{Slice, SliceMut};
use cust_core::DeviceCopy;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;

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

    pub(crate) fn dims(&self) -> usize {
        self.dims
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
        let is_checked_there = !self.is_checked && size_of_val(self.coords) >= LARGE_BYTES;
        let coords = if is_checked_there { self.coords } else { self.checked()? };
        // SAFETY: passed on to the caller; the coordinates are read after the copy.
        unsafe {
            stream.upload(to, coords)?;
            if is_checked_there && !are_usable(stream, to.read_only())? {
                check(coords, self.dims)?;
            }
        }
        Ok(())
    }

    /// Copies the coordinates to a new buffer. `label` names it in errors.
    pub(crate) fn to_buffer(self, stream: &Stream, label: &'static str) -> Result<Buffer<C>> {
        let mut buffer = Buffer::uninitialized(stream.gpu(), self.len(), label)?;
        // SAFETY: nothing else uses the new memory.
        unsafe { self.upload(stream, buffer.slice_mut())? };
        Ok(buffer)
    }
}

/// Returns true if all coordinates in device memory are valid.
///
/// # Safety
/// Earlier work of the stream has written the view, and it does not change meanwhile.
unsafe fn are_usable<C: Coord>(stream: &Stream, coords: Slice<'_, C>) -> Result<bool> {
    let is_integer = size_of::<C>() != size_of::<C::Distance>();
    if is_integer || coords.is_empty() {
        return Ok(true);
    }
    let plan = |layout: &mut Layout| {
        (Reduce::<C>::plan(layout, coords.len()), layout.reserve::<C>(1), layout.reserve::<C>(1))
    };
    let mut workspace = Workspace::new(stream.gpu());
    let ((reduce, least, greatest), temp) = carve(stream, &mut workspace, "a check of coordinates", plan)?;
    let (least, greatest) = (temp.view(least), temp.view(greatest));
    // SAFETY: passed on to the caller; the arrays of a plan do not overlap.
    let ends = unsafe {
        // These operators order a NaN below -infinity or above infinity, by its sign.
        reduce.run::<C::Min>(&temp, coords, least)?;
        reduce.run::<C::Max>(&temp, coords, greatest)?;
        [stream.read(least.read_only())?, stream.read(greatest.read_only())?]
    };
    Ok(ends.into_iter().flatten().all(is_usable))
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;
    use crate::device::SimOptions;
    use kauri_kernels::thread::coord::Float;

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

    #[test]
    fn invalid_coordinates_are_found_on_a_device() -> Result<()> {
        let device = Device::sim(SimOptions::default())?;
        let stream = Stream::new(device.gpu().expect("the device is a GPU"))?;
        let is_valid = |coords: &[f32]| -> Result<[bool; 2]> {
            let single = Buffer::from_slice(&stream, coords, "f32")?;
            let double: Vec<f64> = coords.iter().copied().map(f64::from).collect();
            let double = Buffer::from_slice(&stream, &double, "f64")?;
            // SAFETY: nothing else uses the buffers.
            unsafe { Ok([are_usable(&stream, single.slice())?, are_usable(&stream, double.slice())?]) }
        };
        for valid in [&[] as &[f32], &[-0.0], &[f32::LIMIT, -f32::LIMIT], &[-3.0, -f32::LIMIT], &[5.0; 3000]]
        {
            assert_eq!(is_valid(valid)?, [true; 2], "{valid:?}");
        }
        let too_large = f32::LIMIT.next_up();
        for invalid in [f32::NAN, -f32::NAN, f32::INFINITY, -f32::INFINITY] {
            for others in [0.5, -0.5, f32::LIMIT, -f32::LIMIT] {
                for position in [0, 77, 2999] {
                    let mut coords = vec![others; 3000];
                    coords[position] = invalid;
                    assert_eq!(is_valid(&coords)?, [false; 2], "{invalid} among {others}");
                }
            }
        }
        assert_eq!(is_valid(&[1.0, too_large])?, [false, true]);
        assert_eq!(is_valid(&[-1.0, -too_large])?, [false, true]);
        let integers = Buffer::from_slice(&stream, &[i32::MIN, 0, i32::MAX], "i32")?;
        // SAFETY: nothing else uses the buffer.
        assert!(unsafe { are_usable(&stream, integers.slice())? });
        Ok(())
    }
}
