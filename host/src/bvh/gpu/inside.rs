//! Whether points are inside a mesh, on a GPU.

use super::tree::GpuTree;
use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use kauri_kernels::bvh::inside::bvh_inside;
use kauri_kernels::bvh::leaf::LeafTriangle;

impl GpuTree<LeafTriangle> {
    /// Writes 1 for each point that is inside the mesh, 0 for the others.
    pub(in super::super) fn inside_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        points: &Buffer<[f32; 3]>,
        inside: &mut Buffer<u8>,
    ) -> Result<()> {
        self.search(stream, workspace, points.len(), |num_blocks, searches| {
            let args = (searches, points.slice(), inside.slice_mut());
            // SAFETY: there is an element for each point, and the buffers wait for the device before they are freed.
            unsafe { stream.launch::<bvh_inside>(num_blocks, args) }
        })
    }
}
