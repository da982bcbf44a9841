//! The bucket index on a GPU, with which every index of points answers queries.
//!
//! - `backend`: the query backend; its methods call `nearest`, `within` and `batches`.
//! - `nearest`: the k nearest points; `by_nodes`: node by node, with the feature `research`.
//! - `within`: points within a distance or in boxes.
//! - `batches`: both, for results in batches.
//! - `visit`: kernels of the caller that take the points around queries.
//! - `device_options`: options and queries in device memory; chooses the kernel for a number of dimensions.
//! - `order`: sorts the queries by start bucket first.
//! - `buckets`: builds the boxes.

mod backend;
mod batches;
mod buckets;
#[cfg(feature = "research")]
mod by_nodes;
pub(crate) mod device_options;
mod nearest;
pub(crate) mod order;
mod visit;
mod within;

use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;
use crate::once::Once;
use crate::primitives::pairs::empty_view;
use cuda_std::mem::{Slice, SliceMut};
use device_options::DeviceOptions;
use kauri_kernels::kdtree::selection::PointsMut;
use kauri_kernels::query::axes::Axes;
use kauri_kernels::query::buckets::{BucketLayout, Index, boxes_len, least_ids_len};
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
    pub(crate) least_ids: Buffer<u32>,
    /// The split axis of each node; empty if levels split on axes in turn, or if there are no split planes.
    pub(crate) axes: Buffer<u8>,
    /// The bit mask of the axes that levels split on in turn; empty for all axes.
    pub(crate) varying_axes: Buffer<u32>,
    pub(crate) locator: Locator<C>,
    /// Slots of each bucket, some of them without a point; 0 if the tree is left-balanced, [`GAPS`](kauri_kernels::query::buckets::GAPS) if it has gaps.
    pub(crate) bucket_len: u32,
    /// The coordinates of all input points by id, if the index does not hold all of them.
    pub(crate) input_coords: Option<Arc<Buffer<C>>>,
    /// The caller's stream that last built the index.
    pub(crate) built_on: Option<Stream>,
    /// The ids of an index whose points change.
    pub(crate) given: Option<GivenIds<C>>,
    /// The points that had no room in the buckets, if the points change and there are such points.
    pub(crate) overflow: Option<Box<BucketIndex<C>>>,
}

/// The ids that an index whose points change has given to points.
pub(crate) struct GivenIds<C> {
    /// How many ids have been given.
    pub(crate) num: usize,
    /// A bit for each id: the point has been removed.
    pub(crate) removed: Buffer<u32>,
    /// The coordinates of the points by id, computed by the first query for all points.
    coords: Once<Arc<Buffer<C>>>,
}

impl<C> GivenIds<C> {
    pub(crate) fn new(num: usize, removed: Buffer<u32>) -> Self {
        Self { num, removed, coords: Once::new() }
    }
}

/// Finds the bucket that a query starts in.
pub(crate) enum Locator<C> {
    /// By the split planes of the nodes above the buckets.
    Planes(Buffer<C>),
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

/// Returns the bytes of an index with `num_slots` slots and `levels` levels above the buckets.
pub(crate) fn index_bytes<C>(num_slots: usize, dims: usize, levels: u32) -> u64 {
    let coords =
        num_slots.next_multiple_of(GROUP) * dims + boxes_len(levels, dims) + full_tree(levels) as usize;
    let ids = num_slots + least_ids_len(levels);
    (coords * size_of::<C>() + ids * size_of::<u32>()) as u64
}

impl<C: Coord> BucketIndex<C> {
    /// Allocates an index with `num_slots` slots and `levels` levels above the buckets.
    pub(crate) fn with_slots(gpu: &Gpu, num_slots: usize, dims: usize, levels: u32) -> Result<Self> {
        let (num_coords, num_splits) = (num_slots.next_multiple_of(GROUP) * dims, full_tree(levels) as usize);
        let padded_coords = Buffer::uninitialized(gpu, num_coords, "points of an index")?;
        Ok(Self {
            gpu: gpu.clone(),
            dims,
            padded_coords,
            ids: Buffer::uninitialized(gpu, num_slots, "ids of an index")?,
            boxes: Buffer::uninitialized(gpu, boxes_len(levels, dims), "boxes of an index")?,
            least_ids: Buffer::uninitialized(gpu, least_ids_len(levels), "least ids of an index")?,
            axes: Buffer::uninitialized(gpu, 0, "split axes of an index")?,
            varying_axes: Buffer::uninitialized(gpu, 0, "axes of an index that vary")?,
            locator: Locator::Planes(Buffer::uninitialized(gpu, num_splits, "split planes of an index")?),
            bucket_len: 0,
            input_coords: None,
            built_on: None,
            given: None,
            overflow: None,
        })
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

    /// Number of input points; of an index whose points change, of ids given.
    pub(crate) fn num_points(&self) -> usize {
        match (&self.given, &self.input_coords) {
            (Some(given), _) => given.num,
            (None, Some(coords)) => coords.len() / self.dims,
            (None, None) => self.ids.len(),
        }
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

    /// Returns the index of the points that had no room in the buckets, as a kernel argument.
    fn overflow_view(&self) -> Index<'_, C> {
        self.overflow.as_ref().map_or_else(
            || {
                let (none, no_ids) = (empty_view::<C>().read_only(), empty_view::<u32>().read_only());
                Index {
                    coords: none,
                    ids: no_ids,
                    boxes: none,
                    least_ids: no_ids,
                    dims: self.dims as u32,
                    bucket_len: 0,
                }
            },
            |overflow| overflow.view(),
        )
    }

    /// Returns the coordinates, point after point, without padding.
    pub(crate) fn coords(&self) -> Slice<'_, C> {
        // SAFETY: the buffer holds all points and padding.
        unsafe { self.padded_coords.slice().part(0, self.ids.len() * self.dims) }
    }
}
