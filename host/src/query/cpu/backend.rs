//! The query backend of every tree on the CPU.

use crate::error::Result;
use crate::memory;
use crate::point::with_dims;
use crate::primitives::cpu::bounds::bounds;
use crate::query::backend::ValidatedQueries;
use crate::query::cpu::traversal::{Rules, Traversable};
use crate::query::cpu::within::WithinDistance;
use crate::query::cpu::{CpuIndex, points};
use crate::query::options::ValidatedOptions;
use kauri_kernels::thread::coord::Coord;
use std::sync::OnceLock;

/// The corners of the bounding box of a tree's points, computed by the first query that needs them.
pub(crate) type Corners<C> = OnceLock<Vec<C>>;

/// Makes the range query of validated queries and options. `self_coords` are the points by id for a self-query.
pub(crate) fn within_distance<'a, C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    known_corners: &Corners<C>,
    options: &'a ValidatedOptions<C>,
    queries: ValidatedQueries<'a, C>,
    self_coords: &'a [C],
) -> WithinDistance<'a, C, D> {
    let (queries, first_excluded) = match queries.with_self_coords(self_coords) {
        ValidatedQueries::Points { coords, first_excluded } => (points(coords), first_excluded),
        ValidatedQueries::SelfQuery { .. } => (&[][..], None),
    };
    // Only periodic axes need the bounding box.
    let corners = match options.periods.is_empty() {
        true => [[C::ZERO - C::INFINITY; D], [C::INFINITY; D]],
        false => corners(tree, known_corners),
    };
    WithinDistance { rules: Rules::new(options, corners), queries, first_excluded }
}

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

/// Reorders the coordinates of points by id.
pub(crate) fn by_id<C: Coord>(coords: &[C], ids: &[u32], dims: usize) -> Result<Vec<C>> {
    let mut by_id = memory::vec_with_capacity(coords.len(), "points as queries")?;
    by_id.resize(coords.len(), C::ZERO);
    for (point, &id) in coords.chunks_exact(dims).zip(ids) {
        by_id[id as usize * dims..][..dims].copy_from_slice(point);
    }
    Ok(by_id)
}

/// The names that [`impl_query_backend`] uses.
pub(crate) mod scope {
    pub(crate) use super::{corners, within_distance};
    pub(crate) use crate::Result;
    pub(crate) use crate::batches::Delivery;
    pub(crate) use crate::query::PointMask;
    pub(crate) use crate::query::backend::{QueryBackend, ValidatedQueries};
    pub(crate) use crate::query::batches::{
        RangeQuery, VisitNearest, VisitRange, deliver_nearest, deliver_range,
    };
    pub(crate) use crate::query::cpu::nearest::{NearestQuery, nearest, nearest_of_one};
    pub(crate) use crate::query::cpu::points;
    pub(crate) use crate::query::cpu::within::{InsideBoxes, WithinDistance, count, find};
    pub(crate) use crate::query::options::ValidatedOptions;
    pub(crate) use crate::query::within::RangeResult;
    pub(crate) use kauri_kernels::thread::coord::Coord;
    pub(crate) use std::ops::ControlFlow;
}

/// Implements [`QueryBackend`] for a type of trees. `$with_dims` is the macro that makes their number of dimensions a constant. A tree
/// has the fields `dims` and `corners`, and the methods `traversable()` and `self_coords()`, which returns the points by id for a
/// self-query.
macro_rules! impl_query_backend {
    ($Tree:ident, $with_dims:ident) => {
        const _: () = {
            use $crate::query::cpu::backend::scope::*;
            impl<C: Coord> QueryBackend<C> for $Tree<C> {
                fn check_queries(
                    &self,
                    queries: ValidatedQueries<'_, C>,
                    options: &ValidatedOptions<C>,
                ) -> Result<()> {
                    if options.periods.is_empty() {
                        return Ok(());
                    }
                    $with_dims!(self.dims, D => {
                        let corners = corners::<C, D>(self.traversable()?, &self.corners);
                        options.check_queries(queries, corners, || Ok(self.self_coords(queries)?.into_owned()))
                    })
                }

                fn nearest(
                    &self,
                    queries: ValidatedQueries<'_, C>,
                    k: usize,
                    options: ValidatedOptions<C>,
                    ids: Vec<u32>,
                    dist2: Vec<C>,
                ) -> Result<(Vec<u32>, Vec<C>)> {
                    let self_coords = self.self_coords(queries)?;
                    $with_dims!(self.dims, D => {
                        let tree = self.traversable::<D>()?;
                        let WithinDistance { rules, queries, first_excluded } =
                            within_distance(tree, &self.corners, &options, queries, &self_coords);
                        let query = NearestQuery { rules, k, first_excluded };
                        nearest(tree, queries, &query, ids, dist2)
                    })
                }

                fn nearest_of_one(
                    &self,
                    query: ValidatedQueries<'_, C>,
                    options: ValidatedOptions<C>,
                    ids: &mut [u32],
                    dist2: &mut [C],
                ) -> Result<()> {
                    $with_dims!(self.dims, D => {
                        let tree = self.traversable::<D>()?;
                        let WithinDistance { rules, queries, first_excluded } =
                            within_distance(tree, &self.corners, &options, query, &[]);
                        let query = NearestQuery { rules, k: ids.len(), first_excluded };
                        nearest_of_one(tree, &queries[0], &query, ids, dist2);
                    });
                    Ok(())
                }

                fn count_within(
                    &self,
                    queries: ValidatedQueries<'_, C>,
                    options: ValidatedOptions<C>,
                ) -> Result<Vec<u32>> {
                    let self_coords = self.self_coords(queries)?;
                    $with_dims!(self.dims, D => {
                        let tree = self.traversable::<D>()?;
                        within_distance(tree, &self.corners, &options, queries, &self_coords).count(tree)
                    })
                }

                fn within(
                    &self,
                    queries: ValidatedQueries<'_, C>,
                    options: ValidatedOptions<C>,
                ) -> Result<RangeResult<C>> {
                    let self_coords = self.self_coords(queries)?;
                    $with_dims!(self.dims, D => {
                        let tree = self.traversable::<D>()?;
                        within_distance(tree, &self.corners, &options, queries, &self_coords).find(tree)
                    })
                }

                fn count_in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<Vec<u32>> {
                    $with_dims!(self.dims, D => {
                        let boxes = points::<C, D>(corners).as_chunks().0;
                        count(self.traversable()?, &InsideBoxes { boxes, mask })
                    })
                }

                fn in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<RangeResult<C>> {
                    let found = $with_dims!(self.dims, D => {
                        let boxes = points::<C, D>(corners).as_chunks().0;
                        find(self.traversable()?, &InsideBoxes { boxes, mask })
                    });
                    found.map(|found| RangeResult { dist2: Vec::new(), ..found })
                }

                fn range_batches(
                    &self,
                    query: RangeQuery<'_, C>,
                    delivery: &mut Delivery<'_, '_>,
                    visit: &mut VisitRange<'_, C>,
                ) -> Result<ControlFlow<()>> {
                    match query {
                        RangeQuery::Within(queries, options) => {
                            let self_coords = self.self_coords(queries)?;
                            let query = RangeQuery::Within(queries.with_self_coords(&self_coords), options);
                            deliver_range(self, self.dims, &query, delivery, visit)
                        }
                        boxes => deliver_range(self, self.dims, &boxes, delivery, visit),
                    }
                }

                fn nearest_batches(
                    &self,
                    queries: ValidatedQueries<'_, C>,
                    k: usize,
                    options: ValidatedOptions<C>,
                    delivery: &mut Delivery<'_, '_>,
                    visit: &mut VisitNearest<'_, C>,
                ) -> Result<ControlFlow<()>> {
                    let self_coords = self.self_coords(queries)?;
                    deliver_nearest(self, self.dims, queries.with_self_coords(&self_coords), k, &options, delivery, visit)
                }
            }
        };
    };
}
pub(crate) use impl_query_backend;

impl_query_backend!(CpuIndex, with_dims);
