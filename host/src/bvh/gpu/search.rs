//! Searches on a GPU. A launch has at most as many threads as fit on the GPU at once, because each needs memory for its stack.

use super::tree::{GpuTree, LABEL};
use crate::device::{Layout, Stream, Workspace};
use crate::error::Result;
use kauri_kernels::bvh::leaf::Leaf;
use kauri_kernels::bvh::scene::DeviceBvh;
use kauri_kernels::bvh::search::Searches;
use kauri_kernels::bvh::stack::stack_len;
use kauri_kernels::policy::{BVH_RAY_MIN_BLOCKS, RAY_STACK, RAY_THREADS};

impl<L: Leaf> GpuTree<L> {
    /// Returns the hierarchy as kernels take it.
    pub(super) fn view(&self) -> DeviceBvh<'_, L> {
        let (nodes, items, extent) = (self.nodes.view(), self.items.view(), self.extent.view());
        DeviceBvh { nodes, items, extent, root: self.root.0 }
    }

    /// Returns the number of blocks of a launch. All are on the GPU at the same time, and take queries until none are left.
    pub(super) fn num_blocks(&self, num_queries: usize) -> usize {
        let resident = self.gpu.info().num_sms as usize * BVH_RAY_MIN_BLOCKS as usize;
        num_queries.div_ceil(RAY_THREADS).min(resident)
    }

    /// Returns the entries of all stacks of a launch beyond those in shared memory.
    pub(super) fn num_deep(&self, num_queries: usize) -> usize {
        stack_len(self.height).saturating_sub(RAY_STACK) * self.num_blocks(num_queries) * RAY_THREADS
    }

    /// Launches a kernel that searches the hierarchy for queries: calls `launch` with the number of blocks, and the hierarchy with stacks in the
    /// workspace.
    pub(super) fn search(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        num_queries: usize,
        launch: impl FnOnce(u64, Searches<'_, L>) -> Result<()>,
    ) -> Result<()> {
        let mut layout = Layout::new();
        let deep = layout.reserve(self.num_deep(num_queries));
        let temp = workspace.carve(stream, &layout, LABEL)?;
        let searches = Searches { bvh: self.view(), deep: temp.view(deep) };
        self.readers.read_by(stream, || launch(self.num_blocks(num_queries) as u64, searches))
    }
}
