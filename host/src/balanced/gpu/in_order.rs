//! The bucket index of a balanced tree: its points in in-order sequence, in buckets of equal capacity.

use crate::device::{Buffer, Gpu, Stream};
use crate::error::{Error, Result};
use crate::memory;
use crate::point::MAX_POINTS;
use crate::query::gpu::{BucketIndex, NodesMut};
use cuda_std::mem::Slice;
use kauri_kernels::balanced::in_order::{balanced_put_in_order, bucket_len, num_slots};
use kauri_kernels::query::buckets::Cut;
use kauri_kernels::query::left_balanced::{full_tree, level};
use kauri_kernels::thread::coord::Coord;
use std::sync::Arc;

/// A balanced tree, or a subtree of one.
pub(crate) struct TreeView<'a, C> {
    pub(crate) dims: usize,
    /// One point after another; the columns of a point are the axes from `first_axis` on, cyclically.
    pub(crate) coords: Slice<'a, C>,
    /// The split axis of the root.
    pub(crate) first_axis: usize,
    /// The ids of the points; empty if point `i` has id `i`.
    pub(crate) ids: Slice<'a, u32>,
    pub(crate) medians: Slice<'a, u32>,
    pub(crate) num_nodes: usize,
}

/// Builds the bucket index of a balanced tree. `input` has the coordinates of the input points by id; `None` if no query needs them.
pub(crate) fn bucket_index<C: Coord>(
    gpu: &Gpu,
    tree: &TreeView<'_, C>,
    input: Option<Arc<Buffer<C>>>,
) -> Result<BucketIndex<C>> {
    let &TreeView { dims, coords, first_axis, ids, medians, num_nodes } = tree;
    let n = num_nodes as u32;
    let too_many =
        |_| Error::TooManyItems { what: "points", count: num_nodes as u64, max: MAX_POINTS / 16 * 15 };
    let num_slots = u32::try_from(num_slots(n)).map_err(too_many)?;
    let (bucket_len, stream) = (bucket_len(n), Stream::new(gpu)?);
    let levels = Cut::equal(num_slots, bucket_len).levels;
    let mut index = BucketIndex::with_places(gpu, num_slots as usize, dims, levels)?;
    (index.bucket_len, index.given) = (bucket_len, input);
    if first_axis > 0 {
        let mut axes = memory::vec_with_capacity(full_tree(levels) as usize, "axes of the nodes")?;
        axes.extend((0..full_tree(levels)).map(|node| ((first_axis + level(node) as usize) % dims) as u8));
        index.axes = Buffer::from_slice(&stream, &axes, "axes of the nodes")?;
    }
    // SAFETY: the index has a slot for each point, and the stream is synchronized.
    unsafe {
        let slots = NodesMut::new(&stream, dims, index.room.slice_mut(), index.ids.slice_mut())?;
        let (num_dims, first_axis) = (dims as u32, first_axis as u32);
        let args = (coords, num_dims, first_axis, ids, medians, n, bucket_len, slots.coords, slots.ids);
        stream.launch_items::<balanced_put_in_order<C>>(u64::from(num_slots), args)?;
        index.build_boxes(&stream)?;
    }
    stream.synchronize()?;
    Ok(index)
}
