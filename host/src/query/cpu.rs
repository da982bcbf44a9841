//! Queries on the CPU, to any tree that implements `Traversable`, and [`CpuIndex`], the index of k-d trees and balanced trees: nodes of a
//! complete k-d tree in level order, and boxes of its large subtrees. Quadtrees implement `Traversable` for their cells, in
//! `quadtree/host/traversal.rs`. Queries are compiled once per number of dimensions.
//!
//! - `backend`: the query backend of every tree; its methods call `nearest` and `within`.
//! - `nearest`: the k nearest points; `best` keeps them.
//! - `within`: points within a distance or in boxes.
//! - `traversal`: the trait `Traversable`, and the traversal of nodes; `rules` has the rules of distances.
//! - `queries`: the queries of a call.
//! - `order`: processes queries by start bucket.
//! - `boxes`: the boxes of large subtrees.

pub(crate) mod backend;
pub(crate) mod best;
pub(crate) mod boxes;
mod nearest;
mod order;
pub(crate) mod queries;
pub(crate) mod rules;
pub(crate) mod traversal;
pub(crate) mod within;

use crate::error::Result;
use crate::memory::{self, Items};
use crate::once::Once;
use crate::point::with_dims;
use crate::query::backend::QueryBackend;
use crate::query::ids::rows_by_id;
use backend::{CpuTree, TreeOf};
use boxes::{Boxes, BoxesOf};
use kauri_kernels::query::axes::AxisCycle;
use kauri_kernels::thread::coord::Coord;
pub(crate) use queries::Corners;
use std::borrow::Cow;
use std::sync::Arc;
use traversal::Nodes;

/// The nodes of a k-d tree in host memory, in the order of its file: the coordinates of node `s` at `s * dims`, its id at `s`.
pub(crate) struct CpuIndex<C> {
    pub(crate) dims: usize,
    pub(crate) coords: Items<C>,
    pub(crate) ids: Items<u32>,
    /// The axes of nodes that have children; empty if levels split on the axes of `cycle` in turn.
    pub(crate) axes: Items<u8>,
    pub(crate) cycle: AxisCycle,
    /// The coordinates of all input points by id, for a balanced tree: it may lack some of them, and its last level may have nodes
    /// without a point.
    input_coords: Option<Arc<Items<C>>>,
    corners: Corners<C>,
    /// Built by the first query.
    boxes: Once<Boxes<C>>,
}

impl<C: Coord> CpuIndex<C> {
    /// Makes the index of nodes in level order.
    pub(crate) fn new(
        dims: usize,
        coords: Items<C>,
        ids: Items<u32>,
        axes: Items<u8>,
        input_coords: Option<Arc<Items<C>>>,
    ) -> Self {
        let (cycle, corners, boxes) = (AxisCycle::all(dims as u32), Corners::new(), Once::new());
        Self { dims, coords, ids, axes, cycle, input_coords, corners, boxes }
    }

    pub(crate) fn nodes<const D: usize>(&self) -> Nodes<'_, C, D> {
        let has_gaps = self.input_coords.is_some();
        let points = points::<C, D>(&self.coords);
        let (axes, cycle) = (&*self.axes, self.cycle);
        Nodes { points, ids: &self.ids, axes, cycle, has_gaps, boxes: BoxesOf::NONE }
    }

    /// Returns the nodes with boxes, which the first call builds.
    pub(crate) fn traversable<const D: usize>(&self) -> Result<Nodes<'_, C, D>> {
        let nodes = self.nodes::<D>();
        let boxes = self.boxes.get_or_try_init(|| Boxes::new(nodes))?;
        Ok(Nodes { boxes: boxes.view(), ..nodes })
    }

    /// Returns the nodes with boxes if a query has built them.
    pub(crate) fn built<const D: usize>(&self) -> Option<Nodes<'_, C, D>> {
        Some(Nodes { boxes: self.boxes.get()?.view(), ..self.nodes() })
    }

    /// Renumbers the points by `ids`, which are ascending, and builds the boxes.
    pub(crate) fn with_ids(mut self, ids: &[u32]) -> Result<Self> {
        let renumbered = self.ids.iter().map(|&id| ids[id as usize]);
        self.ids = memory::collect(renumbered, "ids of the nodes")?.into();
        with_dims!(self.dims, D => self.traversable::<D>().map(drop))?;
        Ok(self)
    }
}

impl<C: Coord> CpuTree for CpuIndex<C> {
    type Coord = C;

    fn coords_by_id(&self) -> Result<Cow<'_, [C]>> {
        Ok(match &self.input_coords {
            Some(coords) => Cow::Borrowed(coords),
            None => rows_by_id(&self.ids, &self.coords, self.dims, "points as queries")?.into(),
        })
    }

    fn with_queries<R>(&self, run: impl FnOnce(&dyn QueryBackend<C>) -> Result<R>) -> Result<R> {
        with_dims!(self.dims, D => {
            run(&TreeOf { index: self, tree: self.traversable::<D>()?, corners: &self.corners })
        })
    }
}

/// Views flat coordinates as points.
pub(crate) fn points<C, const D: usize>(coords: &[C]) -> &[[C; D]] {
    let (points, rest) = coords.as_chunks();
    debug_assert!(rest.is_empty());
    points
}
