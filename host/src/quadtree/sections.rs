//! The arrays that a file stores for a tree.

use crate::quadtree::options::QuadtreeOptions;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

/// The arrays that a file stores for a tree. Cells and levels follow from the nodes that split.
pub(crate) struct Sections<'a, C: Coord> {
    /// Coordinates in tree order.
    pub(crate) coords: Cow<'a, [C]>,
    /// Ids in tree order.
    pub(crate) ids: Cow<'a, [u32]>,
    pub(crate) nodes: Cow<'a, [Node]>,
    /// The frame's words.
    pub(crate) frame: &'a [u64],
    pub(crate) options: &'a QuadtreeOptions,
}
