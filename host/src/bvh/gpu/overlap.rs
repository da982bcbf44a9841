//! The items whose bounding boxes intersect boxes, on a GPU.

use super::tree::GpuTree;
use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::memory;
use crate::rays::Aabb;
use crate::rays::scan_counts;
use crate::rows::Rows;
use kauri_kernels::bvh::leaf::Leaf;
use kauri_kernels::bvh::overlap::{bvh_count_overlaps, bvh_write_overlaps};

const LABEL: &str = "items that boxes intersect";

impl<L: Leaf> GpuTree<L> {
    /// Counts the items of each box. One more count is 0.
    fn count(&self, stream: &Stream, workspace: &mut Workspace, boxes: &Buffer<Aabb>) -> Result<Buffer<u64>> {
        let mut counts = Buffer::of_bytes(stream, boxes.len() + 1, 0, LABEL)?;
        self.search(stream, workspace, boxes.len(), |num_blocks, searches| {
            let args = (searches, boxes.slice(), counts.slice_mut());
            // SAFETY: there is a count for each box, and the buffers wait for the device before they are freed.
            unsafe { stream.launch::<bvh_count_overlaps<L>>(num_blocks, args) }
        })?;
        Ok(counts)
    }

    pub(in super::super) fn count_intersecting(&self, boxes: &[Aabb]) -> Result<Vec<u64>> {
        let (stream, mut workspace) = (Stream::new(&self.gpu)?, Workspace::new(&self.gpu));
        let boxes = Buffer::from_slice(&stream, boxes, "boxes")?;
        let mut counts = self.count(&stream, &mut workspace, &boxes)?.to_vec(&stream)?;
        counts.pop();
        Ok(counts)
    }

    pub(in super::super) fn intersecting(&self, boxes: &[Aabb]) -> Result<Rows> {
        let (stream, mut workspace) = (Stream::new(&self.gpu)?, Workspace::new(&self.gpu));
        let boxes = Buffer::from_slice(&stream, boxes, "boxes")?;
        let mut offsets = self.count(&stream, &mut workspace, &boxes)?;
        // SAFETY: the last count is 0, and the buffer waits for the device before it is freed.
        let num = unsafe { scan_counts(&stream, &mut workspace, offsets.slice_mut())? };
        let ids = Buffer::<u32>::uninitialized(&self.gpu, num, LABEL);
        let mut ids = ids.map_err(|error| error.of_result(num as u64, size_of::<u32>() as u64))?;
        self.search(&stream, &mut workspace, boxes.len(), |num_blocks, searches| {
            let args = (searches, boxes.slice(), offsets.slice(), ids.slice_mut());
            // SAFETY: the ids have the length that was counted, and the buffers wait for the device before they are freed.
            unsafe { stream.launch::<bvh_write_overlaps<L>>(num_blocks, args) }
        })?;
        let mut host_offsets = memory::vec_with_capacity(offsets.len(), LABEL)?;
        offsets.append_to(&stream, &mut host_offsets)?;
        Ok(Rows::new(host_offsets, ids.to_vec(&stream)?))
    }
}
