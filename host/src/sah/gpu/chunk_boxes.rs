//! Bounding boxes of the references of large nodes.

use super::large_levels::Level;
use crate::error::Result;
use kauri_kernels::sah::aabb::BOX_WORDS;
use kauri_kernels::sah::chunk_boxes::{sah_boxes, sah_chunk_boxes};
use kauri_kernels::thread::operator::Min;

impl Level<'_> {
    /// Computes the bounding box of each node's references.
    ///
    /// # Safety
    /// As [`map_chunks`](Self::map_chunks).
    pub(super) unsafe fn compute_boxes(&self) -> Result<()> {
        let by_reductions = self.input.options.stages.boxes_by_reductions;
        let keys = self.view(if by_reductions { self.layout.chunk_keys } else { self.layout.keys });
        let chunk_nodes = self.view(self.layout.chunk_nodes).read_only();
        let clip = self.input.options.clip.into();
        let args = (self.nodes, chunk_nodes, self.references, self.boxes, clip, keys);
        // SAFETY: passed on to the caller.
        unsafe {
            if by_reductions {
                self.launch_chunks::<sah_chunk_boxes<1>, sah_chunk_boxes<32>>(args)?;
                self.reduce_chunk_boxes()
            } else {
                self.launch_chunks::<sah_boxes<1>, sah_boxes<32>>(args)
            }
        }
    }

    /// Reduces the boxes of chunks to those of nodes: a segmented reduction for each key.
    ///
    /// # Safety
    /// As [`map_chunks`](Self::map_chunks).
    unsafe fn reduce_chunk_boxes(&self) -> Result<()> {
        let (num_nodes, num_chunks) = (self.nodes.len(), self.num_chunks() as usize);
        let (chunk_keys, keys) = (self.view(self.layout.chunk_keys), self.view(self.layout.keys));
        let heads = self.view(self.layout.heads).read_only();
        // SAFETY: the rows have an element per chunk and per node, and there is an offset for each node.
        unsafe {
            let offsets = self.view(self.layout.offsets).part(0, num_nodes).read_only();
            (0..BOX_WORDS).try_for_each(|i| {
                let from = chunk_keys.part(i * num_chunks, num_chunks).read_only();
                let to = keys.part(i * num_nodes, num_nodes);
                let min_keys = &self.layout.min_keys;
                min_keys.reduce_by_heads::<u32, Min>(self.stream, self.temp, from, heads, offsets, to)
            })
        }
    }
}
