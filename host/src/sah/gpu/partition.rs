//! Partition of the references of large nodes by their split planes.

use super::large_levels::Level;
use crate::error::Result;
use crate::primitives::scan::ScanKind;
use kauri_kernels::sah::partition::{sah_count, sah_node_counts, sah_scatter, sah_sort, sah_stay};
use kauri_kernels::thread::operator::Sum;

impl Level<'_> {
    /// Partitions references into the next level's list, and counts both sides of each node.
    ///
    /// # Safety
    /// As [`map_chunks`](Self::map_chunks); the next level's list has twice as many chunks.
    pub(super) unsafe fn partition(&self) -> Result<()> {
        if self.input.options.stages.sort_by_scans {
            // SAFETY: passed on to the caller.
            return unsafe { self.partition_by_scans() };
        }
        let args = (
            self.nodes,
            self.view(self.layout.chunk_nodes).read_only(),
            self.references,
            self.boxes,
            self.input.options.clip.into(),
            self.view(self.layout.keys).read_only(),
            self.input.options.empty_space,
            self.input.corners,
            self.view(self.layout.counts),
            self.next_references,
            self.next_boxes,
        );
        // SAFETY: passed on to the caller.
        unsafe { self.launch_chunks::<sah_sort<1>, sah_sort<32>>(args) }
    }

    /// Partitions references by segmented scans of the chunks' counts.
    ///
    /// # Safety
    /// As [`partition`](Self::partition).
    unsafe fn partition_by_scans(&self) -> Result<()> {
        let (nodes, references, boxes, corners) =
            (self.nodes, self.references, self.boxes, self.input.corners);
        let chunk_nodes = self.view(self.layout.chunk_nodes).read_only();
        let keys = self.view(self.layout.keys).read_only();
        let (clip, empty_space) = (self.input.options.clip.into(), self.input.options.empty_space);
        let (counts, before) = (self.view(self.layout.chunk_counts), self.view(self.layout.before_chunks));
        let (next_references, next_boxes) = (self.next_references, self.next_boxes);
        // SAFETY: passed on to the caller.
        unsafe {
            let args = (nodes, chunk_nodes, references, boxes, clip, keys, empty_space, corners, counts);
            self.launch_chunks::<sah_count<1>, sah_count<32>>(args)?;
            let (num_chunks, heads) = (self.num_chunks() as usize, self.view(self.layout.heads).read_only());
            let counts = counts.read_only();
            for side in 0..2 {
                let from = counts.part(side * num_chunks, num_chunks);
                let to = before.part(side * num_chunks, num_chunks);
                let sums = &self.layout.count_sums;
                sums.scan::<u32, Sum>(self.stream, self.temp, from, heads, to, ScanKind::Exclusive)?;
            }
            let before = before.read_only();
            let args = (
                nodes,
                chunk_nodes,
                references,
                boxes,
                clip,
                keys,
                empty_space,
                corners,
                before,
                next_references,
                next_boxes,
            );
            self.launch_chunks::<sah_scatter<1>, sah_scatter<32>>(args)?;
            let args = (nodes, chunk_nodes, counts, before, self.view(self.layout.counts));
            self.stream.launch_items::<sah_node_counts>(nodes.len() as u64, args)
        }
    }

    /// Copies the references of nodes that try another axis to the next level's list.
    ///
    /// # Safety
    /// As [`partition`](Self::partition).
    pub(super) unsafe fn copy_retried(&self) -> Result<()> {
        let args = (
            self.nodes,
            self.view(self.layout.chunk_nodes).read_only(),
            self.references,
            self.boxes,
            self.input.options.clip.into(),
            self.view(self.layout.retries).read_only(),
            self.next_references,
            self.next_boxes,
        );
        // SAFETY: passed on to the caller.
        unsafe { self.stream.launch::<sah_stay>(self.num_chunks(), args) }
    }
}
