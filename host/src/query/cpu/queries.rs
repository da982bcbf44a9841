//! Queries as the traversals of trees with `D` dimensions see them.

use crate::once::Once;
use crate::query::backend::ValidatedQueries;
use crate::query::cpu::points;
use crate::query::cpu::rules::{PointQuery, Rules};
use crate::query::cpu::traversal::Traversable;
use crate::query::options::ValidatedOptions;
use kauri_kernels::thread::coord::Coord;

/// The corners of the bounding box of a tree's points, computed by the first query that needs them.
pub(crate) type Corners<C> = Once<Vec<C>>;

/// Returns the least and the greatest corner of the bounding box of a tree's points.
pub(crate) fn corners<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    known: &Corners<C>,
) -> [[C; D]; 2] {
    let corners = points(known.get_or_init(|| tree.bounds().concat()));
    [corners[0], corners[1]]
}

/// The queries of a call.
#[derive(Clone)]
pub(crate) struct PointQueries<'a, C: Coord, const D: usize> {
    pub(crate) points: &'a [[C; D]],
    pub(crate) rules: Rules<'a, C, D>,
    /// Query `i` excludes the point with this id plus `i`.
    pub(crate) first_excluded: Option<u32>,
    /// The id that counts as number `i` for `first_excluded`; empty if that is `i`.
    pub(crate) own_ids: &'a [u32],
}

impl<'a, C: Coord, const D: usize> PointQueries<'a, C, D> {
    /// Makes the queries to a tree. They are not a self-query.
    pub(crate) fn new(
        tree: impl Traversable<C, D>,
        known_corners: &Corners<C>,
        queries: ValidatedQueries<'a, C>,
        options: &'a ValidatedOptions<C::Distance>,
    ) -> Self {
        // Only periodic axes need the bounding box.
        let corners = match options.periods.is_empty() {
            true => [[C::EMPTY[1]; D], [C::EMPTY[0]; D]],
            false => corners(tree, known_corners),
        };
        let ValidatedQueries { first_excluded, own_ids, .. } = queries;
        let points = points(queries.coords.unwrap_or_default());
        Self { points, rules: Rules::new(options, corners), first_excluded, own_ids }
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
        self.first_excluded.map_or(u32::MAX, |first| {
            let number = first + row as u32;
            self.own_ids.get(number as usize).copied().unwrap_or(number)
        })
    }
}
