//! The split plans of the nodes of a level.

use super::chunks::load_box;
use super::large_nodes::{LargeNode, SplitPlan};
use cuda_std::prelude::*;

/// The input of the split plans of a level.
#[derive(Clone, Copy, KernelArgs)]
pub struct Plans<'a> {
    /// The bounding boxes of the nodes' references, as keys; not needed if there are planes.
    pub keys: Slice<'a, u32>,
    /// See [`cut_empty_space`](super::cost::cut_empty_space).
    pub empty_space: f32,
    /// The [cheapest planes](super::cheapest_planes) of the nodes, a row for each axis. Without them nodes split in the middle.
    pub planes: Slice<'a, u64>,
}

impl Plans<'_> {
    /// Returns the plan of a node.
    #[inline(always)]
    pub(super) unsafe fn plan(&self, node: usize, large: &LargeNode) -> SplitPlan {
        if self.planes.is_empty() {
            return SplitPlan::new(large, load_box(self.keys, node), self.empty_space);
        }
        let row = self.planes.len() / 3;
        SplitPlan::cheapest(large, [0, 1, 2].map(|axis| self.planes.load(axis * row + node)))
    }
}
