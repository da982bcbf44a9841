//! The k-d tree on the CPU: rayon, one monomorphised copy of each algorithm per number of dimensions.

mod answers;
mod balanced;
mod best;
mod boxes;
mod build;
mod cell;
mod cells;
mod nearest;
mod order;
mod verify;
mod walk;
mod within;

pub(crate) use answers::Corners;
use boxes::{Boxes, BoxesOf};
use build::Built;
pub(crate) use cells::DeepLeaf;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;
use std::sync::Arc;
use walk::Nodes;

use super::SplitRule;
use super::backend::{Backend, Checked};
#[cfg(feature = "io")]
use super::stored::{Loaded, Stored};
use crate::error::Result;
use crate::memory::{self, Items};
use crate::once::Once;
use crate::stats::Stats;

/// A tree in host memory, in the stored form of every backend: the coordinates of node `s` at `s * dims`, its id at `s`.
pub(crate) struct CpuTree<C> {
    dims: usize,
    coords: Items<C>,
    ids: Items<u32>,
    /// The axes of nodes that have children; empty if they go by levels.
    axes: Items<u8>,
    /// The coordinates of the points by id, if the tree is a balanced one: it was given some that it may not have, and there may be nodes
    /// without a point on its last level.
    given: Option<Arc<Items<C>>>,
    corners: Corners<C>,
    /// Made by the first query.
    boxes: Once<Boxes<C>>,
}

impl<C: Coord> CpuTree<C> {
    /// Builds the tree over points given as checked coordinates, point after point.
    pub(crate) fn build(coords: &[C], dims: usize, rule: SplitRule, stats: &mut Stats) -> Result<Self> {
        with_dims!(dims, D => {
            let Built { nodes, ids, axes } = build::build(points::<C, D>(coords), rule, stats)?;
            let (coords, ids, axes) = (nodes.into_flattened().into(), ids.into(), axes.into());
            Ok(Self { dims, coords, ids, axes, given: None, corners: Corners::new(), boxes: Once::new() })
        })
    }

    /// The tree of a file.
    #[cfg(feature = "io")]
    pub(super) fn loaded(nodes: Loaded<C>, dims: usize) -> Self {
        let Loaded { coords, ids, axes } = nodes;
        Self { dims, coords, ids, axes, given: None, corners: Corners::new(), boxes: Once::new() }
    }

    fn nodes<const D: usize>(&self) -> Nodes<'_, C, D> {
        let has_gaps = self.given.is_some();
        let points = points::<C, D>(&self.coords);
        Nodes { points, ids: &self.ids, axes: &self.axes, has_gaps, boxes: BoxesOf::NONE }
    }

    /// The nodes with the boxes that walks go by.
    fn walked<const D: usize>(&self) -> Result<Nodes<'_, C, D>> {
        let nodes = self.nodes::<D>();
        let boxes = self.boxes.get_or_make(|| Boxes::new(nodes))?;
        Ok(Nodes { boxes: boxes.view(), ..nodes })
    }

    /// The nodes with boxes, if a query has built them.
    fn made<const D: usize>(&self) -> Option<Nodes<'_, C, D>> {
        Some(Nodes { boxes: self.boxes.get()?.view(), ..self.nodes() })
    }

    /// Renumbers the points by `ids`, which rise, and builds the boxes.
    fn with_ids(mut self, ids: &[u32]) -> Result<Self> {
        let mut of_nodes = memory::vec_with_capacity(ids.len(), "ids of the nodes")?;
        of_nodes.extend(self.ids.iter().map(|&id| ids[id as usize]));
        self.ids = of_nodes.into();
        with_dims!(self.dims, D => self.walked::<D>().map(drop))?;
        Ok(self)
    }

    /// The coordinates of the points by id, if they are the queries.
    fn own(&self, queries: Checked<'_, C>) -> Result<Cow<'_, [C]>> {
        Ok(match (queries, &self.given) {
            (Checked::Points { .. }, _) => Cow::Borrowed(&[]),
            (Checked::Own { .. }, Some(given)) => Cow::Borrowed(given),
            (Checked::Own { .. }, None) => answers::by_id(&self.coords, &self.ids, self.dims)?.into(),
        })
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
