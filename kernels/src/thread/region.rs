//! Query regions: distances from a query point or a query box to points and boxes.

use super::coord::Float;
use super::measure::{MAX_DIMS, Norm, along, along_to_range, farthest_along};
use cuda_std::prelude::*;

/// The region that a query measures distances from.
pub trait Region<C, const D: usize>: Copy {
    /// Returns the distance to a point.
    ///
    /// # Safety
    /// Device memory that the region refers to is readable.
    unsafe fn to_point(&self, point: [C; D]) -> C;
    /// Returns the least distance to the box with the given corners.
    ///
    /// # Safety
    /// As [`to_point`](Self::to_point).
    unsafe fn to_box(&self, low: [C; D], high: [C; D]) -> C;
    /// Returns an upper bound of the distance to every point of the box with the given corners.
    ///
    /// # Safety
    /// As [`to_point`](Self::to_point).
    unsafe fn to_all_of_box(&self, low: [C; D], high: [C; D]) -> C;
}

/// A closed box. Points in it are at distance 0.
#[derive(Clone, Copy)]
pub struct Range<C, const D: usize> {
    /// The least coordinates.
    pub low: [C; D],
    /// The greatest.
    pub high: [C; D],
    /// The number of axes in use.
    pub dims: usize,
}

impl<C: Float, const D: usize> Region<C, D> for Range<C, D> {
    #[inline(always)]
    unsafe fn to_point(&self, point: [C; D]) -> C {
        self.to_box(point, point)
    }

    #[inline(always)]
    unsafe fn to_box(&self, low: [C; D], high: [C; D]) -> C {
        let mut farthest = C::ZERO;
        for axis in 0..D {
            if D < MAX_DIMS || axis < self.dims {
                farthest = farthest.max(self.low[axis] - high[axis]).max(low[axis] - self.high[axis]);
            }
        }
        farthest
    }

    #[inline(always)]
    unsafe fn to_all_of_box(&self, low: [C; D], high: [C; D]) -> C {
        // On each axis, the farther of both corners.
        let (to_low, to_high) = (self.to_box(low, low), self.to_box(high, high));
        to_low.max(to_high)
    }
}

/// A query point with its metric. Kernels for fewer than [`MAX_DIMS`] dimensions have exactly `D` of them, and the
/// metric is Euclidean without periods. Kernels for [`MAX_DIMS`] dimensions use `dims` of them with any norm and
/// periods.
///
/// Points and boxes have `D` coordinates; those from `dims` on are ignored. Distances are computed in axis order and
/// without contraction, so that all backends agree to the bit. Rounding is monotone, so the distance to a box never
/// exceeds the distance to a point in it.
#[derive(Clone, Copy)]
pub struct Measure<'a, C, const D: usize> {
    query: [C; D],
    dims: usize,
    norm: Norm,
    /// The period of each axis, or 0; empty if no axis is periodic.
    periods: Slice<'a, C>,
}

impl<'a, C: Float, const D: usize> Measure<'a, C, D> {
    const IS_GENERAL: bool = D == MAX_DIMS;

    /// Creates the region of a query point.
    #[inline(always)]
    pub fn new(query: [C; D], dims: usize, norm: Norm, periods: Slice<'a, C>) -> Self {
        Self { query, dims: if Self::IS_GENERAL { dims } else { D }, norm, periods }
    }

    /// Returns the query.
    #[inline(always)]
    pub(crate) fn query(&self) -> [C; D] {
        self.query
    }

    /// The region of another query.
    #[inline(always)]
    pub(crate) fn with_query(&self, query: [C; D]) -> Self {
        Self { query, ..*self }
    }

    /// Returns true if the query is within `bound` of itself, which is false if a coordinate is NaN.
    #[inline(always)]
    pub(crate) unsafe fn is_within_itself(&self, bound: C) -> bool {
        self.to_point(self.query) <= bound
    }

    #[inline(always)]
    unsafe fn put_together(&self, along: impl Fn(usize, C) -> C) -> C {
        if !Self::IS_GENERAL {
            return Norm::Euclidean.put_together(D, |axis| along(axis, C::ZERO));
        }
        let mut sum = C::ZERO;
        for axis in 0..D {
            if axis < self.dims {
                let period = if self.periods.is_empty() { C::ZERO } else { self.periods.load(axis) };
                sum = self.norm.and(sum, along(axis, period));
            }
        }
        sum
    }
}

impl<C: Float, const D: usize> Region<C, D> for Measure<'_, C, D> {
    #[inline(always)]
    unsafe fn to_point(&self, point: [C; D]) -> C {
        self.put_together(|axis, period| along(self.query[axis], point[axis], period))
    }

    #[inline(always)]
    unsafe fn to_box(&self, low: [C; D], high: [C; D]) -> C {
        self.put_together(|axis, period| along_to_range(self.query[axis], low[axis], high[axis], period))
    }

    #[inline(always)]
    unsafe fn to_all_of_box(&self, low: [C; D], high: [C; D]) -> C {
        // A period never increases a distance, so it can be ignored.
        self.put_together(|axis, _| farthest_along(self.query[axis], low[axis], high[axis]))
    }
}
