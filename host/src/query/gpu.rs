//! The bucket index on a GPU, with which every index of points answers queries.

mod batches;
mod buckets;
mod by_nodes;
pub(crate) mod device_options;
mod nearest;
mod order;
mod within;

use crate::batches::Delivery;
use crate::device::{Buffer, Gpu, Layout, Stream, Workspace};
use crate::error::{Error, Result};
use crate::memory;
use crate::point::with_dims;
use crate::primitives::cpu::bounds::bounds;
use crate::query::PointMask;
use crate::query::backend::{DeviceQueryBackend, QueryBackend, ValidatedQueries};
use crate::query::batches::{RangeQuery, VisitNearest, VisitRange};
use crate::query::on_device::{DeviceQueries, DeviceRangeQuery, DeviceWithin};
use crate::query::options::ValidatedOptions;
use crate::query::within::RangeResult;
use cuda_std::mem::{Slice, SliceMut};
use device_options::{DeviceOptions, QueryView};
use kauri_kernels::query::axes::Axes;
use kauri_kernels::query::buckets::{BucketLayout, Index, boxes_len, least_ids_len};
use kauri_kernels::query::left_balanced::full_tree;
use kauri_kernels::query::nearest::ResultRows;
use kauri_kernels::query::traversal::GROUP;
use kauri_kernels::thread::coord::Coord;
use nearest::Nearest;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use within::{RangeLaunch, RangeView};

/// Maximum bytes of queries and results on the device at a time; more are processed in batches.
const BATCH_BYTES: usize = 1 << 30;

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
    /// The caller's stream that last built the index.
    pub(crate) built_on: Option<Stream>,
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

/// Output memory for the nodes of a tree.
#[derive(Clone, Copy)]
pub(crate) struct NodesMut<'a, C> {
    pub(crate) coords: SliceMut<'a, C>,
    pub(crate) ids: SliceMut<'a, u32>,
}

impl<'a, C: Coord> NodesMut<'a, C> {
    /// Takes the slots of a tree from `padded_coords`, and zeroes the padding, which is read with the last group of points.
    ///
    /// # Safety
    /// `padded_coords` has whole groups, and nothing else uses it until the stream has done the work.
    pub(crate) unsafe fn new(
        stream: &Stream,
        dims: usize,
        padded_coords: SliceMut<'a, C>,
        ids: SliceMut<'a, u32>,
    ) -> Result<Self> {
        let num_coords = ids.len() * dims;
        // SAFETY: passed on to the caller.
        unsafe {
            stream.fill_bytes(padded_coords.part(num_coords, padded_coords.len() - num_coords), 0)?;
            Ok(Self { coords: padded_coords.part(0, num_coords), ids })
        }
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
        Ok(Self {
            gpu: gpu.clone(),
            dims,
            padded_coords: Buffer::uninitialized(
                gpu,
                num_slots.next_multiple_of(GROUP) * dims,
                "points of an index",
            )?,
            ids: Buffer::uninitialized(gpu, num_slots, "ids of an index")?,
            boxes: Buffer::uninitialized(gpu, boxes_len(levels, dims), "boxes of an index")?,
            least_ids: Buffer::uninitialized(gpu, least_ids_len(levels), "least ids of an index")?,
            axes: Buffer::uninitialized(gpu, 0, "split axes of an index")?,
            varying_axes: Buffer::uninitialized(gpu, 0, "axes of an index that vary")?,
            locator: Locator::Planes(Buffer::uninitialized(
                gpu,
                full_tree(levels) as usize,
                "split planes of an index",
            )?),
            bucket_len: 0,
            input_coords: None,
            built_on: None,
        })
    }

    /// Copies the coordinates of the points, by id, to host memory.
    fn coords_to_host(&self, stream: &Stream) -> Result<Vec<C>> {
        match &self.input_coords {
            Some(coords) => coords.to_vec(stream),
            None => by_id(&self.ids.to_vec(stream)?, &self.padded_coords.to_vec(stream)?, self.dims),
        }
    }

    /// Returns the least and the greatest corner of the bounding box of all points.
    fn bounds<const D: usize>(&self, stream: &Stream) -> Result<[[C; D]; 2]> {
        // The boxes of the root's children, or the points if there are no boxes.
        let corners = if self.boxes.is_empty() {
            self.padded_coords.front_to_vec(stream, self.ids.len() * D)?
        } else {
            self.boxes.front_to_vec(stream, 4 * D)?
        };
        Ok(bounds(corners.as_chunks::<D>().0))
    }

    /// Runs a range query within a distance of queries in host memory.
    fn with_queries<R>(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: ValidatedOptions<C>,
        run: impl FnOnce(RangeLaunch<'_, C>) -> Result<R>,
    ) -> Result<R> {
        let stream = self.stream()?;
        let options = DeviceOptions::new(&stream, options)?;
        let mut uploaded = None;
        let all = 0..queries.len(self.dims, self.num_points());
        let queries = self.queries_on(&stream, queries, all, &mut uploaded)?;
        run(RangeLaunch::of(self, &stream, RangeView::Within(&options, queries)))
    }

    /// Uploads a range of queries; the index's own points are used where they are.
    fn queries_on<'a>(
        &'a self,
        stream: &Stream,
        queries: ValidatedQueries<'_, C>,
        range: Range<usize>,
        uploaded: &'a mut Option<Buffer<C>>,
    ) -> Result<QueryView<'a, C>> {
        Ok(match queries {
            ValidatedQueries::Points { coords, first_excluded } => {
                let coords = &coords[range.start * self.dims..range.end * self.dims];
                let coords = uploaded.insert(Buffer::from_slice(stream, coords, "queries")?);
                QueryView::of_points(coords.slice()).excluding(first_excluded, range.start)
            }
            // SAFETY: a self-query has a query for each point, so the range is one of points.
            ValidatedQueries::SelfQuery { include_self } => unsafe {
                QueryView::self_query(self, range, include_self)
            },
        })
    }

    /// Runs a range query in boxes in host memory.
    fn with_boxes<R>(
        &self,
        corners: &[C],
        mask: Option<&PointMask>,
        run: impl FnOnce(RangeLaunch<'_, C>) -> Result<R>,
    ) -> Result<R> {
        let stream = self.stream()?;
        let corners = Buffer::from_slice(&stream, corners, "corners of boxes")?;
        let options = DeviceOptions::<C>::new(&stream, ValidatedOptions::points(mask.cloned()))?;
        run(RangeLaunch::of(self, &stream, RangeView::InBoxes(corners.slice(), options.mask())))
    }

    /// Counts the points of each row, and copies the counts to the host.
    fn count(&self, launch: RangeLaunch<'_, C>) -> Result<Vec<u32>> {
        let stream = launch.stream();
        let mut counts = Buffer::uninitialized(&self.gpu, launch.num_rows(), "counts of points")?;
        launch.count(&mut Workspace::new(&self.gpu), &mut counts)?;
        counts.to_vec(stream)
    }

    /// Finds the points of each row, and copies them to the host.
    fn find(&self, launch: RangeLaunch<'_, C>) -> Result<RangeResult<C>> {
        let (stream, item_bytes) = (launch.stream(), launch.item_bytes());
        let found = launch.find_all(&mut Workspace::new(&self.gpu))?;
        let offsets = found.offsets.to_vec(stream)?;
        let (count, bytes) = (found.ids.len() as u64, found.ids.len() as u64 * item_bytes);
        let copied = || {
            memory::check(bytes, "points found")?;
            Ok(RangeResult { offsets, ids: found.ids.to_vec(stream)?, dist2: found.dist2.to_vec(stream)? })
        };
        copied().map_err(|error: Error| error.of_result(count, bytes))
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
    fn check(&self, stream: &Stream, options: &DeviceOptions<C>) -> Result<()> {
        self.ids.check_device(stream)?;
        options.check_device(stream)
    }

    /// Returns the number of queries, after checking that they are whole points on the stream's device.
    fn num_queries(&self, stream: &Stream, queries: DeviceQueries<'_, C>) -> Result<usize> {
        match queries {
            DeviceQueries::Coordinates(coords) => {
                let num_queries = coords.len() / self.dims;
                coords.check(stream, "coordinates of the queries", num_queries * self.dims)?;
                Ok(num_queries)
            }
            DeviceQueries::SelfQuery { .. } => Ok(self.num_points()),
        }
    }

    /// Number of input points.
    pub(crate) fn num_points(&self) -> usize {
        self.input_coords.as_ref().map_or(self.ids.len(), |coords| coords.len() / self.dims)
    }

    /// Levels above the buckets.
    fn levels(&self) -> u32 {
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

impl<C: Coord> QueryBackend<C> for BucketIndex<C> {
    fn check_queries(&self, queries: ValidatedQueries<'_, C>, options: &ValidatedOptions<C>) -> Result<()> {
        if options.periods.is_empty() {
            return Ok(());
        }
        let stream = self.stream()?;
        with_dims!(self.dims, D => {
            options.check_queries(queries, self.bounds::<D>(&stream)?, || self.coords_to_host(&stream))
        })
    }

    fn nearest(
        &self,
        queries: ValidatedQueries<'_, C>,
        k: usize,
        options: ValidatedOptions<C>,
        mut ids: Vec<u32>,
        mut dist2: Vec<C>,
    ) -> Result<(Vec<u32>, Vec<C>)> {
        let num_queries = queries.len(self.dims, self.num_points());
        if num_queries == 0 || k == 0 {
            return Ok((ids, dist2));
        }
        let stream = self.stream()?;
        let mut workspace = Workspace::new(&self.gpu);
        let options = DeviceOptions::new(&stream, options)?;
        let query_bytes = (self.dims * size_of::<C>()).saturating_add(k.saturating_mul(size_of::<C>() + 4));
        let batch = (BATCH_BYTES / query_bytes).clamp(1, num_queries);
        for begin in (0..num_queries).step_by(batch) {
            let range = begin..num_queries.min(begin + batch);
            let mut batch_dist2 =
                Buffer::uninitialized(&self.gpu, range.len() * k, "distances of neighbors")?;
            let mut batch_ids = Buffer::uninitialized(&self.gpu, range.len() * k, "ids of neighbors")?;
            let rows = ResultRows { dist2: batch_dist2.slice_mut(), ids: batch_ids.slice_mut(), k: k as u64 };
            let mut uploaded = None;
            let batch_queries = self.queries_on(&stream, queries, range, &mut uploaded)?;
            let mut layout = Layout::new();
            let plan = Nearest::plan(&mut layout, self, &options, batch_queries, k);
            let temp = workspace.carve(&stream, &layout, "k-d tree queries")?;
            // SAFETY: the buffers live until the results have been copied; a row belongs to one query.
            unsafe { plan.run(&stream, &temp, self, &options, batch_queries, rows)? };
            batch_ids.append_to(&stream, &mut ids)?;
            batch_dist2.append_to(&stream, &mut dist2)?;
        }
        let is_self_query = matches!(queries, ValidatedQueries::SelfQuery { .. });
        if is_self_query && batch < num_queries && self.input_coords.is_none() {
            // The rows of several batches are in the order of the tree.
            let order = self.ids.to_vec(&stream)?;
            return Ok((by_id(&order, &ids, k)?, by_id(&order, &dist2, k)?));
        }
        Ok((ids, dist2))
    }

    fn count_within(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: ValidatedOptions<C>,
    ) -> Result<Vec<u32>> {
        self.with_queries(queries, options, |launch| self.count(launch))
    }

    fn within(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: ValidatedOptions<C>,
    ) -> Result<RangeResult<C>> {
        self.with_queries(queries, options, |launch| self.find(launch))
    }

    fn count_in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<Vec<u32>> {
        self.with_boxes(corners, mask, |launch| self.count(launch))
    }

    fn in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<RangeResult<C>> {
        self.with_boxes(corners, mask, |launch| self.find(launch))
    }

    fn range_batches(
        &self,
        query: RangeQuery<'_, C>,
        delivery: &mut Delivery<'_, '_>,
        visit: &mut VisitRange<'_, C>,
    ) -> Result<ControlFlow<()>> {
        self.deliver_range(query, delivery, visit)
    }

    fn nearest_batches(
        &self,
        queries: ValidatedQueries<'_, C>,
        k: usize,
        options: ValidatedOptions<C>,
        delivery: &mut Delivery<'_, '_>,
        visit: &mut VisitNearest<'_, C>,
    ) -> Result<ControlFlow<()>> {
        self.deliver_nearest(queries, k, options, delivery, visit)
    }
}

impl<C: Coord> DeviceQueryBackend<C> for BucketIndex<C> {
    fn prepare(&self, stream: &Stream, options: ValidatedOptions<C>) -> Result<DeviceOptions<C>> {
        self.ids.check_device(stream)?;
        DeviceOptions::new(stream, options)
    }

    #[allow(clippy::too_many_arguments)]
    fn nearest_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, C>,
        k: usize,
        options: &DeviceOptions<C>,
        ids: &mut Buffer<u32>,
        dist2: &mut Buffer<C>,
    ) -> Result<()> {
        self.check(stream, options)?;
        let num_queries = self.num_queries(stream, queries)?;
        ids.check(stream, "ids of neighbors", num_queries.saturating_mul(k))?;
        dist2.check(stream, "distances of neighbors", num_queries.saturating_mul(k))?;
        if ids.is_empty() {
            return Ok(());
        }
        let mut layout = Layout::new();
        let rows = ResultRows { dist2: dist2.slice_mut(), ids: ids.slice_mut(), k: k as u64 };
        let queries = QueryView::all(self, queries);
        let plan = Nearest::plan(&mut layout, self, options, queries, k);
        let temp = workspace.carve(stream, &layout, "k-d tree queries")?;
        self.wait(stream)?;
        // SAFETY: lengths have been checked, the borrows keep buffers apart, and buffers wait for the device before they are
        // freed.
        unsafe { plan.run(stream, &temp, self, options, queries, rows) }
    }

    fn count_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        query: DeviceRangeQuery<'_, C>,
        counts: &mut Buffer<u32>,
    ) -> Result<()> {
        RangeLaunch::new(self, stream, query)?.count(workspace, counts)
    }

    fn find_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        query: DeviceRangeQuery<'_, C>,
        offsets: &mut Buffer<u64>,
        ids: &mut Buffer<u32>,
        dist2: Option<&mut Buffer<C>>,
    ) -> Result<()> {
        RangeLaunch::new(self, stream, query)?.find(workspace, offsets, ids, dist2)
    }

    fn find_all_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        query: DeviceRangeQuery<'_, C>,
    ) -> Result<DeviceWithin<C>> {
        RangeLaunch::new(self, stream, query)?.find_all(workspace)
    }
}

/// Reorders rows of `k` entries, where row `i` belongs to `ids[i]`, by id.
pub(crate) fn by_id<T: Copy + Send + Sync>(ids: &[u32], rows: &[T], k: usize) -> Result<Vec<T>> {
    let mut row_of = memory::vec_with_capacity(ids.len(), "positions of rows")?;
    row_of.resize(ids.len(), 0_usize);
    for (i, &id) in ids.iter().enumerate() {
        row_of[id as usize] = i;
    }
    let mut sorted = memory::vec_with_capacity(rows.len(), "rows of the result")?;
    for i in row_of {
        sorted.extend_from_slice(&rows[i * k..(i + 1) * k]);
    }
    Ok(sorted)
}
