//! What distances are measured from, to points and to boxes.

use super::coord::Coord;
use super::measure::{MAX_DIMS, Norm, along, along_to_range, farthest_along};
use cuda_std::prelude::*;

/// What a query measures distances from.
pub trait Region<C, const D: usize>: Copy {
    /// Distance to a point.
    ///
    /// # Safety
    /// What it reads of device memory is there.
    unsafe fn to_point(&self, point: [C; D]) -> C;
    /// The least distance to anything between two corners.
    ///
    /// # Safety
    /// As [`to_point`](Self::to_point).
    unsafe fn to_box(&self, low: [C; D], high: [C; D]) -> C;
    /// A distance that nothing between two corners is beyond.
    ///
    /// # Safety
    /// As [`to_point`](Self::to_point).
    unsafe fn to_all_of_box(&self, low: [C; D], high: [C; D]) -> C;
}

/// A box with its border: what is in it is at a distance of 0.
#[derive(Clone, Copy)]
pub struct Range<C, const D: usize> {
    /// The least coordinates.
    pub low: [C; D],
    /// The greatest.
    pub high: [C; D],
    /// Axes that count.
    pub dims: usize,
}

impl<C: Coord, const D: usize> Region<C, D> for Range<C, D> {
    #[inline(always)]
    unsafe fn to_point(&self, point: [C; D]) -> C {
        self.to_box(point, point)
    }

    #[inline(always)]
    unsafe fn to_box(&self, low: [C; D], high: [C; D]) -> C {
        let mut farthest = C::ZERO;
        let mut axis = 0;
        while axis < D {
            if D < MAX_DIMS || axis < self.dims {
                farthest = farthest.max(self.low[axis] - high[axis]).max(low[axis] - self.high[axis]);
            }
            axis += 1;
        }
        farthest
    }

    #[inline(always)]
    unsafe fn to_all_of_box(&self, low: [C; D], high: [C; D]) -> C {
        // The farther of both corners on each axis.
        let (to_low, to_high) = (self.to_box(low, low), self.to_box(high, high));
        to_low.max(to_high)
    }
}

/// One query. For less than [`MAX_DIMS`] dimensions, of which there are exactly `D` then, the distance is the Euclidean, without
/// periods; for that many there are `dims` up to it, and the rest is as it says.
///
/// Points and boxes have `D` coordinates, of which those beyond the dimensions are not looked at. Distances are computed axis
/// by axis, in their order and without contraction, so that all backends agree to the last bit; and since rounding is
/// monotone, the distance to a box is never above that of a point in it.
#[derive(Clone, Copy)]
pub struct Measure<'a, C, const D: usize> {
    query: [C; D],
    dims: usize,
    norm: Norm,
    /// After how much each axis repeats, 0 where it does not; empty if none does.
    periods: Slice<'a, C>,
}

impl<'a, C: Coord, const D: usize> Measure<'a, C, D> {
    const IS_GENERAL: bool = D == MAX_DIMS;

    /// Of a query of `D` coordinates.
    #[inline(always)]
    pub fn new(query: [C; D], dims: usize, norm: Norm, periods: Slice<'a, C>) -> Self {
        Self { query, dims: if Self::IS_GENERAL { dims } else { D }, norm, periods }
    }

    /// True if it is within a distance of itself: it has no coordinate that is not a number.
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
        let mut axis = 0;
        while axis < D {
            if axis < self.dims {
                let period = if self.periods.is_empty() { C::ZERO } else { self.periods.load(axis) };
                sum = self.norm.and(sum, along(axis, period));
            }
            axis += 1;
        }
        sum
    }
}

impl<C: Coord, const D: usize> Region<C, D> for Measure<'_, C, D> {
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
        // With a period points are no farther than without.
        self.put_together(|axis, _| farthest_along(self.query[axis], low[axis], high[axis]))
    }
}
