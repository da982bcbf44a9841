//! The boxes of the nodes above the buckets and their least ids, from the buckets up, and where these nodes split, unless cells tell that.

use super::GpuTree;
use crate::device::Stream;
use crate::error::Result;
use kauri_kernels::kdtree::buckets::{kdtree_bucket_boxes, kdtree_inner_boxes, kdtree_splits};
use kauri_kernels::policy::BOXES_LEVELS;
use kauri_kernels::thread::coord::Coord;

/// Makes boxes, least ids and splits of the points.
///
/// # Safety
/// Nothing else uses the tree until the stream has done the work.
pub(super) unsafe fn boxes<C: Coord>(stream: &Stream, tree: &mut GpuTree<C>) -> Result<()> {
    let (dims, bucket_len, levels) = (tree.dims as u32, tree.bucket_len, tree.levels());
    if levels == 0 {
        return Ok(());
    }
    let (boxes, splits) = (tree.boxes.slice_mut(), tree.splits.slice_mut());
    let least_ids = tree.least_ids.slice_mut();
    // SAFETY: the buffer has room for all points, and more behind them.
    let coords = unsafe { tree.room.slice().part(0, tree.ids.len() * tree.dims) };
    let ids = tree.ids.slice();
    // SAFETY: passed on to the caller.
    unsafe {
        let args = (coords, ids, dims, bucket_len, boxes, least_ids);
        stream.launch_items::<kdtree_bucket_boxes<C>>(1 << levels, args)?;
        // The root has no parent, and its box is not needed.
        let mut end = levels;
        while end > 1 {
            let root = end.saturating_sub(BOXES_LEVELS).max(1);
            stream.launch::<kdtree_inner_boxes<C>>(1 << root, (boxes, least_ids, dims, root, end))?;
            end = root;
        }
        if tree.cells.is_some() {
            return Ok(());
        }
        let args = (coords, ids, tree.axes.slice(), dims, bucket_len, splits);
        stream.launch_items::<kdtree_splits<C>>(splits.len() as u64, args)
    }
}
