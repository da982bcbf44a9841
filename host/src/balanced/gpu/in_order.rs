//! The bucket index of a balanced tree: its points in in-order sequence, in buckets of equal capacity.

use crate::device::{Buffer, Gpu, Stream};
use crate::error::{Error, Result};
use crate::memory;
use crate::point::MAX_POINTS;
use crate::query::gpu::{BucketIndex, node_slots};
use cuda_std::mem::Slice;
use kauri_kernels::balanced::Tree;
use kauri_kernels::balanced::in_order::{balanced_put_in_order, bucket_len, num_slots};
use kauri_kernels::query::buckets::BucketLayout;
use kauri_kernels::query::left_balanced::{full_tree, level};
use kauri_kernels::thread::coord::Float;
use std::sync::Arc;

/// Builds the bucket index of a balanced tree, or of a subtree. `first_axis` is the split axis of its root: the columns of a point are the
/// axes from it on, cyclically. `ids` are the ids of the points; if it is empty, point `i` has id `i`. `input` has the coordinates of the
/// input points by id; `None` if no query needs them.
pub(crate) fn bucket_index<C: Float>(
    gpu: &Gpu,
    tree: Tree<'_, C>,
    first_axis: usize,
    ids: Slice<'_, u32>,
    input: Option<Arc<Buffer<C>>>,
) -> Result<BucketIndex<C>> {
    let (dims, n) = (tree.dims as usize, tree.num_nodes);
    let too_many = |_| Error::TooManyItems { what: "points", count: n.into(), max: MAX_POINTS / 16 * 15 };
    let num_slots = u32::try_from(num_slots(n)).map_err(too_many)?;
    let (bucket_len, stream) = (bucket_len(n), Stream::new(gpu)?);
    let levels = BucketLayout::equal(num_slots, bucket_len).levels;
    let mut index = BucketIndex::with_slots(gpu, num_slots as usize, dims, levels)?;
    (index.bucket_len, index.input_coords) = (bucket_len, input);
    if first_axis > 0 {
        let axis = |node: u32| ((first_axis + level(node) as usize) % dims) as u8;
        let axes = memory::collect((0..full_tree(levels)).map(axis), "axes of the nodes")?;
        index.axes = Buffer::from_slice(&stream, &axes, "axes of the nodes")?;
    }
    // SAFETY: the index has a slot for each point, and the stream is synchronized.
    unsafe {
        let slots = node_slots(&stream, dims, index.padded_coords.slice_mut(), index.ids.slice_mut())?;
        let args = (tree, first_axis as u32, ids, bucket_len, slots.coords, slots.ids);
        stream.launch_items::<balanced_put_in_order<C>>(u64::from(num_slots), args)?;
        index.build_boxes(&stream)?;
    }
    stream.synchronize()?;
    Ok(index)
}
