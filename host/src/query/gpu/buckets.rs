//! The bounding boxes and least ids of the nodes above the buckets, and their split planes.

use crate::device::Stream;
use crate::error::Result;
use crate::query::gpu::{BucketIndex, Locator};
use kauri_kernels::policy::BOXES_LEVELS;
use kauri_kernels::query::axes::Axes;
use kauri_kernels::query::buckets::{query_bucket_boxes, query_inner_boxes, query_splits};
use kauri_kernels::thread::coord::Coord;

impl<C: Coord> BucketIndex<C> {
    /// Computes boxes and least ids from the buckets up, and the split planes if the index has them.
    ///
    /// # Safety
    /// Nothing else uses the index until the stream has done the work.
    pub(crate) unsafe fn build_boxes(&mut self, stream: &Stream) -> Result<()> {
        let (dims, bucket_len, levels) = (self.dims as u32, self.bucket_len, self.levels());
        if levels == 0 {
            return Ok(());
        }
        let (boxes, least_ids) = (self.boxes.slice_mut(), self.least_ids.slice_mut());
        // SAFETY: the buffer holds all points and padding.
        let coords = unsafe { self.padded_coords.slice().part(0, self.ids.len() * self.dims) };
        let ids = self.ids.slice();
        // SAFETY: passed on to the caller.
        unsafe {
            let args = (coords, ids, dims, bucket_len, boxes, least_ids);
            stream.launch_items::<query_bucket_boxes<C>>(1 << levels, args)?;
            // The box of the root is not stored.
            let mut end = levels;
            while end > 1 {
                let root = end.saturating_sub(BOXES_LEVELS).max(1);
                stream.launch::<query_inner_boxes<C>>(1 << root, (boxes, least_ids, dims, root, end))?;
                end = root;
            }
            let axes = Axes { axes: self.axes.slice(), varying: self.varying_axes.slice(), dims };
            let Locator::Planes(splits) = &mut self.locator else { return Ok(()) };
            let splits = splits.slice_mut();
            let args = (coords, ids, axes, bucket_len, splits);
            stream.launch_items::<query_splits<C>>(splits.len() as u64, args)
        }
    }
}
