//! The root of a tree: the extent of the scene.

use super::large_nodes::LargeNode;
use crate::policy::PER_ITEM_THREADS;
use crate::rays::extent::Extent;
use cuda_std::prelude::*;

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
    let scene = Extent::found(found);
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
