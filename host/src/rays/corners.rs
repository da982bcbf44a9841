//! Corners, bounding boxes and extent of a mesh: the first stage of every build and refit.

use crate::device::Stream;
use crate::error::Result;
use crate::mesh::DeviceMesh;
use crate::primitives::pairs::empty_view;
use cuda_std::mem::SliceMut;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::rays::corners::rays_corners;
use kauri_kernels::rays::triangle::Corners;

/// Writes the bounding boxes of triangles and the [summary](kauri_kernels::rays::corners::summary) of the mesh; with `listed`, also the corners of
/// triangles and their ids.
///
/// # Safety
/// All lists but the summary have an element for each triangle, or the ids none. Nothing else uses them until the stream has done the work.
pub(crate) unsafe fn launch_corners(
    stream: &Stream,
    mesh: DeviceMesh<'_>,
    listed: Option<(SliceMut<'_, Corners>, SliceMut<'_, u32>)>,
    boxes: SliceMut<'_, Aabb>,
    found: SliceMut<'_, u32>,
) -> Result<()> {
    let (corners, ids) = listed.unwrap_or((empty_view(), empty_view()));
    // SAFETY: passed on to the caller.
    unsafe {
        stream.fill_bytes(found, 0xFF)?;
        let args = (mesh.view(), corners, boxes, ids, found);
        stream.launch_items::<rays_corners>(mesh.len() as u64, args)
    }
}
