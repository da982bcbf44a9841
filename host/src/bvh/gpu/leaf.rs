//! The triangles of all leaves.

use crate::device::Stream;
use crate::error::Result;
use crate::mesh::DeviceMesh;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::bvh::leaf::{LeafTriangle, bvh_leaf_triangles, bvh_move_triangles};

/// Writes the triangles of leaves, given their ids.
///
/// # Safety
/// There is an id for each triangle. Nothing else uses the memory until the stream has done the work.
pub(super) unsafe fn write(
    stream: &Stream,
    ids: Slice<'_, u32>,
    mesh: DeviceMesh<'_>,
    to: SliceMut<'_, LeafTriangle>,
) -> Result<()> {
    // SAFETY: passed on to the caller.
    unsafe { stream.launch_items::<bvh_leaf_triangles>(to.len() as u64, (ids, mesh.view(), to)) }
}

/// Writes the triangles of leaves at their places in another hierarchy.
///
/// # Safety
/// Both have as many triangles as the mesh. Nothing else uses the memory until the stream has done the work.
pub(super) unsafe fn write_moved(
    stream: &Stream,
    old: Slice<'_, LeafTriangle>,
    mesh: DeviceMesh<'_>,
    to: SliceMut<'_, LeafTriangle>,
) -> Result<()> {
    // SAFETY: passed on to the caller.
    unsafe { stream.launch_items::<bvh_move_triangles>(to.len() as u64, (old, mesh.view(), to)) }
}
