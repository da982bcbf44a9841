//! The bucket index of a balanced tree: its points in order, in buckets of one length.

use crate::device::{Buffer, Gpu, Stream};
use crate::error::{Error, Result};
use crate::memory;
use crate::point::MAX_POINTS;
use crate::query::gpu::{BucketIndex, NodesMut};
use cuda_std::mem::Slice;
use kauri_kernels::balanced::in_order::{balanced_put_in_order, bucket_len, num_places};
use kauri_kernels::query::buckets::Cut;
use kauri_kernels::query::left_balanced::{full_tree, level};
use kauri_kernels::thread::coord::Coord;
use std::sync::Arc;

/// A balanced tree, or a subtree of one.
pub(crate) struct Balanced<'a, C> {
    pub(crate) dims: usize,
    /// Point after point, of each the axes from `first_axis` on, then those before it.
    pub(crate) coords: Slice<'a, C>,
    /// The axis that the root splits on.
    pub(crate) first_axis: usize,
    /// The ids of the points, unless their numbers are.
    pub(crate) names: Slice<'a, u32>,
    pub(crate) medians: Slice<'a, u32>,
    pub(crate) num_nodes: usize,
}

/// Builds the bucket index of a balanced tree. `given` has the coordinates of the input points by id, unless the tree has all of them.
pub(crate) fn bucket_index<C: Coord>(
    gpu: &Gpu,
    tree: &Balanced<'_, C>,
    given: Option<Arc<Buffer<C>>>,
) -> Result<BucketIndex<C>> {
    let &Balanced { dims, coords, first_axis, names, medians, num_nodes } = tree;
    let n = num_nodes as u32;
    let too_many =
        |_| Error::TooManyItems { what: "points", count: num_nodes as u64, max: MAX_POINTS / 16 * 15 };
    let num_places = u32::try_from(num_places(n)).map_err(too_many)?;
    let (bucket_len, stream) = (bucket_len(n), Stream::new(gpu)?);
    let levels = Cut::equal(num_places, bucket_len).levels;
    let mut index = BucketIndex::with_places(gpu, num_places as usize, dims, levels)?;
    (index.bucket_len, index.given) = (bucket_len, given);
    if first_axis > 0 {
        let mut axes = memory::vec_with_capacity(full_tree(levels) as usize, "axes of the nodes")?;
        axes.extend((0..full_tree(levels)).map(|node| ((first_axis + level(node) as usize) % dims) as u8));
        index.axes = Buffer::from_slice(&stream, &axes, "axes of the nodes")?;
    }
    // SAFETY: there is a place for each point, and all work is waited for.
    unsafe {
        let places = NodesMut::new(&stream, dims, index.room.slice_mut(), index.ids.slice_mut())?;
        let (num_dims, first_axis) = (dims as u32, first_axis as u32);
        let args = (coords, num_dims, first_axis, names, medians, n, bucket_len, places.coords, places.ids);
        stream.launch_items::<balanced_put_in_order<C>>(u64::from(num_places), args)?;
        index.build_boxes(&stream)?;
    }
    stream.synchronize()?;
    Ok(index)
}
