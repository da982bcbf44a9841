//! Nodes in host memory, as builders pass them on.

use crate::error::{Result, check_count};
use crate::memory;
use kauri_kernels::quadtree::node::Node;

/// Returns the bytes of a node of a tree: the node itself, and the low corner of its cell.
pub(crate) fn node_bytes(dims: usize) -> u64 {
    (size_of::<Node>() + dims * size_of::<u32>()) as u64
}

/// Checks that node numbers stay below 2^32 when `num_splits` of `num_nodes` nodes split into 2^`dims` children each.
pub(crate) fn check_num_nodes(num_nodes: usize, num_splits: u64, dims: usize) -> Result<()> {
    check_count("nodes of a quadtree", num_nodes as u64 + (num_splits << dims), u32::MAX.into())
}

/// Returns the first of the nodes on each level, and the number of nodes. The nodes are in breadth-first order.
pub(crate) fn level_begins(nodes: &[Node]) -> Vec<u32> {
    let levels = match nodes {
        [first, .., last] => first.level..last.level + 1,
        [node] => node.level..node.level + 1,
        [] => 0..0,
    };
    let ends = levels.map(|level| nodes.partition_point(|node| node.level <= level) as u32);
    std::iter::once(0).chain(ends).collect()
}

/// Nodes that were built together, in breadth-first order, and the low corners of their cells in units.
pub(crate) struct Part<const D: usize> {
    pub(crate) nodes: Vec<Node>,
    pub(crate) corners: Vec<[u32; D]>,
}

impl<const D: usize> Part<D> {
    /// Returns the part of the root alone, with `num_points` points.
    pub(crate) fn of_root(num_points: usize) -> Self {
        let root = Node { start: 0, end: num_points as u32, first_child: 0, level: 0 };
        Self { nodes: vec![root], corners: vec![[0; D]] }
    }

    /// Reserves memory for the children of exactly `num_splits` nodes.
    pub(crate) fn reserve(&mut self, num_splits: usize) -> Result<()> {
        check_num_nodes(self.nodes.len(), num_splits as u64, D)?;
        memory::reserve(&mut self.nodes, num_splits << D, "nodes of a quadtree")?;
        memory::reserve(&mut self.corners, num_splits << D, "cells of a quadtree")
    }

    /// Appends the children of node `parent`; `len` returns the number of points of a child. The root of the tree has 2^`frame_levels` units
    /// on a side.
    pub(crate) fn push_children(
        &mut self,
        parent: usize,
        frame_levels: u32,
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
            self.corners.push(child_corner(corner, child, 1 << (frame_levels - level - 1)));
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

/// Coordinates and ids of points in tree order.
pub(crate) struct OrderedPoints<C> {
    pub(crate) coords: Vec<C>,
    pub(crate) ids: Vec<u32>,
}
