//! The bucket index on the CPU: nodes of a complete k-d tree in level order, and boxes of its large subtrees. Every query is compiled once per number of
//! dimensions.

pub(crate) mod backend;
pub(crate) mod best;
pub(crate) mod boxes;
pub(crate) mod nearest;
mod order;
pub(crate) mod traversal;
pub(crate) mod within;

use crate::error::Result;
use crate::memory;
use crate::memory::Items;
use crate::once::Once;
use crate::point::with_dims;
use crate::query::backend::ValidatedQueries;
pub(crate) use backend::Corners;
use boxes::{Boxes, BoxesOf};
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;
use std::sync::Arc;
use traversal::Nodes;

/// The nodes of a k-d tree in host memory, in the order of its file: the coordinates of node `s` at `s * dims`, its id at `s`.
pub(crate) struct CpuIndex<C> {
    pub(crate) dims: usize,
    pub(crate) coords: Items<C>,
    pub(crate) ids: Items<u32>,
    /// The axes of nodes that have children; empty if they go by levels.
    pub(crate) axes: Items<u8>,
    /// The coordinates of the points by id, if the tree is a balanced one: it was given some that it may not have, and there may be nodes
    /// without a point on its last level.
    given: Option<Arc<Items<C>>>,
    corners: Corners<C>,
    /// Made by the first query.
    boxes: Once<Boxes<C>>,
}

impl<C: Coord> CpuIndex<C> {
    /// The index of nodes in level order.
    pub(crate) fn new(
        dims: usize,
        coords: Items<C>,
        ids: Items<u32>,
        axes: Items<u8>,
        given: Option<Arc<Items<C>>>,
    ) -> Self {
        Self { dims, coords, ids, axes, given, corners: Corners::new(), boxes: Once::new() }
    }

    pub(crate) fn nodes<const D: usize>(&self) -> Nodes<'_, C, D> {
        let has_gaps = self.given.is_some();
        let points = points::<C, D>(&self.coords);
        Nodes { points, ids: &self.ids, axes: &self.axes, has_gaps, boxes: BoxesOf::NONE }
    }

    /// The nodes with the boxes that walks go by.
    pub(crate) fn traversable<const D: usize>(&self) -> Result<Nodes<'_, C, D>> {
        let nodes = self.nodes::<D>();
        let boxes = self.boxes.get_or_try_init(|| Boxes::new(nodes))?;
        Ok(Nodes { boxes: boxes.view(), ..nodes })
    }

    /// The nodes with boxes, if a query has built them.
    pub(crate) fn made<const D: usize>(&self) -> Option<Nodes<'_, C, D>> {
        Some(Nodes { boxes: self.boxes.get()?.view(), ..self.nodes() })
    }

    /// Renumbers the points by `ids`, which rise, and builds the boxes.
    pub(crate) fn with_ids(mut self, ids: &[u32]) -> Result<Self> {
        let mut of_nodes = memory::vec_with_capacity(ids.len(), "ids of the nodes")?;
        of_nodes.extend(self.ids.iter().map(|&id| ids[id as usize]));
        self.ids = of_nodes.into();
        with_dims!(self.dims, D => self.traversable::<D>().map(drop))?;
        Ok(self)
    }

    /// The coordinates of the points by id, if they are the queries.
    pub(crate) fn own(&self, queries: ValidatedQueries<'_, C>) -> Result<Cow<'_, [C]>> {
        Ok(match (queries, &self.given) {
            (ValidatedQueries::Points { .. }, _) => Cow::Borrowed(&[]),
            (ValidatedQueries::Own { .. }, Some(given)) => Cow::Borrowed(given),
            (ValidatedQueries::Own { .. }, None) => {
                backend::by_id(&self.coords, &self.ids, self.dims)?.into()
            }
        })
    }
}

/// Flat coordinates as points.
pub(crate) fn points<C, const D: usize>(coords: &[C]) -> &[[C; D]] {
    let (points, rest) = coords.as_chunks();
    debug_assert!(rest.is_empty());
    points
}
