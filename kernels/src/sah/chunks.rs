//! Chunks: the references of a large node in groups of [`SAH_CHUNK_TRIANGLES`](crate::policy::SAH_CHUNK_TRIANGLES), a block
//! each.
//!
//! Chunks follow Zhou et al. 2008. The kernels of [`chunk_boxes`](super::chunk_boxes) and [`partition`](super::partition)
//! come in the two variants of Chang, Seo, Ihm: blocks combine their results by segmented scans and reductions, or by
//! atomics on the node; threads of a block exchange values through shared memory, or by shuffles (`LANES` 1 or 32).

use super::aabb::{Aabb, BOX_WORDS};
use super::extent::EXTENT_WORDS;
use super::large_nodes::LargeNode;
use crate::block::scan::ScanSmem;
use crate::policy::{PER_ITEM_THREADS, SAH_CHUNK_TRIANGLES as THREADS};
use crate::thread::search::partition_point;
use cuda_std::prelude::*;

/// Maps chunks to nodes: writes the node of each chunk, a head flag for the first chunk of each node, and the first chunk of
/// each node as offsets. Also resets the accumulators of the level: keys to the maximum, counts and totals to zero. One
/// thread per chunk; there are at least as many chunks as nodes.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_chunk_nodes(
    nodes: Slice<LargeNode>,
    of_chunks: SliceMut<u32>,
    heads: SliceMut<u8>,
    offsets: SliceMut<u64>,
    keys: SliceMut<u32>,
    counts: SliceMut<u32>,
    left: SliceMut<u64>,
) {
    let chunk = thread::index_1d_u64() as usize;
    if chunk >= of_chunks.len() {
        return;
    }
    let node = partition_point(0, nodes.len(), |node| nodes.load(node).first_chunk as usize <= chunk) - 1;
    let is_first = nodes.load(node).first_chunk as usize == chunk;
    of_chunks.store(chunk, node as u32);
    heads.store(chunk, is_first.into());
    if is_first {
        offsets.store(node, chunk as u64);
    }
    if chunk + 1 == of_chunks.len() {
        offsets.store(nodes.len(), of_chunks.len() as u64);
    }
    if chunk < nodes.len() {
        let mut i = 0;
        while i < BOX_WORDS {
            keys.store(i * nodes.len() + chunk, u32::MAX);
            i += 1;
        }
        counts.store(chunk, 0);
        counts.store(nodes.len() + chunk, 0);
    }
    if chunk == 0 {
        let mut i = 0;
        while i < left.len() {
            left.store(i, 0);
            i += 1;
        }
    }
}

/// The references of all large nodes of a level.
#[derive(Clone, Copy)]
pub(super) struct LevelReferences<'a> {
    pub(super) nodes: Slice<'a, LargeNode>,
    pub(super) chunk_nodes: Slice<'a, u32>,
    pub(super) references: Slice<'a, u32>,
    /// Boxes by triangle; by reference if triangles are clipped.
    pub(super) boxes: Slice<'a, Aabb>,
    pub(super) are_clipped: bool,
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
            reference.triangle = self.references.load(index);
            reference.bounds =
                self.boxes.load(if self.are_clipped { index } else { reference.triangle as usize });
        }
        reference
    }
}

/// Shared memory of a block that processes a chunk.
#[repr(C)]
pub struct ChunkSmem {
    pub(super) keys: [[u32; THREADS]; EXTENT_WORDS],
    pub(super) sums: ScanSmem,
    pub(super) bases: [u32; 2],
}
