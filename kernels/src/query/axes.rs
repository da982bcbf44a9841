//! The split axis of each node of a complete k-d tree.

use super::left_balanced::level;
use cuda_std::prelude::*;

/// The split axes of the nodes that have children.
#[derive(Clone, Copy)]
pub struct Axes<'a> {
    /// The axis of each node; empty if level `l` splits on axis `l` modulo `dims`.
    pub axes: Slice<'a, u8>,
    /// Number of dimensions.
    pub dims: u32,
}

impl Axes<'_> {
    /// Returns the axis of a node; any axis if it has no children.
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
