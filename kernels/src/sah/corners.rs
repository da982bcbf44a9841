//! The corners of a mesh's triangles in the layout of rays and builds: gathered, validated, with the extent of the scene.

use super::aabb::Aabb;
use super::chunks::{ChunkSmem, block_min_keys};
use super::extent::{EXTENT_WORDS, Extent};
use super::large_nodes::LargeNode;
use super::triangle::Corners;
use crate::policy::{PER_ITEM_THREADS, SAH_CHUNK_TRIANGLES as THREADS};
use crate::thread::coord::Float;
use cuda_std::prelude::*;

/// Layout of the mesh summary, whose words start at the maximum: the keys of the scene's extent, then a flag.
pub mod summary {
    /// 0 if a corner is invalid: its vertex index is out of range, or a coordinate is not finite or too large.
    pub const INVALID: usize = super::EXTENT_WORDS;
    /// Number of words.
    pub const WORDS: usize = INVALID + 1;
}

/// Writes the corners and the bounding box of each triangle, its id unless `listed` is empty, and the [summary] of
/// the mesh; one thread per triangle. Invalid corners are replaced by the origin.
#[kernel(family = "sah", block = THREADS, shared = ChunkSmem)]
pub unsafe fn sah_corners(
    vertices: Slice<f32>,
    triangles: Slice<u32>,
    corners: SliceMut<Corners>,
    boxes: SliceMut<Aabb>,
    listed: SliceMut<u32>,
    found: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    let mut extent = Extent::EMPTY;
    if i < corners.len() {
        let corner = |k: usize| {
            let vertex = triangles.load(3 * i + k) as usize;
            if vertex < vertices.len() / 3 {
                let at = |axis: usize| vertices.load(3 * vertex + axis);
                let (x, y, z) = (at(0), at(1), at(2));
                if is_usable(x) && is_usable(y) && is_usable(z) {
                    return [x, y, z];
                }
            }
            found.atomic_min(summary::INVALID, 0, Ordering::Relaxed, Scope::Device);
            [0.0; 3]
        };
        let packed = Corners::new([corner(0), corner(1), corner(2)]);
        let bounds = Aabb::of_corners(packed.positions());
        extent = Extent::of(bounds);
        corners.store(i, packed);
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

/// True for a coordinate that is finite and small enough for areas not to overflow.
#[inline(always)]
fn is_usable(x: f32) -> bool {
    x.abs() <= <f32 as Float>::LIMIT
}

/// Writes the extent of the scene and, unless `root` is empty, the root node; one thread.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_root(
    num_triangles: u32,
    found: Slice<u32>,
    extent: SliceMut<Extent>,
    root: SliceMut<LargeNode>,
) {
    if thread::index_1d_u64() != 0 {
        return;
    }
    let scene = Extent::from_keys([0, 1, 2, 3, 4, 5, 6].map(|i| found.load(i)));
    extent.store(0, scene);
    if !root.is_empty() {
        root.store(
            0,
            LargeNode {
                bounds: scene.bounds,
                depth: 0,
                tried_axes: 0,
                len: num_triangles,
                first_chunk: 0,
                begin_chunk: 0,
            },
        );
    }
}
