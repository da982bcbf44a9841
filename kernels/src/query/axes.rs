//! The split axis of each node of a complete k-d tree.

use super::left_balanced::level;
use cuda_std::prelude::*;

/// The axes of nodes that have children.
#[derive(Clone, Copy)]
pub struct Axes<'a> {
    /// By node; empty if they go by levels.
    pub axes: Slice<'a, u8>,
    /// Number of dimensions.
    pub dims: u32,
}

impl Axes<'_> {
    /// The axis of a node; of one without children any.
    ///
    /// # Safety
    /// None beyond those of views of device memory.
    #[inline(always)]
    pub unsafe fn of(&self, node: u32) -> usize {
        if self.axes.is_empty() {
            (level(node) % self.dims) as usize
        } else if (node as usize) < self.axes.len() {
            self.axes.load(node as usize) as usize
        } else {
            0
        }
    }
}
