//! Balanced trees as walks see them: points in order, in buckets.

use super::{GpuTree, NodesMut, boxes};
use crate::device::{Buffer, Gpu, Stream};
use crate::error::{Error, Result};
use crate::kdtree::MAX_POINTS;
use crate::memory;
use cuda_std::mem::Slice;
use kauri_kernels::kdtree::balanced::in_order::{bucket_len, kdtree_put_in_order, num_places};
use kauri_kernels::kdtree::buckets::Cut;
use kauri_kernels::kdtree::left_balanced::{full_tree, level};
use kauri_kernels::thread::coord::Coord;
use std::sync::Arc;

/// A balanced tree, or a subtree of one.
pub(in crate::kdtree) struct Balanced<'a, C> {
    pub(in crate::kdtree) dims: usize,
    /// Point after point, of each the axes from `first_axis` on, then those before it.
    pub(in crate::kdtree) coords: Slice<'a, C>,
    /// The axis that the root splits on.
    pub(in crate::kdtree) first_axis: usize,
    /// The ids of the points, unless their numbers are.
    pub(in crate::kdtree) names: Slice<'a, u32>,
    pub(in crate::kdtree) medians: Slice<'a, u32>,
    pub(in crate::kdtree) num_nodes: usize,
}

impl<C: Coord> GpuTree<C> {
    /// What answers queries to a balanced tree, of points that were given in the order of their ids.
    pub(in crate::kdtree) fn of_balanced(
        gpu: &Gpu,
        tree: &Balanced<'_, C>,
        given: Option<Arc<Buffer<C>>>,
    ) -> Result<Self> {
        let &Balanced { dims, coords, first_axis, names, medians, num_nodes } = tree;
        let n = num_nodes as u32;
        let too_many = |_| Error::TooManyPoints { count: num_nodes as u64, max: MAX_POINTS / 16 * 15 };
        let num_places = u32::try_from(num_places(n)).map_err(too_many)?;
        let (bucket_len, stream) = (bucket_len(n), Stream::new(gpu)?);
        let levels = Cut::equal(num_places, bucket_len).levels;
        let mut walked = Self::with_places(gpu, num_places as usize, dims, levels)?;
        (walked.bucket_len, walked.given) = (bucket_len, given);
        if first_axis > 0 {
            let mut axes = memory::vec_with_capacity(full_tree(levels) as usize, "axes of the nodes")?;
            axes.extend(
                (0..full_tree(levels)).map(|node| ((first_axis + level(node) as usize) % dims) as u8),
            );
            walked.axes = Buffer::from_slice(&stream, &axes, "axes of the nodes")?;
        }
        // SAFETY: there is a place for each, and all is waited for.
        unsafe {
            let places = NodesMut::new(&stream, dims, walked.room.slice_mut(), walked.ids.slice_mut())?;
            let (num_dims, first_axis) = (dims as u32, first_axis as u32);
            let args =
                (coords, num_dims, first_axis, names, medians, n, bucket_len, places.coords, places.ids);
            stream.launch_items::<kdtree_put_in_order<C>>(u64::from(num_places), args)?;
            boxes::boxes(&stream, &mut walked)?;
        }
        stream.synchronize()?;
        Ok(walked)
    }
}
