//! Chunks: the references of a large node in groups of [`SAH_CHUNK_TRIANGLES`](crate::policy::SAH_CHUNK_TRIANGLES), one block
//! each (Zhou et al. 2008).

use super::large_nodes::LargeNode;
use crate::block::scan::ScanSmem;
use crate::policy::SAH_CHUNK_TRIANGLES as THREADS;
use crate::rays::aabb::{Aabb, BOX_WORDS, from_keys};
use crate::rays::extent::EXTENT_WORDS;
use cuda_std::prelude::*;
use cuda_std::warp::WarpReductionOp;

/// A list of references to triangles.
#[derive(Clone, Copy, KernelArgs)]
pub struct ReferenceList<'a> {
    /// The triangle of each reference.
    pub triangles: Slice<'a, u32>,
    /// Bounding boxes: by reference if triangles are clipped, otherwise by triangle.
    pub boxes: Slice<'a, crate::rays::aabb::Aabb>,
    /// 1 if triangles are clipped.
    pub are_clipped: u32,
}

impl ReferenceList<'_> {
    /// Returns the bounding box of reference `i`, which is to `triangle`.
    #[inline(always)]
    pub(super) unsafe fn bounds(&self, i: usize, triangle: u32) -> Aabb {
        self.boxes.load(if self.are_clipped != 0 { i } else { triangle as usize })
    }
}

/// The memory of a list of references.
#[derive(Clone, Copy, KernelArgs)]
pub struct ReferenceListMut<'a> {
    /// The triangle of each reference.
    pub triangles: SliceMut<'a, u32>,
    /// The bounding box of each reference; empty unless triangles are clipped.
    pub boxes: SliceMut<'a, crate::rays::aabb::Aabb>,
}

impl ReferenceListMut<'_> {
    /// Writes reference `i`.
    #[inline(always)]
    pub(super) unsafe fn store(&self, i: usize, triangle: u32, bounds: Aabb) {
        self.triangles.store(i, triangle);
        if !self.boxes.is_empty() {
            // By words, which keeps the box out of local memory.
            self.boxes.store(i, Aabb::from_words(bounds.to_words()));
        }
    }
}

/// The references of all large nodes of a level.
#[derive(Clone, Copy, KernelArgs)]
pub struct LevelReferences<'a> {
    /// The nodes.
    pub nodes: Slice<'a, crate::sah::large_nodes::LargeNode>,
    /// The node of each chunk.
    pub chunk_nodes: Slice<'a, u32>,
    /// The references, chunk by chunk.
    pub list: crate::sah::chunks::ReferenceList<'a>,
}

/// The reference of a thread, and its node.
pub(super) struct Reference {
    pub(super) node: usize,
    pub(super) large: LargeNode,
    pub(super) triangle: u32,
    pub(super) bounds: Aabb,
    pub(super) exists: bool,
}

impl LevelReferences<'_> {
    #[inline(always)]
    pub(super) unsafe fn reference(&self) -> Reference {
        let chunk = thread::block_idx_x() as usize;
        let node = self.chunk_nodes.load(chunk) as usize;
        let large = self.nodes.load(node);
        let i = (chunk - large.first_chunk as usize) * THREADS + thread::thread_idx_x() as usize;
        let exists = i < large.len as usize;
        let mut reference = Reference { node, large, triangle: 0, bounds: Aabb::EMPTY, exists };
        if exists {
            let index = large.first_reference() + i;
            reference.triangle = self.list.triangles.load(index);
            reference.bounds = self.list.bounds(index, reference.triangle);
        }
        reference
    }
}

/// Warps of a block that processes a chunk.
const WARPS: usize = THREADS / 32;

/// Shared memory of a block that processes a chunk.
#[repr(C)]
pub struct ChunkSmem {
    keys: [[u32; WARPS]; EXTENT_WORDS],
    pub(super) sums: ScanSmem,
    pub(super) bases: [u32; 2],
}

/// Loads the box of a node from `keys`, which has a row of `nodes` keys for each of the six coordinates.
#[inline(always)]
pub(super) unsafe fn load_box(keys: Slice<'_, u32>, node: usize) -> Aabb {
    let row = keys.len() / BOX_WORDS;
    from_keys([0, 1, 2, 3, 4, 5].map(|i| keys.load(i * row + node)))
}

/// Reduces each key to its minimum over the block; thread `i` returns the minimum of key `i`. All threads must call.
#[inline(always)]
pub(crate) unsafe fn block_min_keys<const WORDS: usize>(
    thread_keys: [u32; WORDS],
    smem: *mut ChunkSmem,
) -> u32 {
    let (keys, thread) = (shared_field!(smem, keys), thread::thread_idx_x() as usize);
    for i in 0..WORDS {
        let min_key = warp::warp_reduce(warp::FULL_MASK, thread_keys[i], WarpReductionOp::Min);
        if warp::lane_id() == 0 {
            keys.store(i * WARPS + thread / 32, min_key);
        }
    }
    thread::sync_threads();
    let (mut min_key, mut warp) = (u32::MAX, 0);
    while thread < WORDS && warp < WARPS {
        min_key = min_key.min(keys.load(thread * WARPS + warp));
        warp += 1;
    }
    min_key
}
