//! The triangles of a hierarchy, in the order of its leaves.

use super::leaf::{Leaf, LeafTriangle};
use crate::policy::PER_ITEM_THREADS;
use crate::rays::mesh::MeshView;
use crate::rays::triangle::Corners;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Returns a triangle of a mesh; one at the origin in place of an invalid one.
#[inline(always)]
unsafe fn triangle(mesh: MeshView<'_>, id: u32) -> LeafTriangle {
    LeafTriangle::new(id, mesh.corners(id as usize).unwrap_or(Corners::ORIGIN))
}

/// Writes the triangles of all leaves, given their ids; one thread per triangle.
#[kernel(family = "bvh", block = PER_ITEM_THREADS)]
pub unsafe fn bvh_leaf_triangles(ids: Slice<u32>, mesh: MeshView<'_>, leaves: SliceMut<LeafTriangle>) {
    let Some(i) = own_item(leaves.len()) else { return };
    leaves.store(i, triangle(mesh, ids.load(i)));
}

/// Writes the triangles of all leaves at their places in another hierarchy; one thread per triangle.
#[kernel(family = "bvh", block = PER_ITEM_THREADS)]
pub unsafe fn bvh_move_triangles(
    old: Slice<LeafTriangle>,
    mesh: MeshView<'_>,
    leaves: SliceMut<LeafTriangle>,
) {
    let Some(i) = own_item(leaves.len()) else { return };
    leaves.store(i, triangle(mesh, old.load(i).id()));
}
