//! Quadtrees as walks see them: points in the order of the tree, in buckets as those of a left-balanced tree.
//!
//! What follows each other in that order is near each other, as far as cells are, so that the boxes of its runs keep walks short. Where a
//! query is, its leaf tells.

use super::{GpuTree, NodesMut, boxes};
use crate::device::{Buffer, Stream};
use crate::error::Result;
use crate::quadtree::with_plane_or_space;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::kdtree::buckets::levels;
use kauri_kernels::quadtree::queries::quadtree_query_buckets;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;
use std::sync::Arc;

/// The cells of a quadtree.
pub(crate) struct Cells {
    /// The frame's words.
    pub(crate) frame: Buffer<u64>,
    pub(crate) nodes: Arc<Buffer<Bits128>>,
}

impl Cells {
    /// Writes the bucket of each query among so many points, and its number.
    ///
    /// # Safety
    /// Nothing else uses the memory until the stream has done the work.
    pub(super) unsafe fn query_buckets<C: Coord>(
        &self,
        stream: &Stream,
        (num_points, dims): (usize, usize),
        queries: Slice<'_, C>,
        buckets: SliceMut<'_, u32>,
        numbers: SliceMut<'_, u32>,
    ) -> Result<()> {
        let args = (self.frame.slice(), self.nodes.slice(), num_points as u32, queries, buckets, numbers);
        // SAFETY: passed on to the caller.
        with_plane_or_space!(dims, D => unsafe {
            stream.launch_items::<quadtree_query_buckets<C, D>>(numbers.len() as u64, args)
        })
    }
}

impl<C: Coord> GpuTree<C> {
    /// What answers queries to a quadtree, of points in its order.
    pub(crate) fn of_cells(dims: usize, coords: &Buffer<C>, ids: &Buffer<u32>, cells: Cells) -> Result<Self> {
        let (gpu, n) = (ids.gpu(), ids.len());
        let stream = Stream::new(gpu)?;
        let mut walked = Self::with_places(gpu, n, dims, levels(n as u32))?;
        walked.cells = Some(cells);
        // SAFETY: there is a place for each, and all is waited for.
        unsafe {
            let places = NodesMut::new(&stream, dims, walked.room.slice_mut(), walked.ids.slice_mut())?;
            stream.copy(places.coords, coords.slice())?;
            stream.copy(places.ids, ids.slice())?;
            boxes::boxes(&stream, &mut walked)?;
        }
        stream.synchronize()?;
        Ok(walked)
    }
}
