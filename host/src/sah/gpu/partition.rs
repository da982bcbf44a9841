//! References of large nodes: their bounding boxes, and their partition by split planes.

use super::large_levels::Level;
use crate::error::Result;
use kauri_kernels::sah::partition::{LevelSplits, sah_boxes, sah_sort, sah_stay};

impl Level<'_> {
    /// Returns the nodes with the boxes of their references.
    pub(super) fn splits(&self) -> LevelSplits<'_> {
        LevelSplits { level: self.references(), plans: self.plans(), corners: self.input.corners }
    }

    /// Computes the bounding box of each node's references, partitions the references into the next level's list, and counts
    /// both sides of each node.
    ///
    /// # Safety
    /// As [`map_chunks`](Self::map_chunks); the next level's list has twice as many chunks.
    pub(super) unsafe fn partition(&self) -> Result<()> {
        #[cfg(feature = "research")]
        if let Some(variant) = &self.variant {
            // SAFETY: passed on to the caller.
            return unsafe { self.partition_by(variant) };
        }
        let (keys, counts) = (self.view(self.layout.keys), self.view(self.layout.counts));
        // SAFETY: passed on to the caller.
        unsafe {
            if self.planes.is_none() {
                self.input.stream.launch::<sah_boxes>(self.num_chunks(), (self.references(), keys))?;
            }
            self.input.stream.launch::<sah_sort>(self.num_chunks(), (self.splits(), counts, self.next))
        }
    }

    /// Copies the references of nodes that try another axis to the next level's list.
    ///
    /// # Safety
    /// As [`partition`](Self::partition).
    pub(super) unsafe fn copy_retried(&self) -> Result<()> {
        let args = (self.references(), self.view(self.layout.retries).read_only(), self.next);
        // SAFETY: passed on to the caller.
        unsafe { self.input.stream.launch::<sah_stay>(self.num_chunks(), args) }
    }
}
