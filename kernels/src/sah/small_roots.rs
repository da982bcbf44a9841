//! Small roots: the second stage's input, and its references in the order of triangle ids.

use super::chunks::{ReferenceList, ReferenceListMut};
use super::large_nodes::{CHUNK_TRIANGLES, SMALL_TRIANGLES};
use super::preorder::SubtreeSize;
use crate::plain::plain;
use crate::policy::PER_ITEM_THREADS;
use crate::rays::aabb::Aabb;
use crate::thread::items::{own_item, strided};
use cuda_std::prelude::*;

/// A root of the second stage: a node with at most 64 references, a bit each, or an overflow leaf, which has more.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SmallRoot {
    /// Bounding box.
    pub bounds: Aabb,
    /// Depth below the tree's root.
    pub depth: u32,
    /// Index of its first reference on the list of all small roots.
    pub begin: u32,
    /// Number of references.
    pub len: u32,
    /// Chunk from which its references are copied: on the list of the current level, or of the next.
    pub source_chunk: u32,
    /// 1 if the source is the list of the current level.
    pub from_current_level: u32,
}

plain! { SmallRoot { Aabb, u32, u32, u32, u32, u32 } }

/// Small roots and their references.
#[derive(Clone, Copy, KernelArgs)]
pub struct SmallRoots<'a> {
    /// The roots.
    pub roots: Slice<'a, crate::sah::small_roots::SmallRoot>,
    /// The references of all roots.
    pub list: crate::sah::chunks::ReferenceList<'a>,
}

/// Copies the references of small roots, and their boxes if triangles are clipped, to the list of all small roots; one warp
/// per root.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_keep(
    roots: Slice<SmallRoot>,
    current_level: ReferenceList<'_>,
    next_level: ReferenceList<'_>,
    kept: ReferenceListMut<'_>,
) {
    let root = thread::index_1d_u64() as usize / 32;
    if root >= roots.len() {
        return;
    }
    let root = roots.load(root);
    let from = root.source_chunk as usize * CHUNK_TRIANGLES as usize;
    let source = if root.from_current_level != 0 { current_level } else { next_level };
    for i in strided(warp::lane_id(), root.len, 32) {
        let (at, to) = (from + i as usize, (root.begin + i) as usize);
        kept.triangles.store(to, source.triangles.load(at));
        if !kept.boxes.is_empty() {
            kept.boxes.store(to, source.boxes.load(at));
        }
    }
}

/// Writes the references of overflow leaves; one block per small root.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_long_leaves(
    roots: Slice<SmallRoot>,
    kept: Slice<u32>,
    positions: Slice<SubtreeSize>,
    references: SliceMut<u32>,
) {
    let number = thread::block_idx_x() as usize;
    let (root, to) = (roots.load(number), positions.load(number).references);
    let mut i = thread::thread_idx_x();
    while root.len > SMALL_TRIANGLES && i < root.len {
        references.store((to + i) as usize, kept.load((root.begin + i) as usize));
        i += PER_ITEM_THREADS as u32;
    }
}

/// Writes the offsets of the references of all small roots; one thread per offset.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_small_offsets(roots: Slice<SmallRoot>, num_kept: u32, offsets: SliceMut<u64>) {
    let Some(i) = own_item(offsets.len()) else { return };
    offsets.store(i, if i < roots.len() { roots.load(i).begin } else { num_kept }.into());
}
