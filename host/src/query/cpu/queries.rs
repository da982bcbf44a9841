//! Queries as the traversals of trees with `D` dimensions see them.

use kauri_kernels::thread::coord::{Coord, dist2};
use kauri_kernels::thread::measure::{Norm, along, along_to_range};
use std::sync::OnceLock;

use crate::primitives::cpu::bounds::bounds;
use crate::query::backend::ValidatedQueries;
use crate::query::cpu::best::Best;
use crate::query::cpu::points;
use crate::query::cpu::traversal::Traversable;
use crate::query::options::ValidatedOptions;

/// The corners of the bounding box of a tree's points, computed by the first query that needs them.
pub(crate) type Corners<C> = OnceLock<Vec<C>>;

/// Returns the least and the greatest corner of the bounding box of a tree's points.
pub(crate) fn corners<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    known: &Corners<C>,
) -> [[C; D]; 2] {
    if known.get().is_none() {
        // Computed outside of `get_or_init`: a waiting thread of the pool may take up work that needs these corners too.
        let corners = bounds(tree.points()).concat();
        known.get_or_init(|| corners);
    }
    let corners = points(known.get().map_or(&[], |corners| corners));
    [corners[0], corners[1]]
}

/// The queries of a call.
#[derive(Clone)]
pub(crate) struct PointQueries<'a, C: Coord, const D: usize> {
    pub(crate) points: &'a [[C; D]],
    pub(crate) rules: Rules<'a, C, D>,
    /// Query `i` excludes the point with this id plus `i`.
    pub(crate) first_excluded: Option<u32>,
}

impl<'a, C: Coord, const D: usize> PointQueries<'a, C, D> {
    /// Makes the queries to a tree. They are not a self-query.
    pub(crate) fn new(
        tree: impl Traversable<C, D>,
        known_corners: &Corners<C>,
        queries: ValidatedQueries<'a, C>,
        options: &'a ValidatedOptions<C>,
    ) -> Self {
        // Only periodic axes need the bounding box.
        let corners = match options.periods.is_empty() {
            true => [[C::ZERO - C::INFINITY; D], [C::INFINITY; D]],
            false => corners(tree, known_corners),
        };
        let (points, first_excluded) = (points(queries.coords.unwrap_or_default()), queries.first_excluded);
        Self { points, rules: Rules::new(options, corners), first_excluded }
    }

    /// True if the rules are plain and no point is excluded.
    pub(crate) fn are_plain(&self) -> bool {
        self.rules.are_plain() && self.first_excluded.is_none()
    }

    /// Returns one of the queries.
    pub(crate) fn get(&self, row: usize) -> PointQuery<'_, C, D> {
        PointQuery { point: &self.points[row], rules: &self.rules, excluded: self.excluded(row) }
    }

    /// Returns the id of the point that a query excludes; `u32::MAX` if it excludes none.
    #[inline(always)]
    pub(crate) fn excluded(&self, row: usize) -> u32 {
        self.first_excluded.map_or(u32::MAX, |first| first + row as u32)
    }
}

/// One query.
#[derive(Clone, Copy)]
pub(crate) struct PointQuery<'a, C: Coord, const D: usize> {
    pub(crate) point: &'a [C; D],
    pub(crate) rules: &'a Rules<'a, C, D>,
    /// The id of the point that the query excludes; `u32::MAX` if it excludes none.
    excluded: u32,
}

impl<C: Coord, const D: usize> PointQuery<'_, C, D> {
    /// Offers point `i` of the index if the query may find it.
    #[inline(always)]
    pub(crate) fn offer<const PLAIN: bool>(
        &self,
        points: &[[C; D]],
        ids: &[u32],
        i: usize,
        best: &mut impl Best<C>,
    ) {
        let distance = self.rules.distance::<PLAIN>(self.point, &points[i]);
        if distance <= best.worst() && self.rules.takes::<PLAIN>(ids[i], self.excluded) {
            best.offer(distance, ids[i]);
        }
    }
}

/// How distances are measured, and which points a query may find.
#[derive(Clone)]
pub(crate) struct Rules<'a, C, const D: usize> {
    pub(crate) options: &'a ValidatedOptions<C>,
    periods: [C; D],
    /// The bounding box of all points.
    low: [C; D],
    high: [C; D],
}

impl<'a, C: Coord, const D: usize> Rules<'a, C, D> {
    /// The rules of queries to points between two corners.
    fn new(options: &'a ValidatedOptions<C>, [low, high]: [[C; D]; 2]) -> Self {
        let periods = std::array::from_fn(|axis| options.periods.get(axis).copied().unwrap_or(C::ZERO));
        Self { options, periods, low, high }
    }

    /// True for the Euclidean norm without periods and mask.
    fn are_plain(&self) -> bool {
        self.options.is_euclidean() && self.options.mask.is_none()
    }

    /// Returns the distance of a point; `PLAIN` requires plain rules.
    #[inline(always)]
    pub(crate) fn distance<const PLAIN: bool>(&self, query: &[C; D], point: &[C; D]) -> C {
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
        mut offsets: [C; D],
        axis: usize,
        plane: C,
    ) -> ([C; D], C) {
        let (a, period) = (query[axis], self.periods[axis]);
        if PLAIN {
            offsets[axis] = a - plane;
            return (offsets, dist2(D, |axis| offsets[axis], |_| C::ZERO));
        }
        offsets[axis] = match period > C::ZERO {
            false => (a - plane).abs(),
            true if a > plane => along_to_range(a, self.low[axis], plane, period),
            true => along_to_range(a, plane, self.high[axis], period),
        };
        (offsets, self.options.norm.put_together(D, |axis| offsets[axis]))
    }

    /// Returns the least distance to the box between two corners.
    #[inline(always)]
    pub(crate) fn distance_to_box<const PLAIN: bool>(&self, query: &[C; D], [low, high]: &[[C; D]; 2]) -> C {
        if PLAIN {
            let along = |axis| along_to_range(query[axis], low[axis], high[axis], C::ZERO);
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
    pub(crate) fn farthest_in_box(&self, query: &[C; D], [low, high]: &[[C; D]; 2]) -> C {
        // A period makes no point farther.
        let along = |axis: usize| (query[axis] - low[axis]).abs().max((query[axis] - high[axis]).abs());
        self.options.norm.put_together(D, along)
    }

    #[inline(always)]
    pub(crate) fn takes<const PLAIN: bool>(&self, id: u32, excluded: u32) -> bool {
        PLAIN || id != excluded && self.options.mask.as_ref().is_none_or(|mask| mask.takes(id))
    }
}
