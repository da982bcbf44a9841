//! The bucket index on a GPU, with which every index of points answers queries.
//!
//! - `backend`: the query backend; its methods call `nearest`, `within` and `batches`.
//! - `nearest`: the k nearest points; `by_nodes`: node by node, with the feature `research`.
//! - `within`: points within a distance or in boxes.
//! - `batches`: both, for results in batches.
//! - `visit`: kernels of the caller that take the points around queries.
//! - `device_options`: options and queries in device memory; chooses the kernel for a number of dimensions.
//! - `order`: sorts the queries by start bucket first.
//! - `grid`: the order of points along a Hilbert curve.
//! - `buckets`: builds the boxes.
//! - `rows`: the rows of queries for all points, if ids have gaps; `sums`: bits with their sums.

mod backend;
mod batches;
mod buckets;
#[cfg(feature = "research")]
mod by_nodes;
pub(crate) mod device_options;
pub(crate) mod grid;
mod nearest;
mod order;
mod rows;
pub(crate) mod sums;
mod visit;
mod within;

use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;
use crate::once::Once;
use cuda_std::mem::{Slice, SliceMut};
use device_options::DeviceOptions;
use grid::Grid;
use kauri_kernels::kdtree::selection::PointsMut;
use kauri_kernels::query::axes::Axes;
use kauri_kernels::query::buckets::{BucketLayout, Index, boxes_len, least_ids_len, levels};
use kauri_kernels::query::left_balanced::full_tree;
use kauri_kernels::query::traversal::GROUP;
use kauri_kernels::thread::coord::Coord;
use std::sync::Arc;

/// Points in buckets, in device memory, and the boxes above them.
///
/// The points are in the in-order sequence of a complete binary tree. A bucket is a run of them; every node above the buckets has the
/// bounding boxes of its children and the least id of its points.
pub(crate) struct BucketIndex<C> {
    pub(crate) gpu: Gpu,
    pub(crate) dims: usize,
    /// The coordinates, point after point, padded to a whole group.
    pub(crate) padded_coords: Buffer<C>,
    pub(crate) ids: Buffer<u32>,
    /// The boxes of the children of each node above the buckets.
    pub(crate) boxes: Buffer<C>,
    /// The least id of the points of each node down to the buckets.
    least_ids: Buffer<u32>,
    /// The split axis of each node; empty if levels split on axes in turn, or if there are no split planes.
    pub(crate) axes: Buffer<u8>,
    /// The bit mask of the axes that levels split on in turn; empty for all axes.
    pub(crate) varying_axes: Buffer<u32>,
    pub(crate) locator: Locator<C>,
    /// Slots of each bucket, some of them without a point; 0 if the tree is left-balanced.
    pub(crate) bucket_len: u32,
    /// The coordinates of all input points by id, if the index does not hold all of them.
    pub(crate) input_coords: Option<Arc<Buffer<C>>>,
    /// A bit for each id: the id has a point. Empty if all ids have points.
    pub(crate) has_point: Buffer<u32>,
    /// The rows of the points in a query for all points, if not all ids have points; computed by the first such query.
    pub(crate) rows: Once<Buffer<u32>>,
    /// The caller's stream that last built the index.
    pub(crate) built_on: Option<Stream>,
}

/// Finds the bucket that a query starts in.
pub(crate) enum Locator<C> {
    /// By the split planes of the nodes above the buckets.
    Planes(Buffer<C>),
    /// By a grid, along whose Hilbert curve the points are ordered.
    Grid(Grid<C>),
    /// By another structure over the same points.
    Other(Box<dyn Locate<C>>),
}

/// A structure over the points of a bucket index that finds the start buckets of queries.
pub(crate) trait Locate<C>: Send + Sync {
    /// Writes the start bucket of each query, and the number of the query.
    ///
    /// # Safety
    /// Nothing else uses the memory until the stream has done the work.
    unsafe fn query_buckets(
        &self,
        stream: &Stream,
        queries: Slice<'_, C>,
        buckets: SliceMut<'_, u32>,
        numbers: SliceMut<'_, u32>,
    ) -> Result<()>;
}

/// Returns the output memory for the nodes of a tree, without the padding behind them. Zeroes the padding, which is read with the last
/// group of points.
///
/// # Safety
/// `padded_coords` has whole groups, and nothing else uses it until the stream has done the work.
pub(crate) unsafe fn node_slots<'a, C: Coord>(
    stream: &Stream,
    dims: usize,
    padded_coords: SliceMut<'a, C>,
    ids: SliceMut<'a, u32>,
) -> Result<PointsMut<'a, C>> {
    let num_coords = ids.len() * dims;
    // SAFETY: passed on to the caller.
    unsafe {
        stream.fill_bytes(padded_coords.part(num_coords, padded_coords.len() - num_coords), 0)?;
        Ok(PointsMut { coords: padded_coords.part(0, num_coords), ids })
    }
}

/// Returns the number of coordinates of an index: of its slots, rounded up to whole groups.
pub(crate) fn padded_len(num_slots: usize, dims: usize) -> usize {
    num_slots.div_ceil(GROUP).saturating_mul(GROUP * dims)
}

/// Returns the bytes of an index with `num_slots` slots and `levels` levels above the buckets, without its locator.
pub(crate) fn index_bytes<C>(num_slots: usize, dims: usize, levels: u32) -> u64 {
    let coords = padded_len(num_slots, dims) + boxes_len(levels, dims);
    let ids = num_slots + least_ids_len(levels);
    (coords * size_of::<C>() + ids * size_of::<u32>()) as u64
}

/// Returns the bytes of the split planes of an index.
pub(crate) fn planes_bytes<C>(levels: u32) -> u64 {
    (full_tree(levels) as usize * size_of::<C>()) as u64
}

impl<C: Coord> Locator<C> {
    /// Allocates the split planes of the nodes above the buckets.
    pub(crate) fn planes(gpu: &Gpu, levels: u32) -> Result<Self> {
        Ok(Self::Planes(Buffer::uninitialized(gpu, full_tree(levels) as usize, "split planes of an index")?))
    }
}

impl<C: Coord> BucketIndex<C> {
    /// Allocates an index with `num_slots` slots and `levels` levels above the buckets.
    pub(crate) fn with_slots(
        gpu: &Gpu,
        num_slots: usize,
        dims: usize,
        levels: u32,
        locator: Locator<C>,
    ) -> Result<Self> {
        let mut index = Self::without_coords(gpu, num_slots, dims, levels, locator)?;
        index.padded_coords.resize(padded_len(num_slots, dims), "points of an index")?;
        Ok(index)
    }

    /// Allocates all memory of an index but that of the points.
    pub(crate) fn without_coords(
        gpu: &Gpu,
        num_slots: usize,
        dims: usize,
        levels: u32,
        locator: Locator<C>,
    ) -> Result<Self> {
        Ok(Self {
            gpu: gpu.clone(),
            dims,
            padded_coords: Buffer::uninitialized(gpu, 0, "points of an index")?,
            ids: Buffer::uninitialized(gpu, num_slots, "ids of an index")?,
            boxes: Buffer::uninitialized(gpu, boxes_len(levels, dims), "boxes of an index")?,
            least_ids: Buffer::uninitialized(gpu, least_ids_len(levels), "least ids of an index")?,
            axes: Buffer::uninitialized(gpu, 0, "split axes of an index")?,
            varying_axes: Buffer::uninitialized(gpu, 0, "axes of an index that vary")?,
            locator,
            bucket_len: 0,
            input_coords: None,
            has_point: Buffer::uninitialized(gpu, 0, "ids with points")?,
            rows: Once::new(),
            built_on: None,
        })
    }

    /// Changes the number of slots of a left-balanced index, within the capacity of its buffers. Contents are undefined then.
    pub(crate) fn set_num_slots(&mut self, num_slots: usize) {
        let levels = levels(num_slots as u32);
        self.padded_coords.set_len(padded_len(num_slots, self.dims));
        self.ids.set_len(num_slots);
        self.boxes.set_len(boxes_len(levels, self.dims));
        self.least_ids.set_len(least_ids_len(levels));
        match &mut self.locator {
            Locator::Planes(planes) => planes.set_len(full_tree(levels) as usize),
            Locator::Grid(grid) => grid.first_codes.set_len(1 << levels),
            Locator::Other(_) => {}
        }
    }

    /// Creates a stream that waits for the last build of the index.
    pub(crate) fn stream(&self) -> Result<Stream> {
        let stream = Stream::new(&self.gpu)?;
        self.wait(&stream)?;
        Ok(stream)
    }

    /// Makes a stream wait for the stream that last built the index.
    pub(crate) fn wait(&self, stream: &Stream) -> Result<()> {
        match &self.built_on {
            Some(built_on) => stream.wait_for(built_on),
            None => Ok(()),
        }
    }

    /// Checks that index, stream and options are on one device.
    fn check(&self, stream: &Stream, options: &DeviceOptions<C::Distance>) -> Result<()> {
        self.ids.check_device(stream)?;
        options.check_device(stream)
    }

    /// Number of input points.
    pub(crate) fn num_points(&self) -> usize {
        self.input_coords.as_ref().map_or(self.ids.len(), |coords| coords.len() / self.dims)
    }

    /// Levels above the buckets.
    pub(crate) fn levels(&self) -> u32 {
        BucketLayout::new(self.ids.len() as u32, self.bucket_len).levels
    }

    /// Returns the split axes of the nodes.
    pub(crate) fn split_axes(&self) -> Axes<'_> {
        Axes { axes: self.axes.slice(), varying: self.varying_axes.slice(), dims: self.dims as u32 }
    }

    /// Returns the index as a kernel argument.
    pub(crate) fn view(&self) -> Index<'_, C> {
        Index {
            coords: self.padded_coords.slice(),
            ids: self.ids.slice(),
            boxes: self.boxes.slice(),
            least_ids: self.least_ids.slice(),
            dims: self.dims as u32,
            bucket_len: self.bucket_len,
        }
    }

    /// Returns the coordinates, point after point, without padding.
    pub(crate) fn coords(&self) -> Slice<'_, C> {
        // SAFETY: the buffer holds all points and padding.
        unsafe { self.padded_coords.slice().part(0, self.ids.len() * self.dims) }
    }
}
