//! Chunks: the references of a large node in groups of [`SAH_CHUNK_TRIANGLES`](crate::policy::SAH_CHUNK_TRIANGLES), a block
//! each.
//!
//! Chunks follow Zhou et al. 2008. The kernels of [`chunk_boxes`](super::chunk_boxes) and [`partition`](super::partition)
//! come in the two variants of Chang, Seo, Ihm: blocks combine their results by segmented scans and reductions, or by
//! atomics on the node; threads of a block exchange values through shared memory, or by shuffles (`LANES` 1 or 32).

use super::aabb::Aabb;
use super::extent::EXTENT_WORDS;
use super::large_nodes::LargeNode;
use crate::block::scan::ScanSmem;
use crate::policy::SAH_CHUNK_TRIANGLES as THREADS;
use cuda_std::prelude::*;

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
