//! Nodes and points as the builders pass them on.

use crate::error::Result;
use crate::memory;
use crate::quadtree::node::check_num_nodes;
use kauri_kernels::quadtree::node::Node;

/// Nodes that were built together, in breadth-first order, and the low corners of their cells in units.
pub(crate) struct Part<const D: usize> {
    pub(crate) nodes: Vec<Node>,
    pub(crate) corners: Vec<[u32; D]>,
}

impl<const D: usize> Part<D> {
    /// Returns a part of one node.
    pub(crate) fn of_node(node: Node, corner: [u32; D]) -> Self {
        Self { nodes: vec![node], corners: vec![corner] }
    }

    /// Appends the children of node `parent`; `len` returns the number of points of a child, and a child's cell has `side` units on a side.
    pub(crate) fn push_children(
        &mut self,
        parent: usize,
        side: u32,
        len: impl Fn(usize) -> u32,
    ) -> Result<()> {
        check_num_nodes(self.nodes.len(), 1, D)?;
        memory::reserve_more(&mut self.nodes, 1 << D, "nodes of a quadtree")?;
        memory::reserve_more(&mut self.corners, 1 << D, "cells of a quadtree")?;
        self.nodes[parent].first_child = self.nodes.len() as u32;
        let (Node { mut start, level, .. }, corner) = (self.nodes[parent], self.corners[parent]);
        for child in 0..1_usize << D {
            let end = start + len(child);
            self.nodes.push(Node { start, end, first_child: 0, level: level + 1 });
            self.corners.push(child_corner(corner, child, side));
            start = end;
        }
        Ok(())
    }
}

/// Returns the low corner of a child's cell, given the low corner of its parent's and the side of the child's. The first axis is the
/// highest bit of `child`.
pub(crate) fn child_corner<const D: usize>(parent: [u32; D], child: usize, side: u32) -> [u32; D] {
    std::array::from_fn(|axis| parent[axis] + (child >> (D - 1 - axis) & 1) as u32 * side)
}

/// A part, and the number of nodes that split on each level.
pub(crate) type PartAndSplits<const D: usize> = (Part<D>, Vec<u32>);

/// Coordinates and ids of points in tree order.
pub(crate) struct OrderedPoints<C> {
    pub(crate) coords: Vec<C>,
    pub(crate) ids: Vec<u32>,
}
