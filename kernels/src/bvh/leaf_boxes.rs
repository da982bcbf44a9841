//! The boxes of a hierarchy, in the order of its leaves.

use super::leaf::{Leaf, LeafBox};
use crate::policy::{PER_ITEM_THREADS, SAH_CHUNK_TRIANGLES as THREADS};
use crate::rays::aabb::Aabb;
use crate::rays::corners::summary;
use crate::rays::extent::{EXTENT_WORDS, Extent};
use crate::rays::mesh::is_usable;
use crate::sah::chunks::{ChunkSmem, block_min_keys};
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// True for a box of usable coordinates, of which no low one exceeds the high one.
#[inline(always)]
pub fn is_valid(of: Aabb) -> bool {
    let [a, b, c, d, e, f] = of.to_words().map(is_usable);
    a && b && c && d && e && f && !of.is_empty()
}

/// Writes each box as a leaf has it, and the [summary] of all; one thread per box. Invalid boxes are the origin.
#[kernel(family = "bvh", block = THREADS, shared = ChunkSmem)]
pub unsafe fn bvh_boxes(input: Slice<Aabb>, boxes: SliceMut<Aabb>, found: SliceMut<u32>) {
    let i = thread::index_1d_u64() as usize;
    let mut extent = Extent::EMPTY;
    if i < input.len() {
        let bounds = LeafBox::new(0, input.load(i)).bounds();
        let bounds = if is_valid(bounds) {
            bounds
        } else {
            found.atomic_min(summary::INVALID, 0, Ordering::Relaxed, Scope::Device);
            Aabb::of_point([0.0; 3])
        };
        extent = Extent::of(bounds);
        boxes.store(i, Aabb::from_words(bounds.to_words()));
    }
    let least = block_min_keys(extent.to_keys(), shared_mem::<ChunkSmem>());
    let word = thread::thread_idx_x() as usize;
    if word < EXTENT_WORDS {
        found.atomic_min(word, least, Ordering::Relaxed, Scope::Device);
    }
}

/// Writes the boxes of all leaves, given their ids; one thread per box.
#[kernel(family = "bvh", block = PER_ITEM_THREADS)]
pub unsafe fn bvh_leaf_boxes(ids: Slice<u32>, boxes: Slice<Aabb>, leaves: SliceMut<LeafBox>) {
    let Some(i) = own_item(leaves.len()) else { return };
    let id = ids.load(i);
    leaves.store(i, LeafBox::new(id, boxes.load(id as usize)));
}

/// Writes the boxes of all leaves at their places in another hierarchy; one thread per box.
#[kernel(family = "bvh", block = PER_ITEM_THREADS)]
pub unsafe fn bvh_move_boxes(old: Slice<LeafBox>, boxes: Slice<Aabb>, leaves: SliceMut<LeafBox>) {
    let Some(i) = own_item(leaves.len()) else { return };
    let id = old.load(i).id();
    leaves.store(i, LeafBox::new(id, boxes.load(id as usize)));
}
