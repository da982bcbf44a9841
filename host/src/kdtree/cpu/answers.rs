//! What a tree on the CPU answers, whatever its walks go through.

use super::CpuTree;
use super::nearest::{self, nearest};
use super::points;
use super::walk::{Rules, Walked};
use super::within::{Around, Inside, count, find};
use crate::batches::Delivery;
use crate::error::Result;
use crate::kdtree::PointMask;
use crate::kdtree::backend::{Answers, Checked};
use crate::kdtree::batches::{ShowFound, ShowNearest, Sought, deliver_found, deliver_nearest};
use crate::kdtree::query::Wanted;
use crate::kdtree::within::Found;
use crate::memory;
use crate::primitives::cpu::bounds::bounds;
use crate::quadtree::{HostTree, with_plane_or_space};
use kauri_kernels::thread::coord::Coord;
use std::ops::ControlFlow;
use std::sync::OnceLock;

/// Corners of the box of a tree's points, once a query has asked for them.
pub(crate) type Corners<C> = OnceLock<Vec<C>>;

/// Queries, which have been checked, with what is wanted of them.
fn around<'a, C: Coord, const D: usize>(
    tree: impl Walked<C, D>,
    of_box: &Corners<C>,
    wanted: &'a Wanted<C>,
    queries: Checked<'a, C>,
    own: &'a [C],
) -> Around<'a, C, D> {
    let (queries, first_left_out) = match queries.with_own(own) {
        Checked::Points { coords, first_left_out } => (points(coords), first_left_out),
        Checked::Own { .. } => (&[][..], None),
    };
    // Only where axes repeat is it of use how far points lie.
    let corners = match wanted.periods.is_empty() {
        true => [[C::ZERO - C::INFINITY; D], [C::INFINITY; D]],
        false => corners(tree, of_box),
    };
    Around { rules: Rules::new(wanted, corners), queries, first_left_out }
}

/// The least and the greatest corner of the box of a tree's points.
fn corners<C: Coord, const D: usize>(tree: impl Walked<C, D>, of_box: &Corners<C>) -> [[C; D]; 2] {
    if of_box.get().is_none() {
        // Not while others wait for it: threads of a pool take up other work in between, which may come to here.
        let corners = bounds(tree.points()).concat();
        of_box.get_or_init(|| corners);
    }
    let corners = points(of_box.get().map_or(&[], |corners| corners));
    [corners[0], corners[1]]
}

/// Coordinates in the order of ids, of some in another.
pub(super) fn by_id<C: Coord>(coords: &[C], ids: &[u32], dims: usize) -> Result<Vec<C>> {
    let mut own = memory::vec_with_capacity(coords.len(), "points as queries")?;
    own.resize(coords.len(), C::ZERO);
    for (point, &id) in coords.chunks_exact(dims).zip(ids) {
        own[id as usize * dims..][..dims].copy_from_slice(point);
    }
    Ok(own)
}

/// Answers for a type of trees, given what makes their number of dimensions a constant. A tree has `dims`, `corners`, `walked()`, and
/// `own()`, the coordinates by id if queries are of these.
macro_rules! answers_by_walks {
    ($Tree:ident, $with_dims:ident) => {
        impl<C: Coord> Answers<C> for $Tree<C> {
            fn check_queries(&self, queries: Checked<'_, C>, wanted: &Wanted<C>) -> Result<()> {
                if wanted.periods.is_empty() {
                    return Ok(());
                }
                $with_dims!(self.dims, D => {
                    let corners = corners::<C, D>(self.walked()?, &self.corners);
                    wanted.check_queries(queries, corners, || Ok(self.own(queries)?.into_owned()))
                })
            }

            fn nearest(
                &self,
                queries: Checked<'_, C>,
                k: usize,
                wanted: Wanted<C>,
                ids: Vec<u32>,
                dist2: Vec<C>,
            ) -> Result<(Vec<u32>, Vec<C>)> {
                let own = self.own(queries)?;
                $with_dims!(self.dims, D => {
                    let tree = self.walked::<D>()?;
                    let Around { rules, queries, first_left_out } =
                        around(tree, &self.corners, &wanted, queries, &own);
                    let asked = nearest::Asked { rules, k, first_left_out };
                    nearest(tree, queries, &asked, ids, dist2)
                })
            }

            fn count_within(&self, queries: Checked<'_, C>, wanted: Wanted<C>) -> Result<Vec<u32>> {
                let own = self.own(queries)?;
                $with_dims!(self.dims, D => {
                    let tree = self.walked::<D>()?;
                    around(tree, &self.corners, &wanted, queries, &own).count(tree)
                })
            }

            fn within(&self, queries: Checked<'_, C>, wanted: Wanted<C>) -> Result<Found<C>> {
                let own = self.own(queries)?;
                $with_dims!(self.dims, D => {
                    let tree = self.walked::<D>()?;
                    around(tree, &self.corners, &wanted, queries, &own).find(tree)
                })
            }

            fn count_in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<Vec<u32>> {
                $with_dims!(self.dims, D => {
                    let boxes = points::<C, D>(corners).as_chunks().0;
                    count(self.walked()?, &Inside { boxes, mask })
                })
            }

            fn in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<Found<C>> {
                let found = $with_dims!(self.dims, D => {
                    let boxes = points::<C, D>(corners).as_chunks().0;
                    find(self.walked()?, &Inside { boxes, mask })
                });
                found.map(|found| Found { dist2: Vec::new(), ..found })
            }

            fn find_batches(
                &self,
                sought: Sought<'_, C>,
                delivery: &mut Delivery<'_, '_>,
                show: &mut ShowFound<'_, C>,
            ) -> Result<ControlFlow<()>> {
                match sought {
                    Sought::Within(queries, wanted) => {
                        let own = self.own(queries)?;
                        let sought = Sought::Within(queries.with_own(&own), wanted);
                        deliver_found(self, self.dims, &sought, delivery, show)
                    }
                    boxes => deliver_found(self, self.dims, &boxes, delivery, show),
                }
            }

            fn nearest_batches(
                &self,
                queries: Checked<'_, C>,
                k: usize,
                wanted: Wanted<C>,
                delivery: &mut Delivery<'_, '_>,
                show: &mut ShowNearest<'_, C>,
            ) -> Result<ControlFlow<()>> {
                let own = self.own(queries)?;
                deliver_nearest(self, self.dims, queries.with_own(&own), k, &wanted, delivery, show)
            }
        }
    };
}
answers_by_walks!(CpuTree, with_dims);
answers_by_walks!(HostTree, with_plane_or_space);
