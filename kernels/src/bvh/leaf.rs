//! The triangles of a hierarchy, in the order of its leaves.

use crate::plain::plain;
use crate::policy::PER_ITEM_THREADS;
use crate::rays::mesh::MeshView;
use crate::rays::triangle::Corners;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// A triangle of a leaf: its corners, of 12 bytes each, and its id behind the first one.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafTriangle([[u32; 4]; 3]);

plain! { LeafTriangle { [[u32; 4]; 3] } }

impl LeafTriangle {
    /// Packs a triangle.
    #[inline(always)]
    pub fn new(id: u32, corners: Corners) -> Self {
        let mut words = corners.positions().map(|[x, y, z]| [x.to_bits(), y.to_bits(), z.to_bits(), 0]);
        words[0][3] = id;
        Self(words)
    }

    /// Returns a triangle of a mesh; one at the origin in place of an invalid one.
    #[inline(always)]
    unsafe fn of(mesh: MeshView<'_>, id: u32) -> Self {
        Self::new(id, mesh.corners(id as usize).unwrap_or(Corners::ORIGIN))
    }

    /// The id of the triangle.
    #[inline(always)]
    pub fn id(self) -> u32 {
        self.0[0][3]
    }

    /// The corners of the triangle.
    #[inline(always)]
    pub fn corners(self) -> [[f32; 3]; 3] {
        self.0.map(|[x, y, z, _]| [f32::from_bits(x), f32::from_bits(y), f32::from_bits(z)])
    }
}

/// Writes the triangles of all leaves, given their ids; one thread per triangle.
#[kernel(family = "bvh", block = PER_ITEM_THREADS)]
pub unsafe fn bvh_leaf_triangles(ids: Slice<u32>, mesh: MeshView<'_>, leaves: SliceMut<LeafTriangle>) {
    let Some(i) = own_item(leaves.len()) else { return };
    leaves.store(i, LeafTriangle::of(mesh, ids.load(i)));
}

/// Writes the triangles of all leaves at their places in another hierarchy; one thread per triangle.
#[kernel(family = "bvh", block = PER_ITEM_THREADS)]
pub unsafe fn bvh_move_triangles(
    old: Slice<LeafTriangle>,
    mesh: MeshView<'_>,
    leaves: SliceMut<LeafTriangle>,
) {
    let Some(i) = own_item(leaves.len()) else { return };
    leaves.store(i, LeafTriangle::of(mesh, old.load(i).id()));
}
