//! The bucket index of a quadtree: its points in tree order, in buckets.
//!
//! Consecutive points in tree order are near each other, so the boxes of runs of them are small. A query starts in the bucket of its leaf.

use crate::device::{Buffer, Stream};
use crate::error::Result;
use crate::quadtree::dims::with_2_or_3;
use crate::query::gpu::{BucketIndex, Locate, Locator, node_slots};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::quadtree::queries::quadtree_query_buckets;
use kauri_kernels::query::buckets::levels;
use kauri_kernels::thread::coord::Coord;
use std::sync::Arc;

/// The cells of a quadtree, which locate queries.
pub(crate) struct Cells {
    /// The frame's words.
    pub(crate) frame: Arc<Buffer<u64>>,
    pub(crate) nodes: Arc<Buffer<Node>>,
    pub(crate) dims: usize,
    pub(crate) num_points: u32,
}

impl<C: Coord> Locate<C> for Cells {
    unsafe fn query_buckets(
        &self,
        stream: &Stream,
        queries: Slice<'_, C>,
        buckets: SliceMut<'_, u32>,
        numbers: SliceMut<'_, u32>,
    ) -> Result<()> {
        let args = (self.frame.slice(), self.nodes.bits(), self.num_points, queries, buckets, numbers);
        // SAFETY: passed on to the caller.
        with_2_or_3!(self.dims, D => unsafe {
            stream.launch_items::<quadtree_query_buckets<C, D>>(numbers.len() as u64, args)
        })
    }
}

/// Builds the bucket index of a quadtree over points and ids in tree order. Waits for it.
pub(crate) fn bucket_index<C: Coord>(
    stream: &Stream,
    coords: &Buffer<C>,
    ids: &Buffer<u32>,
    cells: Cells,
) -> Result<BucketIndex<C>> {
    let (gpu, n, dims) = (ids.gpu(), ids.len(), cells.dims);
    let locator = Locator::Other(Box::new(cells));
    let mut index = BucketIndex::with_slots(gpu, n, dims, levels(n as u32), locator)?;
    // SAFETY: the index has an entry for each point, and the stream is synchronized below.
    unsafe {
        let places = node_slots(stream, dims, index.padded_coords.slice_mut(), index.ids.slice_mut())?;
        stream.copy(places.coords, coords.slice())?;
        stream.copy(places.ids, ids.slice())?;
        index.build_boxes(stream)?;
    }
    stream.synchronize()?;
    Ok(index)
}
