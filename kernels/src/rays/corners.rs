//! The corners of a mesh's triangles in the layout of rays and builds: gathered, validated, with the extent of the scene.

use super::aabb::Aabb;
use super::extent::{EXTENT_WORDS, Extent};
use super::mesh::MeshView;
use super::triangle::Corners;
use crate::policy::SAH_CHUNK_TRIANGLES as THREADS;
use crate::sah::chunks::{ChunkSmem, block_min_keys};
use cuda_std::prelude::*;

/// Layout of the mesh summary, whose words start at the maximum: the keys of the scene's extent, then a flag.
pub mod summary {
    /// 0 if a corner is invalid: its vertex index is out of range, or a coordinate is not finite or too large.
    pub const INVALID: usize = super::EXTENT_WORDS;
    /// Number of words.
    pub const WORDS: usize = INVALID + 1;
}

/// Writes the bounding box of each triangle, its corners unless `corners` is empty, its id unless `listed` is empty, and the [summary] of
/// the mesh; one thread per triangle. The corners of invalid triangles are the origin.
#[kernel(family = "rays", block = THREADS, shared = ChunkSmem)]
pub unsafe fn rays_corners(
    mesh: MeshView<'_>,
    corners: SliceMut<Corners>,
    boxes: SliceMut<Aabb>,
    listed: SliceMut<u32>,
    found: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    let mut extent = Extent::EMPTY;
    if i < mesh.len() {
        let packed = mesh.corners(i).unwrap_or_else(|| {
            found.atomic_min(summary::INVALID, 0, Ordering::Relaxed, Scope::Device);
            Corners::ORIGIN
        });
        let bounds = Aabb::of_corners(packed.positions());
        extent = Extent::of(bounds);
        if !corners.is_empty() {
            corners.store(i, packed);
        }
        boxes.store(i, Aabb::from_words(bounds.to_words()));
        if !listed.is_empty() {
            listed.store(i, i as u32);
        }
    }
    let least = block_min_keys(extent.to_keys(), shared_mem::<ChunkSmem>());
    let word = thread::thread_idx_x() as usize;
    if word < EXTENT_WORDS {
        found.atomic_min(word, least, Ordering::Relaxed, Scope::Device);
    }
}
