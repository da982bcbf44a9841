//! The arrays of a tree that a file stores, in level order on every device.

use std::borrow::Cow;

use crate::memory::Items;
use kauri_kernels::thread::coord::Coord;

/// The arrays of a tree, to be written to a file.
pub(crate) struct Sections<'a, C: Coord> {
    pub(crate) coords: Cow<'a, [C]>,
    pub(crate) ids: Cow<'a, [u32]>,
    /// The split axes of the inner nodes; empty if the axis follows from the level.
    pub(crate) axes: Cow<'a, [u8]>,
}

/// The arrays of a tree, read from a file and checked: each id occurs once, coordinates are within their limits, axes exist.
pub(crate) struct LoadedSections<C> {
    pub(crate) coords: Items<C>,
    pub(crate) ids: Items<u32>,
    pub(crate) axes: Items<u8>,
}
