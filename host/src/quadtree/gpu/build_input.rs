//! The input of a build on a GPU.

use crate::device::{Buffer, Stream};
use cuda_std::mem::Slice;

/// The input of a build. There are more points than a leaf may have, and at least one level below the root.
pub(crate) struct BuildInput<'a, C> {
    pub(crate) stream: &'a Stream,
    pub(crate) coords: Slice<'a, C>,
    /// The frame's words.
    pub(crate) frame: Buffer<u64>,
    /// Number of levels below the root.
    pub(crate) depth: u32,
    /// Maximum number of points of a leaf above level `depth`.
    pub(crate) leaf_points: u32,
}
