//! Corners, bounding boxes and extent of a mesh: the first stage of every build and refit.

use super::growable_buffer::GrowableBuffer;
use super::tree::GpuTree;
use crate::device::{Layout, Stream, Workspace};
use crate::error::Result;
use crate::primitives::planned::carve;
use crate::sah::device_mesh::DeviceMesh;
use cuda_std::mem::SliceMut;
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::corners::{sah_corners, sah_root, summary};
use kauri_kernels::sah::extent::Extent;
use kauri_kernels::sah::large_nodes::LargeNode;

/// Computes the corners and the extent of a mesh that has triangles, their bounding boxes, and the root of a build with its
/// references, unless their views are empty. Waits for the result.
///
/// # Errors
/// An error that names the first invalid vertex; [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
pub(super) fn load_mesh(
    stream: &Stream,
    workspace: &mut Workspace,
    mesh: DeviceMesh<'_>,
    tree: &mut GpuTree,
    boxes: &mut GrowableBuffer<Aabb>,
    (root, references): (SliceMut<'_, LargeNode>, SliceMut<'_, u32>),
) -> Result<()> {
    let num_triangles = mesh.len();
    tree.corners.reserve(stream, num_triangles, "corners of triangles")?;
    tree.extent.reserve(stream, 1, "box of a mesh")?;
    boxes.reserve(stream, num_triangles, "boxes of triangles")?;
    let plan = |layout: &mut Layout| layout.reserve::<u32>(summary::WORDS);
    let (words, temp) = carve(stream, workspace, "box of a mesh", plan)?;
    let words = temp.view(words);
    // SAFETY: the buffers have the lengths that the kernels take, and wait for the device before they are freed.
    let words = unsafe {
        stream.fill_bytes(words, 0xFF)?;
        let args = (
            mesh.vertices.slice(),
            mesh.triangles.slice(),
            tree.corners.view_mut(),
            boxes.view_mut(),
            references,
            words,
        );
        stream.launch_items::<sah_corners>(num_triangles as u64, args)?;
        let args = (num_triangles as u32, words.read_only(), tree.extent.view_mut(), root);
        stream.launch::<sah_root>(1, args)?;
        stream.read(words.read_only())?
    };
    if words[summary::INVALID] != u32::MAX {
        return Err(mesh.error(stream));
    }
    tree.extent_on_host = Extent::from_keys([0, 1, 2, 3, 4, 5, 6].map(|i| words[i]));
    Ok(())
}
