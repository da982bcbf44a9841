//! Refit: a hierarchy for triangles that have moved.

use super::build::GpuBuilder;
use super::leaf;
use super::tree::{GpuTree, LABEL};
use crate::device::{Layout, Stream};
use crate::error::Result;
use crate::mesh::DeviceMesh;
use crate::primitives::planned::carve;
use crate::rays::corners::launch_corners;
use kauri_kernels::bvh::refit::{bvh_parents, bvh_refit};
use kauri_kernels::rays::corners::summary;
use kauri_kernels::rays::extent::Extent;

impl GpuBuilder {
    /// Fits a hierarchy to a mesh that has moved, and waits for it. The mesh has at least one triangle, and as many as the hierarchy.
    pub(in super::super) fn refit(
        &mut self,
        stream: &Stream,
        old: &GpuTree,
        mesh: DeviceMesh<'_>,
    ) -> Result<GpuTree> {
        let mut tree = self.take_spare(stream)?;
        let (num_triangles, num_nodes) = (mesh.len(), old.nodes.len());
        tree.triangles.reserve(stream, num_triangles, LABEL)?;
        tree.extent.reserve(stream, 1, LABEL)?;
        tree.nodes.reserve(stream, num_nodes, LABEL)?;
        (tree.root, tree.height) = (old.root, old.height);
        let plan = |layout: &mut Layout| {
            (
                layout.reserve(num_triangles),
                layout.reserve(summary::WORDS),
                layout.reserve(num_nodes),
                layout.reserve(num_nodes),
            )
        };
        let ((boxes, found, parents, arrivals), temp) = carve(stream, &mut self.workspace, LABEL, plan)?;
        temp.clear(arrivals)?;
        let (found, parents) = (temp.view(found), temp.view(parents));
        // SAFETY: the buffers have the lengths that the kernels take, and wait for the device before they are freed.
        unsafe {
            launch_corners(stream, mesh, None, temp.view(boxes), found)?;
            leaf::write_moved(stream, old.triangles.view(), mesh, tree.triangles.view_mut())?;
            if num_nodes > 0 {
                let nodes = tree.nodes.view_mut();
                stream.copy(nodes, old.nodes.view())?;
                stream.fill_bytes(parents, 0xFF)?;
                stream.launch_items::<bvh_parents>(num_nodes as u64, (old.nodes.view(), parents))?;
                let args = (
                    old.nodes.view(),
                    tree.triangles.view(),
                    parents.read_only(),
                    temp.view(arrivals),
                    nodes,
                );
                stream.launch_items::<bvh_refit>(num_nodes as u64, args)?;
            }
            let found = stream.read(found.read_only())?;
            if found[summary::INVALID] != u32::MAX {
                return Err(mesh.error(stream));
            }
            tree.extent_on_host = Extent::from_keys([0, 1, 2, 3, 4, 5, 6].map(|i| found[i]));
            stream.upload(tree.extent.view_mut(), &[tree.extent_on_host])?;
        }
        // Rays may come on another stream.
        stream.synchronize()?;
        Ok(tree)
    }
}
