//! Points in memory.

use super::coord::Coord;
use super::measure::MAX_DIMS;
use cuda_std::prelude::*;

/// Point `i` of points of `dims` coordinates, which are `D` unless that is [`MAX_DIMS`]; those beyond are 0.
///
/// # Safety
/// There is that point.
#[inline(always)]
pub unsafe fn load_point<C: Coord, const D: usize>(coords: Slice<'_, C>, i: usize, dims: usize) -> [C; D] {
    load_point_of_most::<C, D, MAX_DIMS>(coords, i, dims)
}

/// The same for kernels whose general form is of points of up to `MOST` dimensions.
///
/// # Safety
/// As [`load_point`].
#[inline(always)]
pub unsafe fn load_point_of_most<C: Coord, const D: usize, const MOST: usize>(
    coords: Slice<'_, C>,
    i: usize,
    dims: usize,
) -> [C; D] {
    let mut point = [C::ZERO; D];
    let mut axis = 0;
    while axis < D {
        if D < MOST || axis < dims {
            point[axis] = coords.load(i * dims + axis);
        }
        axis += 1;
    }
    point
}
