//! The algorithms that build subtrees in device memory.

use crate::device::Workspace;
use crate::error::Result;
use crate::primitives::generate::iota_on;
use crate::quadtree::gpu::build::Build;
use crate::quadtree::gpu::codes;
#[cfg(feature = "research")]
use crate::quadtree::gpu::levels;
use crate::quadtree::options::BuildAlgorithm;
use kauri_kernels::thread::coord::Coord;

impl BuildAlgorithm {
    /// Builds the subtrees. All roots have more points than a leaf may have, and are above level `depth`. Returns the number of nodes that
    /// split on each level, from that of the roots on. The points must be grouped by root, in input order within a root.
    ///
    /// # Safety
    /// Nothing else uses the buffers until the stream has done the work.
    pub(crate) unsafe fn run<C: Coord, const D: usize>(
        self,
        build: &mut Build<'_, C, D>,
        workspace: &mut Workspace,
    ) -> Result<Vec<u32>> {
        // SAFETY: the caller's promise.
        unsafe {
            if build.roots[0].level > 0 {
                iota_on(build.stream, 0, build.ids.slice_mut())?;
            }
            match self {
                BuildAlgorithm::Codes => codes::build(build, workspace),
                #[cfg(feature = "research")]
                BuildAlgorithm::Levels(options) => levels::build(build, workspace, options),
            }
        }
    }
}
