//! The bucket index of a balanced tree: its points in in-order sequence, in buckets of equal capacity.

use crate::device::{Buffer, Gpu, Stream};
use crate::error::{Error, Result};
use crate::memory;
use crate::point::MAX_POINTS;
use crate::primitives::pairs::empty_view;
use crate::query::gpu::{BucketIndex, Locator, node_slots};
use cuda_std::mem::Slice;
use kauri_kernels::balanced::Tree;
use kauri_kernels::balanced::in_order::{balanced_put_in_order, bucket_len, num_slots};
use kauri_kernels::query::buckets::BucketLayout;
use kauri_kernels::query::left_balanced::{full_tree, level};
use kauri_kernels::thread::coord::Float;
use std::sync::Arc;

/// Builds the bucket index of a balanced tree, or of a subtree. `first_axis` is the split axis of its root: the columns of a point are the
/// axes from it on, cyclically. `ids` are the ids of the points; if it is empty, point `i` has id `i`. `input` has the coordinates of the
/// input points by id; `None` if no query needs them. The stream waits for the tree.
pub(crate) fn bucket_index<C: Float>(
    stream: &Stream,
    tree: Tree<'_, C>,
    first_axis: usize,
    ids: Slice<'_, u32>,
    input: Option<Arc<Buffer<C>>>,
) -> Result<BucketIndex<C>> {
    let mut index = allocate(stream.gpu(), tree.dims as usize, tree.num_nodes)?;
    index.input_coords = input;
    if first_axis > 0 {
        let axis = |node: u32| ((first_axis + level(node) as usize) % index.dims) as u8;
        let axes = memory::collect((0..full_tree(index.levels())).map(axis), "axes of the nodes")?;
        index.axes = Buffer::from_slice(stream, &axes, "axes of the nodes")?;
    }
    // SAFETY: nothing else uses the index, and the stream is synchronized.
    unsafe { fill(&mut index, stream, tree, first_axis, ids)? };
    stream.synchronize()?;
    Ok(index)
}

/// Builds the bucket index of a tree of another number of nodes or over other points, in the memory of `index` if it fits exactly. Does not
/// wait for the host.
pub(super) fn rebuild<C: Float>(
    index: BucketIndex<C>,
    stream: &Stream,
    tree: Tree<'_, C>,
    input: Arc<Buffer<C>>,
) -> Result<BucketIndex<C>> {
    let fits =
        index.ids.len() as u64 == num_slots(tree.num_nodes) && index.bucket_len == bucket_len(tree.num_nodes);
    let mut index = if fits { index } else { allocate(stream.gpu(), index.dims, tree.num_nodes)? };
    (index.input_coords, index.built_on) = (Some(input), Some(stream.clone()));
    // SAFETY: the tree is being rebuilt, so nothing else uses its index; buffers wait for the device before they are freed.
    unsafe { fill(&mut index, stream, tree, 0, empty_view().read_only())? };
    Ok(index)
}

/// Allocates the index of a tree of `num_nodes` nodes.
fn allocate<C: Float>(gpu: &Gpu, dims: usize, num_nodes: u32) -> Result<BucketIndex<C>> {
    let too_many =
        |_| Error::TooManyItems { what: "points", count: num_nodes.into(), max: MAX_POINTS / 16 * 15 };
    let (num_slots, bucket_len) =
        (u32::try_from(num_slots(num_nodes)).map_err(too_many)?, bucket_len(num_nodes));
    let levels = BucketLayout::equal(num_slots, bucket_len).levels;
    let mut index =
        BucketIndex::with_slots(gpu, num_slots as usize, dims, levels, Locator::planes(gpu, levels)?)?;
    index.bucket_len = bucket_len;
    Ok(index)
}

/// Writes the points of a tree to its index, and computes the boxes.
///
/// # Safety
/// The index was allocated for the number of nodes. Nothing else uses it until the stream has done the work.
unsafe fn fill<C: Float>(
    index: &mut BucketIndex<C>,
    stream: &Stream,
    tree: Tree<'_, C>,
    first_axis: usize,
    ids: Slice<'_, u32>,
) -> Result<()> {
    let (num_slots, bucket_len) = (index.ids.len() as u64, index.bucket_len);
    // SAFETY: passed on to the caller; the index has a slot for each point.
    unsafe {
        let slots = node_slots(stream, index.dims, index.padded_coords.slice_mut(), index.ids.slice_mut())?;
        let args = (tree, first_axis as u32, ids, bucket_len, slots.coords, slots.ids);
        stream.launch_items::<balanced_put_in_order<C>>(num_slots, args)?;
        index.build_boxes(stream)
    }
}
