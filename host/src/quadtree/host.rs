//! A tree in host memory: built by the CPU, built out of core, or loaded from a file.

mod check;
mod deep_leaf;
mod levels;
mod queries;
#[cfg(feature = "io")]
mod stored;
mod traversal;

pub(crate) use levels::Levels;

use crate::error::{Error, Result};
use crate::memory::Items;
use crate::once::Once;
use crate::quadtree::backend::Backend;
use crate::quadtree::dims::with_2_or_3;
use crate::quadtree::frame::frame_of_words;
use crate::quadtree::leaf_rows::LeafRows;
use crate::quadtree::node::NodeWords;
use crate::quadtree::options::QuadtreeOptions;
#[cfg(feature = "io")]
use crate::quadtree::sections::Sections;
use crate::query::backend::QueryBackend;
use crate::query::cpu::Corners;
use crate::query::ids;
use check::Unchecked;
use deep_leaf::DeepLeaf;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

/// A tree in host memory.
pub(crate) struct HostTree<C> {
    /// The frame's words.
    pub(crate) frame: Vec<u64>,
    pub(crate) dims: usize,
    pub(crate) options: QuadtreeOptions,
    pub(crate) nodes: Items<NodeWords>,
    /// The low corner of each node's cell, in units.
    pub(crate) cells: Vec<u32>,
    /// The first node of each level, and the number of nodes.
    pub(crate) level_begins: Vec<u32>,
    /// Coordinates in tree order.
    pub(crate) coords: Items<C>,
    /// Ids in tree order.
    pub(crate) ids: Items<u32>,
    /// The bounding box of the points, which the first query that needs it computes.
    pub(crate) corners: Corners<C>,
    /// K-d trees over overfull leaves, which the first query builds.
    pub(crate) deep_leaves: Once<Vec<DeepLeaf<C>>>,
}

impl<C> HostTree<C> {
    /// Assembles a tree.
    pub(crate) fn new<const D: usize>(
        frame: &Frame<D>,
        options: &QuadtreeOptions,
        nodes: Vec<Node>,
        cells: Vec<u32>,
        level_begins: Vec<u32>,
        coords: Vec<C>,
        ids: Vec<u32>,
    ) -> Self {
        Self {
            frame: frame.to_words().collect(),
            dims: D,
            options: options.clone(),
            nodes: NodeWords::of_nodes(nodes),
            cells,
            level_begins,
            coords: coords.into(),
            ids: ids.into(),
            corners: Corners::new(),
            deep_leaves: Once::new(),
        }
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        NodeWords::nodes(&self.nodes)
    }

    /// Returns the low corner of a node's cell, in units.
    fn cell(&self, node: u32) -> &[u32] {
        &self.cells[node as usize * self.dims..][..self.dims]
    }
}

impl<C: Coord> HostTree<C> {
    /// Checks everything that a build promises.
    fn verify<const D: usize>(&self) -> Result<()> {
        let corrupt = |node: usize, what| Error::Corrupt { node: node as u64, what };
        if let Some((place, what)) = ids::first_wrong(&self.ids)? {
            return Err(corrupt(0, format!("at place {place}: {what}")));
        }
        let tree = Unchecked {
            frame: frame_of_words::<D>(&self.frame),
            options: &self.options,
            nodes: self.nodes(),
            points: self.coords.as_chunks().0,
            ids: &self.ids,
        };
        let cells = tree.check(corrupt)?;
        if self.level_begins != cells.level_begins {
            return Err(corrupt(0, format!("its levels begin at {:?}", self.level_begins)));
        }
        match self.cells.iter().zip(&cells.corners).position(|(found, expected)| found != expected) {
            Some(i) => Err(corrupt(i / D, format!("its cell is at {:?}", self.cell((i / D) as u32)))),
            None => Ok(()),
        }
    }
}

impl<C: Coord> Backend<C> for HostTree<C> {
    fn options(&self) -> &QuadtreeOptions {
        &self.options
    }
    fn frame(&self) -> &[u64] {
        &self.frame
    }
    fn level_begins(&self) -> &[u32] {
        &self.level_begins
    }
    fn num_points(&self) -> usize {
        self.ids.len()
    }
    fn nodes(&self) -> Result<Cow<'_, [Node]>> {
        Ok(self.nodes().into())
    }
    fn ids(&self) -> Result<Cow<'_, [u32]>> {
        Ok(Cow::Borrowed(&self.ids))
    }
    fn coords(&self) -> Result<Cow<'_, [C]>> {
        Ok(Cow::Borrowed(&self.coords))
    }
    fn cell(&self, node: u32) -> Result<Vec<u32>> {
        Ok(self.cell(node).to_vec())
    }
    fn verify(&self) -> Result<()> {
        with_2_or_3!(self.dims, D => self.verify::<D>())
    }
    fn leaf_of(&self, queries: &[C]) -> Result<Vec<u32>> {
        with_2_or_3!(self.dims, D => self.leaf_of(queries.as_chunks::<D>().0))
    }
    fn adjacent_leaves(&self, nodes: &[u32]) -> Result<LeafRows> {
        with_2_or_3!(self.dims, D => self.adjacent_leaves::<D>(nodes))
    }
    fn samples(&self) -> Result<Vec<u32>> {
        with_2_or_3!(self.dims, D => self.samples::<D>())
    }
    fn query_backend(&self) -> Result<&dyn QueryBackend<C>> {
        Ok(self)
    }
    #[cfg(feature = "io")]
    fn sections(&self) -> Result<Sections<'_, C>> {
        Ok(Sections {
            coords: Cow::Borrowed(&self.coords),
            ids: Cow::Borrowed(&self.ids),
            nodes: Cow::Borrowed(self.nodes()),
            frame: &self.frame,
            options: &self.options,
        })
    }
}
