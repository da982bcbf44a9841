//! A tree in host memory: built by the CPU, built out of core, or loaded from a file.

mod deep_leaf;
mod levels;
mod queries;
#[cfg(feature = "io")]
mod stored;
mod traversal;

pub(crate) use levels::Levels;

use crate::error::Result;
use crate::memory::Items;
use crate::once::Once;
use crate::quadtree::backend::{Backend, Outline};
use crate::quadtree::check;
use crate::quadtree::dims::with_2_or_3;
use crate::quadtree::node::{OrderedPoints, Part, level_begins};
use crate::quadtree::options::QuadtreeOptions;
use crate::query::backend::QueryBackend;
use crate::query::cpu::Corners;
use crate::rows::Rows;
use deep_leaf::DeepLeaf;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;
use std::ops::Range;

/// A tree in host memory.
pub(crate) struct HostTree<C> {
    pub(crate) outline: Outline,
    pub(crate) nodes: Items<Node>,
    /// The low corner of each node's cell, in units.
    pub(crate) cells: Vec<u32>,
    /// Coordinates in tree order.
    pub(crate) coords: Items<C>,
    /// Ids in tree order.
    pub(crate) ids: Items<u32>,
    /// The bounding box of the points, which the first query that needs it computes.
    corners: Corners<C>,
    /// K-d trees over overfull leaves, which the first query builds.
    deep_leaves: Once<Vec<DeepLeaf<C>>>,
}

impl<C> HostTree<C> {
    /// Assembles a tree that was built.
    pub(crate) fn new<const D: usize>(
        frame: &Frame<D>,
        options: &QuadtreeOptions,
        part: Part<D>,
        OrderedPoints { coords, ids }: OrderedPoints<C>,
    ) -> Self {
        Self::of_items(frame, options, part.nodes.into(), part.corners, coords.into(), ids.into())
    }

    /// Assembles a tree of nodes, the low corners of their cells, and points in tree order.
    fn of_items<const D: usize>(
        frame: &Frame<D>,
        options: &QuadtreeOptions,
        nodes: Items<Node>,
        corners: Vec<[u32; D]>,
        coords: Items<C>,
        ids: Items<u32>,
    ) -> Self {
        let outline = Outline {
            frame: frame.to_words().collect(),
            dims: D,
            options: options.clone(),
            num_points: ids.len(),
            level_begins: level_begins(&nodes),
        };
        Self {
            outline,
            nodes,
            cells: corners.into_flattened(),
            coords,
            ids,
            corners: Corners::new(),
            deep_leaves: Once::new(),
        }
    }
}

impl<C: Coord> Backend<C> for HostTree<C> {
    fn outline(&self) -> &Outline {
        &self.outline
    }
    fn nodes(&self) -> Result<Cow<'_, [Node]>> {
        Ok(Cow::Borrowed(&self.nodes))
    }
    fn cells(&self, nodes: Range<u32>) -> Result<Cow<'_, [u32]>> {
        let dims = self.outline.dims;
        Ok(self.cells[nodes.start as usize * dims..nodes.end as usize * dims].into())
    }
    fn ids(&self) -> Result<Cow<'_, [u32]>> {
        Ok(Cow::Borrowed(&self.ids))
    }
    fn coords(&self) -> Result<Cow<'_, [C]>> {
        Ok(Cow::Borrowed(&self.coords))
    }
    fn leaf_of(&self, queries: &[C]) -> Result<Vec<u32>> {
        with_2_or_3!(self.outline.dims, D => self.leaf_of(queries.as_chunks::<D>().0))
    }
    fn adjacent_leaves(&self, nodes: &[u32]) -> Result<Rows<u32>> {
        with_2_or_3!(self.outline.dims, D => self.adjacent_leaves::<D>(nodes))
    }
    fn samples(&self) -> Result<Vec<u32>> {
        with_2_or_3!(self.outline.dims, D => self.samples::<D>())
    }
    fn verify(&self) -> Result<()> {
        with_2_or_3!(self.outline.dims, D => check::verify::<C, D>(self))
    }
    fn query_backend(&self) -> Result<&dyn QueryBackend<C>> {
        Ok(self)
    }
}
