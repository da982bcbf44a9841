//! What a tree on the CPU answers, whatever its walks go through.

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

/// Corners of the box of a tree's points, once a query has asked for them.
pub(crate) type Corners<C> = OnceLock<Vec<C>>;

/// Queries, which have been checked, with what is wanted of them.
pub(crate) fn around<'a, C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    of_box: &Corners<C>,
    wanted: &'a ValidatedOptions<C>,
    queries: ValidatedQueries<'a, C>,
    own: &'a [C],
) -> WithinDistance<'a, C, D> {
    let (queries, first_left_out) = match queries.with_own(own) {
        ValidatedQueries::Points { coords, first_left_out } => (points(coords), first_left_out),
        ValidatedQueries::Own { .. } => (&[][..], None),
    };
    // Only where axes repeat is it of use how far points lie.
    let corners = match wanted.periods.is_empty() {
        true => [[C::ZERO - C::INFINITY; D], [C::INFINITY; D]],
        false => corners(tree, of_box),
    };
    WithinDistance { rules: Rules::new(wanted, corners), queries, first_left_out }
}

/// The least and the greatest corner of the box of a tree's points.
pub(crate) fn corners<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    of_box: &Corners<C>,
) -> [[C; D]; 2] {
    if of_box.get().is_none() {
        // Not while others wait for it: threads of a pool take up other work in between, which may come to here.
        let corners = bounds(tree.points()).concat();
        of_box.get_or_init(|| corners);
    }
    let corners = points(of_box.get().map_or(&[], |corners| corners));
    [corners[0], corners[1]]
}

/// Coordinates in the order of ids, of some in another.
pub(crate) fn by_id<C: Coord>(coords: &[C], ids: &[u32], dims: usize) -> Result<Vec<C>> {
    let mut own = memory::vec_with_capacity(coords.len(), "points as queries")?;
    own.resize(coords.len(), C::ZERO);
    for (point, &id) in coords.chunks_exact(dims).zip(ids) {
        own[id as usize * dims..][..dims].copy_from_slice(point);
    }
    Ok(own)
}

/// The names that [`impl_query_backend`] uses.
pub(crate) mod scope {
    pub(crate) use super::{around, corners};
    pub(crate) use crate::Result;
    pub(crate) use crate::batches::Delivery;
    pub(crate) use crate::query::PointMask;
    pub(crate) use crate::query::backend::{QueryBackend, ValidatedQueries};
    pub(crate) use crate::query::batches::{
        RangeQuery, VisitNearest, VisitRange, deliver_found, deliver_nearest,
    };
    pub(crate) use crate::query::cpu::nearest::{NearestQuery, nearest, nearest_of_one};
    pub(crate) use crate::query::cpu::points;
    pub(crate) use crate::query::cpu::within::{InsideBoxes, WithinDistance, count, find};
    pub(crate) use crate::query::options::ValidatedOptions;
    pub(crate) use crate::query::within::RangeResult;
    pub(crate) use kauri_kernels::thread::coord::Coord;
    pub(crate) use std::ops::ControlFlow;
}

/// Implements [`QueryBackend`] for a type of trees, given the macro that makes their number of dimensions a constant. A tree has `dims`, `corners`, `traversable()`, and
/// `own()`, the coordinates by id if queries are of these.
macro_rules! impl_query_backend {
    ($Tree:ident, $with_dims:ident) => {
        const _: () = {
            use $crate::query::cpu::backend::scope::*;
            impl<C: Coord> QueryBackend<C> for $Tree<C> {
                fn check_queries(
                    &self,
                    queries: ValidatedQueries<'_, C>,
                    wanted: &ValidatedOptions<C>,
                ) -> Result<()> {
                    if wanted.periods.is_empty() {
                        return Ok(());
                    }
                    $with_dims!(self.dims, D => {
                        let corners = corners::<C, D>(self.traversable()?, &self.corners);
                        wanted.check_queries(queries, corners, || Ok(self.own(queries)?.into_owned()))
                    })
                }

                fn nearest(
                    &self,
                    queries: ValidatedQueries<'_, C>,
                    k: usize,
                    wanted: ValidatedOptions<C>,
                    ids: Vec<u32>,
                    dist2: Vec<C>,
                ) -> Result<(Vec<u32>, Vec<C>)> {
                    let own = self.own(queries)?;
                    $with_dims!(self.dims, D => {
                        let tree = self.traversable::<D>()?;
                        let WithinDistance { rules, queries, first_left_out } =
                            around(tree, &self.corners, &wanted, queries, &own);
                        let asked = NearestQuery { rules, k, first_left_out };
                        nearest(tree, queries, &asked, ids, dist2)
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
                        let WithinDistance { rules, queries, first_left_out } =
                            around(tree, &self.corners, &options, query, &[]);
                        let query = NearestQuery { rules, k: ids.len(), first_left_out };
                        nearest_of_one(tree, &queries[0], &query, ids, dist2);
                    });
                    Ok(())
                }

                fn count_within(
                    &self,
                    queries: ValidatedQueries<'_, C>,
                    wanted: ValidatedOptions<C>,
                ) -> Result<Vec<u32>> {
                    let own = self.own(queries)?;
                    $with_dims!(self.dims, D => {
                        let tree = self.traversable::<D>()?;
                        around(tree, &self.corners, &wanted, queries, &own).count(tree)
                    })
                }

                fn within(
                    &self,
                    queries: ValidatedQueries<'_, C>,
                    wanted: ValidatedOptions<C>,
                ) -> Result<RangeResult<C>> {
                    let own = self.own(queries)?;
                    $with_dims!(self.dims, D => {
                        let tree = self.traversable::<D>()?;
                        around(tree, &self.corners, &wanted, queries, &own).find(tree)
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

                fn find_batches(
                    &self,
                    sought: RangeQuery<'_, C>,
                    delivery: &mut Delivery<'_, '_>,
                    show: &mut VisitRange<'_, C>,
                ) -> Result<ControlFlow<()>> {
                    match sought {
                        RangeQuery::Within(queries, wanted) => {
                            let own = self.own(queries)?;
                            let sought = RangeQuery::Within(queries.with_own(&own), wanted);
                            deliver_found(self, self.dims, &sought, delivery, show)
                        }
                        boxes => deliver_found(self, self.dims, &boxes, delivery, show),
                    }
                }

                fn nearest_batches(
                    &self,
                    queries: ValidatedQueries<'_, C>,
                    k: usize,
                    wanted: ValidatedOptions<C>,
                    delivery: &mut Delivery<'_, '_>,
                    show: &mut VisitNearest<'_, C>,
                ) -> Result<ControlFlow<()>> {
                    let own = self.own(queries)?;
                    deliver_nearest(self, self.dims, queries.with_own(&own), k, &wanted, delivery, show)
                }
            }
        };
    };
}
pub(crate) use impl_query_backend;

impl_query_backend!(CpuIndex, with_dims);
