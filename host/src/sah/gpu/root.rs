//! Corners, extent and root: the first stage of every build and refit.

use crate::device::GrowableBuffer;
use crate::device::{Layout, Stream, Workspace};
use crate::error::Result;
use crate::mesh::DeviceMesh;
use crate::primitives::planned::carve;
use crate::rays::corners::launch_corners;
use cuda_std::mem::SliceMut;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::rays::corners::summary;
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::rays::triangle::Corners;
use kauri_kernels::sah::large_nodes::LargeNode;
use kauri_kernels::sah::root::sah_root;

/// Computes the corners and the extent of a mesh that has triangles, their bounding boxes, and the root of a build with its
/// references, unless their views are empty. Waits for the result.
///
/// # Errors
/// An error that names the first invalid vertex; [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
pub(super) fn load_mesh(
    stream: &Stream,
    workspace: &mut Workspace,
    mesh: DeviceMesh<'_>,
    corners: &mut GrowableBuffer<Corners>,
    extent: &mut GrowableBuffer<Extent>,
    boxes: &mut GrowableBuffer<Aabb>,
    (root, references): (SliceMut<'_, LargeNode>, SliceMut<'_, u32>),
) -> Result<Extent> {
    let num_triangles = mesh.len();
    corners.reserve(stream, num_triangles, "corners of triangles")?;
    extent.reserve(stream, 1, "box of a mesh")?;
    boxes.reserve(stream, num_triangles, "boxes of triangles")?;
    let plan = |layout: &mut Layout| layout.reserve::<u32>(summary::WORDS);
    let (words, temp) = carve(stream, workspace, "box of a mesh", plan)?;
    let words = temp.view(words);
    // SAFETY: the buffers have the lengths that the kernels take, and wait for the device before they are freed.
    let words = unsafe {
        launch_corners(stream, mesh, Some((corners.view_mut(), references)), boxes.view_mut(), words)?;
        let args = (num_triangles as u32, words.read_only(), extent.view_mut(), root);
        stream.launch::<sah_root>(1, args)?;
        stream.read(words.read_only())?
    };
    if words[summary::INVALID] != u32::MAX {
        return Err(mesh.error(stream));
    }
    Ok(Extent::from_keys([0, 1, 2, 3, 4, 5, 6].map(|i| words[i])))
}
