//! The query backend of every tree on the CPU.

use crate::error::Result;
use crate::query::backend::{
    NearestQuery, NearestRows, QueryBackend, RangeQuery, Regions, ValidatedQueries, VisitQuery,
};
use crate::query::cpu::nearest::{nearest, nearest_of_one};
use crate::query::cpu::queries::{Corners, PointQueries, corners};
use crate::query::cpu::traversal::Traversable;
use crate::query::cpu::visit;
use crate::query::cpu::within::{InsideBoxes, RangeOf, count, count_within, find, find_within};
use crate::query::options::ValidatedOptions;
use crate::query::within::RangeResult;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

/// A tree on the CPU, whose number of dimensions is known at run time.
pub(crate) trait CpuTree: Send + Sync {
    /// The type of the coordinates.
    type Coord: Coord;
    /// Returns the coordinates of all points in the order of their ids.
    fn coords_by_id(&self) -> Result<Cow<'_, [Self::Coord]>>;
    /// Returns the ids of all points in ascending order; empty if there are no gaps.
    fn own_ids(&self) -> &[u32] {
        &[]
    }
    /// Calls `run` with the queries of the tree, compiled for its number of dimensions.
    fn with_queries<R>(&self, run: impl FnOnce(&dyn QueryBackend<Self::Coord>) -> Result<R>) -> Result<R>;
}

impl<C: Coord, T: CpuTree<Coord = C>> QueryBackend<C> for T {
    fn check_queries(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: &ValidatedOptions<C::Distance>,
    ) -> Result<()> {
        self.with_queries(|tree| tree.check_queries(queries, options))
    }

    fn self_coords(&self) -> Result<Option<Cow<'_, [C]>>> {
        self.coords_by_id().map(Some)
    }

    fn own_ids(&self) -> &[u32] {
        CpuTree::own_ids(self)
    }

    fn nearest(
        &self,
        query: NearestQuery<'_, C>,
        rows: NearestRows<C::Distance>,
    ) -> Result<NearestRows<C::Distance>> {
        self.with_queries(|tree| tree.nearest(query, rows))
    }

    fn nearest_of_one(
        &self,
        query: NearestQuery<'_, C>,
        ids: &mut [u32],
        dist2: &mut [C::Distance],
    ) -> Result<()> {
        self.with_queries(|tree| tree.nearest_of_one(query, ids, dist2))
    }

    fn visit(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: &ValidatedOptions<C::Distance>,
        visit: &VisitQuery<'_, C::Distance>,
    ) -> Result<()> {
        self.with_queries(|tree| tree.visit(queries, options, visit))
    }

    fn count(&self, query: RangeQuery<'_, C>) -> Result<Vec<u32>> {
        self.with_queries(|tree| tree.count(query))
    }

    fn find(&self, query: RangeQuery<'_, C>) -> Result<RangeResult<C::Distance>> {
        self.with_queries(|tree| tree.find(query))
    }
}

/// A tree of points with `D` dimensions, ready to be traversed.
pub(crate) struct TreeOf<'a, C, I, T, const D: usize> {
    pub(crate) index: &'a I,
    pub(crate) tree: T,
    pub(crate) corners: &'a Corners<C>,
}

impl<C: Coord, I, T: Traversable<C, D>, const D: usize> TreeOf<'_, C, I, T, D> {
    fn queries<'q>(
        &self,
        queries: ValidatedQueries<'q, C>,
        options: &'q ValidatedOptions<C::Distance>,
    ) -> PointQueries<'q, C, D> {
        PointQueries::new(self.tree, self.corners, queries, options)
    }
}

impl<C: Coord, I: CpuTree<Coord = C>, T: Traversable<C, D>, const D: usize> QueryBackend<C>
    for TreeOf<'_, C, I, T, D>
{
    fn check_queries(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: &ValidatedOptions<C::Distance>,
    ) -> Result<()> {
        let coords_by_id = || self.index.coords_by_id().map(Cow::into_owned);
        options.check_queries::<_, D>(queries, corners(self.tree, self.corners), coords_by_id)
    }

    fn nearest(
        &self,
        NearestQuery { queries, k, options }: NearestQuery<'_, C>,
        rows: NearestRows<C::Distance>,
    ) -> Result<NearestRows<C::Distance>> {
        nearest(self.tree, &self.queries(queries, options), k, rows)
    }

    fn nearest_of_one(
        &self,
        NearestQuery { queries, k, options }: NearestQuery<'_, C>,
        ids: &mut [u32],
        dist2: &mut [C::Distance],
    ) -> Result<()> {
        nearest_of_one(self.tree, &self.queries(queries, options), k, ids, dist2);
        Ok(())
    }

    fn visit(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: &ValidatedOptions<C::Distance>,
        visit: &VisitQuery<'_, C::Distance>,
    ) -> Result<()> {
        visit::visit(self.tree, &self.queries(queries, options), visit)
    }

    fn count(&self, RangeQuery { regions, options }: RangeQuery<'_, C>) -> Result<Vec<u32>> {
        match regions {
            Regions::Within(queries) => count_within(self.tree, &self.queries(queries, options)),
            Regions::InBoxes(corners, _) => {
                count(&RangeOf { tree: self.tree, predicate: InsideBoxes::new(corners, options) })
            }
        }
    }

    fn find(&self, RangeQuery { regions, options }: RangeQuery<'_, C>) -> Result<RangeResult<C::Distance>> {
        match regions {
            Regions::Within(queries) => find_within(self.tree, &self.queries(queries, options)),
            Regions::InBoxes(corners, _) => {
                find(&RangeOf { tree: self.tree, predicate: InsideBoxes::new(corners, options) })
            }
        }
    }
}
