//! Loads of points.

use super::coord::Coord;
use super::measure::MAX_DIMS;
use cuda_std::prelude::*;

/// Loads point `i` of points with `dims` coordinates each, in the type of distances. `dims` equals `D` unless `D` is [`MAX_DIMS`];
/// coordinates from `dims` on are 0.
///
/// # Safety
/// `coords` has a point `i`.
#[inline(always)]
pub unsafe fn load_point<C: Coord, const D: usize>(
    coords: Slice<'_, C>,
    i: usize,
    dims: usize,
) -> [C::Distance; D] {
    widen(load_point_up_to::<C, D, MAX_DIMS>(coords, i, dims))
}

/// Converts the coordinates of a point to the type of distances.
#[inline(always)]
pub fn widen<C: Coord, const D: usize>(point: [C; D]) -> [C::Distance; D] {
    let mut wide = [C::Distance::ZERO; D];
    for axis in 0..D {
        wide[axis] = point[axis].widen();
    }
    wide
}

/// [`load_point`] for kernels whose general form has up to `MAX` dimensions, in the type of the coordinates.
///
/// # Safety
/// As [`load_point`].
#[inline(always)]
pub unsafe fn load_point_up_to<C: Coord, const D: usize, const MAX: usize>(
    coords: Slice<'_, C>,
    i: usize,
    dims: usize,
) -> [C; D] {
    let mut point = [C::ZERO; D];
    for axis in 0..D {
        if D < MAX || axis < dims {
            point[axis] = coords.load(i * dims + axis);
        }
    }
    point
}
