//! One query: how it measures distances, and which points it may find.

use crate::query::cpu::best::Best;
use crate::query::options::ValidatedOptions;
use kauri_kernels::query::buckets::NO_POINT;
use kauri_kernels::thread::coord::{Coord, Float, dist2};
use kauri_kernels::thread::measure::{Norm, along, along_to_range};
use kauri_kernels::thread::point::widen;

/// One query.
#[derive(Clone, Copy)]
pub(crate) struct PointQuery<'a, C: Coord, const D: usize> {
    pub(crate) point: &'a [C; D],
    pub(crate) rules: &'a Rules<'a, C, D>,
    /// The id of the point that the query excludes; `u32::MAX` if it excludes none.
    pub(super) excluded: u32,
}

impl<C: Coord, const D: usize> PointQuery<'_, C, D> {
    /// Offers a point if the query may find it. Its distance is at most [`Best::worst`].
    #[inline(always)]
    pub(crate) fn offer<const PLAIN: bool>(
        &self,
        id: u32,
        distance: C::Distance,
        best: &mut impl Best<C::Distance>,
    ) {
        if id != NO_POINT && self.rules.takes::<PLAIN>(id, self.excluded) {
            best.offer(distance, id);
        }
    }
}

/// How distances are measured, and which points a query may find.
#[derive(Clone)]
pub(crate) struct Rules<'a, C: Coord, const D: usize> {
    pub(crate) options: &'a ValidatedOptions<C::Distance>,
    periods: [C::Distance; D],
    /// The bounding box of all points.
    low: [C::Distance; D],
    high: [C::Distance; D],
}

impl<'a, C: Coord, const D: usize> Rules<'a, C, D> {
    /// The rules of queries to points between two corners.
    pub(super) fn new(options: &'a ValidatedOptions<C::Distance>, corners: [[C; D]; 2]) -> Self {
        let period = |axis: usize| options.periods.get(axis).copied().unwrap_or(C::Distance::ZERO);
        let (periods, [low, high]) = (std::array::from_fn(period), corners.map(widen));
        Self { options, periods, low, high }
    }

    /// True for the Euclidean norm without periods and mask.
    pub(super) fn are_plain(&self) -> bool {
        self.options.is_euclidean() && self.options.mask.is_none()
    }

    /// Returns the distance of a point; `PLAIN` requires plain rules.
    #[inline(always)]
    pub(crate) fn distance<const PLAIN: bool>(&self, query: &[C; D], point: &[C; D]) -> C::Distance {
        let (query, point) = (widen(*query), widen(*point));
        if PLAIN {
            dist2(D, |axis| query[axis], |axis| point[axis])
        } else {
            self.options.norm.put_together(D, |axis| along(query[axis], point[axis], self.periods[axis]))
        }
    }

    /// Returns the part of a region beyond a plane: its offsets from the query axis by axis, and their distance. No point of the part is
    /// nearer, because the distance has the formula of point distances and rounding is monotone.
    #[inline(always)]
    pub(crate) fn beyond<const PLAIN: bool>(
        &self,
        query: &[C; D],
        offsets: [C::Distance; D],
        axis: usize,
        plane: C::Distance,
    ) -> ([C::Distance; D], C::Distance) {
        let (a, period) = (query[axis].widen(), self.periods[axis]);
        if PLAIN {
            let offsets = with(offsets, axis, a - plane);
            return (offsets, dist2(D, |axis| offsets[axis], |_| C::Distance::ZERO));
        }
        let along = match period > C::Distance::ZERO {
            false => (a - plane).abs(),
            true if a > plane => along_to_range(a, self.low[axis], plane, period),
            true => along_to_range(a, plane, self.high[axis], period),
        };
        let offsets = with(offsets, axis, along);
        (offsets, self.options.norm.put_together(D, |axis| offsets[axis]))
    }

    /// Returns the least distance to the box between two corners.
    #[inline(always)]
    pub(crate) fn distance_to_box<const PLAIN: bool>(
        &self,
        query: &[C; D],
        [low, high]: &[[C::Distance; D]; 2],
    ) -> C::Distance {
        let query = widen(*query);
        if PLAIN {
            // As `along_to_range`. A maximum that does not look for NaN is one instruction.
            let max = |a, b| if a > b { a } else { b };
            let along = |axis| max(max(low[axis] - query[axis], query[axis] - high[axis]), C::Distance::ZERO);
            Norm::Euclidean.put_together(D, along)
        } else {
            // A cell may extend so far beyond all points that it overlaps its periodic image.
            let along = |axis: usize| {
                let (low, high) = (low[axis].max(self.low[axis]), high[axis].min(self.high[axis]));
                along_to_range(query[axis], low, high, self.periods[axis])
            };
            self.options.norm.put_together(D, along)
        }
    }

    /// Returns a distance that no point between two corners exceeds.
    #[inline(always)]
    pub(crate) fn farthest_in_box(&self, query: &[C; D], [low, high]: &[[C::Distance; D]; 2]) -> C::Distance {
        let query = widen(*query);
        // A period makes no point farther.
        let along = |axis: usize| (query[axis] - low[axis]).abs().max((query[axis] - high[axis]).abs());
        self.options.norm.put_together(D, along)
    }

    #[inline(always)]
    pub(crate) fn takes<const PLAIN: bool>(&self, id: u32, excluded: u32) -> bool {
        PLAIN || id != excluded && self.options.mask.as_ref().is_none_or(|mask| mask.takes(id))
    }
}

/// Returns the offsets with another one on an axis. Selects are faster than a write through an index, whose result must be loaded again.
#[inline(always)]
fn with<F: Copy, const D: usize>(offsets: [F; D], axis: usize, offset: F) -> [F; D] {
    std::array::from_fn(|other| if other == axis { offset } else { offsets[other] })
}
