//! The items whose bounding boxes intersect boxes, on a GPU.

use super::tree::GpuTree;
use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::rays::Aabb;
use crate::rays::scan_counts;
use crate::rows::Rows;
use kauri_kernels::bvh::leaf::Leaf;
use kauri_kernels::bvh::overlap::{bvh_count_overlaps, bvh_write_overlaps};

const LABEL: &str = "items that boxes intersect";

impl<L: Leaf> GpuTree<L> {
    /// Counts the items of each box. There is a count for each, at least.
    pub(in super::super) fn count_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        boxes: &Buffer<Aabb>,
        counts: &mut Buffer<u64>,
    ) -> Result<()> {
        self.search(stream, workspace, boxes.len(), |num_blocks, searches| {
            let args = (searches, boxes.slice(), counts.slice_mut());
            // SAFETY: there is a count for each box, and the buffers wait for the device before they are freed.
            unsafe { stream.launch::<bvh_count_overlaps<L>>(num_blocks, args) }
        })
    }

    /// Returns the offsets of the rows of all boxes, and the ids of their items.
    pub(in super::super) fn intersecting_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        boxes: &Buffer<Aabb>,
    ) -> Result<(Buffer<u64>, Buffer<u32>)> {
        // The last count is 0, so that its offset is the number of ids.
        let mut offsets = Buffer::of_bytes(stream, boxes.len() + 1, 0, LABEL)?;
        self.count_on(stream, workspace, boxes, &mut offsets)?;
        // SAFETY: the last count is 0, and the buffer waits for the device before it is freed.
        let num = unsafe { scan_counts(stream, workspace, offsets.slice_mut())? };
        let ids = Buffer::<u32>::uninitialized(&self.gpu, num, LABEL);
        let mut ids = ids.map_err(|error| error.of_result(num as u64, size_of::<u32>() as u64))?;
        self.search(stream, workspace, boxes.len(), |num_blocks, searches| {
            let args = (searches, boxes.slice(), offsets.slice(), ids.slice_mut());
            // SAFETY: there are as many ids as counted, and the buffers wait for the device before they are freed.
            unsafe { stream.launch::<bvh_write_overlaps<L>>(num_blocks, args) }
        })?;
        Ok((offsets, ids))
    }

    pub(in super::super) fn count_intersecting(&self, boxes: &[Aabb]) -> Result<Vec<u64>> {
        let (stream, mut workspace) = (Stream::new(&self.gpu)?, Workspace::new(&self.gpu));
        let boxes = Buffer::from_slice(&stream, boxes, "boxes")?;
        let mut counts = Buffer::uninitialized(&self.gpu, boxes.len(), LABEL)?;
        self.count_on(&stream, &mut workspace, &boxes, &mut counts)?;
        counts.to_vec(&stream)
    }

    pub(in super::super) fn intersecting(&self, boxes: &[Aabb]) -> Result<Rows> {
        let (stream, mut workspace) = (Stream::new(&self.gpu)?, Workspace::new(&self.gpu));
        let boxes = Buffer::from_slice(&stream, boxes, "boxes")?;
        let (offsets, ids) = self.intersecting_on(&stream, &mut workspace, &boxes)?;
        Ok(Rows::new(offsets.to_vec(&stream)?, ids.to_vec(&stream)?))
    }
}
