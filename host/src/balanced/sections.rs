//! The arrays of a tree that a file stores.

use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

use crate::memory::Items;

/// The arrays of a tree, to be written to a file.
pub(crate) struct Sections<'a, C: Coord> {
    /// The coordinates of all input points, by id.
    pub(crate) coords: Cow<'a, [C]>,
    /// The id of the node at each address, level by level, or [`NONE`](kauri_kernels::balanced::NONE).
    pub(crate) medians: Cow<'a, [u32]>,
    /// The representative of each point: the first point that equals it. Empty if all points are distinct.
    pub(crate) representatives: Cow<'a, [u32]>,
}

/// The arrays of a tree, read from a file and checked.
pub(crate) struct LoadedSections<C> {
    pub(crate) num_nodes: usize,
    pub(crate) coords: Items<C>,
    pub(crate) medians: Items<u32>,
    pub(crate) representatives: Items<u32>,
}
