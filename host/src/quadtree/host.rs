//! A tree in host memory, and its check.

mod check;
mod levels;
mod queries;
mod words;

pub(crate) use check::Unchecked;
pub(crate) use levels::{Levels, Part};
pub(crate) use words::NodeWords;

use crate::error::{Error, Result};
use crate::memory::Items;
use crate::once::Once;
use crate::quadtree::cpu::traversal::DeepLeaf;
use crate::quadtree::{QuadtreeOptions, frame_of};
use crate::query::cpu::Corners;
use crate::query::ids;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;

/// A tree in host memory.
pub(crate) struct HostTree<C> {
    pub(crate) frame: Vec<u64>,
    pub(crate) dims: usize,
    pub(crate) options: QuadtreeOptions,
    pub(crate) nodes: Items<NodeWords>,
    /// The low corner of each node's cell, in units.
    pub(crate) cells: Vec<u32>,
    pub(crate) level_begins: Vec<u32>,
    pub(crate) coords: Items<C>,
    pub(crate) ids: Items<u32>,
    pub(crate) corners: Corners<C>,
    /// Made by the first query.
    pub(crate) deep_leaves: Once<Vec<DeepLeaf<C>>>,
}

impl<C> HostTree<C> {
    pub(crate) fn nodes(&self) -> &[Node] {
        NodeWords::nodes(&self.nodes)
    }

    /// The low corner of a node's cell.
    pub(crate) fn cell(&self, node: u32) -> &[u32] {
        &self.cells[node as usize * self.dims..][..self.dims]
    }
}

impl<C: Coord> HostTree<C> {
    /// Checks all that a build promises.
    pub(crate) fn verify<const D: usize>(&self) -> Result<()> {
        let corrupt = |node: usize, what| Error::Corrupt { node: node as u64, what };
        if let Some((place, what)) = ids::first_invalid(&self.ids)? {
            return Err(corrupt(0, format!("at place {place}: {what}")));
        }
        let tree = Unchecked {
            frame: frame_of::<D>(&self.frame),
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
