//! The k-d tree on the CPU: rayon, one monomorphised copy of each algorithm per number of dimensions.

mod balanced;
mod best;
mod build;
mod cell;
mod nearest;
mod order;
mod verify;
mod walk;
mod within;

use build::Built;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};
use walk::{Nodes, Rules};
use within::{Around, Inside};

use super::backend::{Answers, Backend, Checked};
use super::batches::{ShowFound, ShowNearest, Sought, deliver_found, deliver_nearest};
use super::query::Wanted;
#[cfg(feature = "io")]
use super::stored::{Loaded, Stored};
use super::within::Found;
use super::{PointMask, SplitRule};
use crate::batches::Delivery;
use crate::error::Result;
use crate::memory::{self, Items};
use crate::primitives::cpu::bounds::bounds;
use crate::stats::Stats;

/// A tree in host memory, in the stored form of every backend: the coordinates of node `s` at `s * dims`, its id at `s`.
pub(crate) struct CpuTree<C: Coord> {
    dims: usize,
    coords: Items<C>,
    ids: Items<u32>,
    /// The axes of nodes that have children; empty if they go by levels.
    axes: Items<u8>,
    /// The coordinates of the points by id, if the tree is a balanced one: it was given some that it may not have, and there may be nodes
    /// without a point on its last level.
    given: Option<Arc<Items<C>>>,
    /// Corners of the box of the points, once a query has asked for them.
    bounds: OnceLock<Vec<C>>,
}

impl<C: Coord> CpuTree<C> {
    /// Builds the tree over points given as checked coordinates, point after point.
    pub(crate) fn build(coords: &[C], dims: usize, rule: SplitRule, stats: &mut Stats) -> Result<Self> {
        with_dims!(dims, D => {
            let Built { nodes, ids, axes } = build::build(points::<C, D>(coords), rule, stats)?;
            let (coords, ids, axes) = (nodes.into_flattened().into(), ids.into(), axes.into());
            Ok(Self { dims, coords, ids, axes, given: None, bounds: OnceLock::new() })
        })
    }

    /// The tree of a file.
    #[cfg(feature = "io")]
    pub(crate) fn loaded(nodes: Loaded<C>, dims: usize) -> Self {
        let Loaded { coords, ids, axes } = nodes;
        Self { dims, coords, ids, axes, given: None, bounds: OnceLock::new() }
    }

    /// Queries with what is wanted of them, once it is known that they lie within a period of the points.
    fn around<'a, const D: usize>(
        &self,
        wanted: &'a Wanted<C>,
        queries: Checked<'a, C>,
        own: &'a [C],
    ) -> Result<Around<'a, C, D>> {
        let what = if matches!(queries, Checked::Own { .. }) { "point" } else { "query" };
        let (queries, first_left_out) = match queries.with_own(own) {
            Checked::Points { coords, first_left_out } => (points(coords), first_left_out),
            Checked::Own { .. } => (&[][..], None),
        };
        // Only where axes repeat is it of use how far points lie.
        let corners = match wanted.periods.is_empty() {
            true => [[C::ZERO - C::INFINITY; D], [C::INFINITY; D]],
            false => self.bounds(),
        };
        wanted.check_periods(queries, what, corners)?;
        Ok(Around { rules: Rules::new(wanted, corners), queries, first_left_out })
    }

    /// The least and the greatest corner of the box of the points.
    fn bounds<const D: usize>(&self) -> [[C; D]; 2] {
        let corners = |bounds| {
            let corners = points(bounds);
            [corners[0], corners[1]]
        };
        match self.bounds.get() {
            Some(bounds) => corners(bounds),
            None => {
                // Not while others wait for it: threads of a pool take up other work in between, which may come to here.
                let bounds = bounds(self.nodes::<D>().points).concat();
                corners(self.bounds.get_or_init(|| bounds))
            }
        }
    }

    fn nodes<const D: usize>(&self) -> Nodes<'_, C, D> {
        let has_gaps = self.given.is_some();
        Nodes { points: points::<C, D>(&self.coords), ids: &self.ids, axes: &self.axes, has_gaps }
    }

    /// Checks queries, of which the points' own have these coordinates.
    fn check_with(&self, queries: Checked<'_, C>, own: &[C], wanted: &Wanted<C>) -> Result<()> {
        with_dims!(self.dims, D => self.around::<D>(wanted, queries, own).map(drop))
    }

    /// The coordinates of the points by id, if they are the queries.
    fn own(&self, queries: Checked<'_, C>) -> Result<Cow<'_, [C]>> {
        match (queries, &self.given) {
            (Checked::Points { .. }, _) => Ok(Cow::Borrowed(&[])),
            (Checked::Own { .. }, Some(given)) => Ok(Cow::Borrowed(given)),
            (Checked::Own { .. }, None) => {
                let mut own = memory::vec_with_capacity(self.coords.len(), "points as queries")?;
                own.resize(self.coords.len(), C::ZERO);
                for (point, &id) in self.coords.chunks_exact(self.dims).zip(&*self.ids) {
                    own[id as usize * self.dims..][..self.dims].copy_from_slice(point);
                }
                Ok(Cow::Owned(own))
            }
        }
    }
}

impl<C: Coord> Answers<C> for CpuTree<C> {
    fn check_queries(&self, queries: Checked<'_, C>, wanted: &Wanted<C>) -> Result<()> {
        self.check_with(queries, &self.own(queries)?, wanted)
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
        with_dims!(self.dims, D => {
            let Around { rules, queries, first_left_out } = self.around(&wanted, queries, &own)?;
            let asked = nearest::Asked { rules, k, first_left_out };
            nearest::nearest(self.nodes::<D>(), queries, &asked, ids, dist2)
        })
    }

    fn count_within(&self, queries: Checked<'_, C>, wanted: Wanted<C>) -> Result<Vec<u32>> {
        let own = self.own(queries)?;
        with_dims!(self.dims, D => self.around(&wanted, queries, &own)?.count(self.nodes::<D>()))
    }

    fn within(&self, queries: Checked<'_, C>, wanted: Wanted<C>) -> Result<Found<C>> {
        let own = self.own(queries)?;
        with_dims!(self.dims, D => self.around(&wanted, queries, &own)?.find(self.nodes::<D>()))
    }

    fn count_in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<Vec<u32>> {
        with_dims!(self.dims, D => {
            within::count(self.nodes::<D>(), &Inside { boxes: points::<C, D>(corners).as_chunks().0, mask })
        })
    }

    fn in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<Found<C>> {
        let found: Result<Found<C>> = with_dims!(self.dims, D => {
            within::find(self.nodes::<D>(), &Inside { boxes: points::<C, D>(corners).as_chunks().0, mask })
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
                self.check_with(queries, &own, &wanted)?;
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
        self.check_with(queries, &own, &wanted)?;
        deliver_nearest(self, self.dims, queries.with_own(&own), k, &wanted, delivery, show)
    }
}

impl<C: Coord> Backend<C> for CpuTree<C> {
    fn verify(&self) -> Result<()> {
        with_dims!(self.dims, D => verify::verify(self.nodes::<D>()))
    }

    fn node_ids(&self) -> Result<Vec<u32>> {
        let mut ids = memory::vec_with_capacity(self.ids.len(), "ids of the nodes")?;
        ids.extend_from_slice(&self.ids);
        Ok(ids)
    }

    #[cfg(feature = "io")]
    fn stored(&self) -> Result<Stored<'_, C>> {
        let (coords, ids, axes) = (&*self.coords, &*self.ids, &*self.axes);
        Ok(Stored { coords: coords.into(), ids: ids.into(), axes: axes.into() })
    }

    fn num_points(&self) -> usize {
        self.ids.len()
    }
}

/// Temporary bytes of a build.
pub(crate) fn temp_bytes<C: Coord>(num_points: u64, dims: usize, rule: SplitRule) -> u64 {
    // With the axis of each point, before they are put in level order.
    let axis_bytes = u64::from(rule == SplitRule::Widest);
    num_points * (with_dims!(dims, D => size_of::<build::Item<C, D>>()) as u64 + axis_bytes)
}

/// Flat coordinates as points.
fn points<C, const D: usize>(coords: &[C]) -> &[[C; D]] {
    let (points, rest) = coords.as_chunks();
    debug_assert!(rest.is_empty());
    points
}
