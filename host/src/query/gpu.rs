//! The bucket index on a GPU: what every index of points answers queries with.

mod batches;
mod boxes;
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
use kauri_kernels::query::buckets::{Cut, Index, boxes_len, least_ids_len};
use kauri_kernels::query::left_balanced::full_tree;
use kauri_kernels::query::nearest::ResultRows;
use kauri_kernels::query::walk::GROUP;
use kauri_kernels::thread::coord::Coord;
use nearest::Nearest;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use within::{RangeLaunch, Within};

/// Most bytes of queries and results on the device at one time; more go in batches.
const BATCH_BYTES: usize = 1 << 30;

/// Points in buckets, in device memory, and the boxes above them.
///
/// The points are in the in-order sequence of a complete binary tree. A bucket is a run of them; every node above the buckets has the bounding
/// boxes of its children and the least id of its points.
pub(crate) struct BucketIndex<C> {
    pub(crate) gpu: Gpu,
    pub(crate) dims: usize,
    /// The coordinates, point after point, padded to a whole group.
    pub(crate) room: Buffer<C>,
    pub(crate) ids: Buffer<u32>,
    /// The boxes of the children of each node above the buckets.
    pub(crate) boxes: Buffer<C>,
    /// The least id of the points of each node down to the buckets.
    least_ids: Buffer<u32>,
    /// The split axes of the nodes; empty if the axes go by levels, or if there are no split planes.
    pub(crate) axes: Buffer<u8>,
    pub(crate) locator: Locator<C>,
    /// Places of each bucket, some of them without a point; 0 if the tree is left-balanced.
    pub(crate) bucket_len: u32,
    /// The coordinates of the input points by id, if the index does not have all of them.
    pub(crate) given: Option<Arc<Buffer<C>>>,
    /// The caller's stream that it was last built on.
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
    /// Writes the bucket of each query, and the number of the query.
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

/// Room for the nodes of a tree.
#[derive(Clone, Copy)]
pub(crate) struct NodesMut<'a, C> {
    pub(crate) coords: SliceMut<'a, C>,
    pub(crate) ids: SliceMut<'a, u32>,
}

impl<'a, C: Coord> NodesMut<'a, C> {
    /// The places of a tree; what is behind them, and read with the last group of points, is set.
    ///
    /// # Safety
    /// There is room for whole groups, and nothing else uses it until the stream has done the work.
    pub(crate) unsafe fn new(
        stream: &Stream,
        dims: usize,
        room: SliceMut<'a, C>,
        ids: SliceMut<'a, u32>,
    ) -> Result<Self> {
        let num_coords = ids.len() * dims;
        // SAFETY: passed on to the caller.
        unsafe {
            stream.fill_bytes(room.part(num_coords, room.len() - num_coords), 0)?;
            Ok(Self { coords: room.part(0, num_coords), ids })
        }
    }
}

/// Bytes of so many places, with so many levels above the buckets.
pub(crate) fn places_bytes<C>(num_places: usize, dims: usize, levels: u32) -> u64 {
    let coords =
        num_places.next_multiple_of(GROUP) * dims + boxes_len(levels, dims) + full_tree(levels) as usize;
    let ids = num_places + least_ids_len(levels);
    (coords * size_of::<C>() + ids * size_of::<u32>()) as u64
}

impl<C: Coord> BucketIndex<C> {
    /// Room for so many places with points or without, with so many levels above the buckets.
    pub(crate) fn with_places(gpu: &Gpu, num_places: usize, dims: usize, levels: u32) -> Result<Self> {
        Ok(Self {
            gpu: gpu.clone(),
            dims,
            room: Buffer::uninitialized(
                gpu,
                num_places.next_multiple_of(GROUP) * dims,
                "points of an index",
            )?,
            ids: Buffer::uninitialized(gpu, num_places, "ids of an index")?,
            boxes: Buffer::uninitialized(gpu, boxes_len(levels, dims), "boxes of an index")?,
            least_ids: Buffer::uninitialized(gpu, least_ids_len(levels), "least ids of an index")?,
            axes: Buffer::uninitialized(gpu, 0, "split axes of an index")?,
            locator: Locator::Planes(Buffer::uninitialized(
                gpu,
                full_tree(levels) as usize,
                "split planes of an index",
            )?),
            bucket_len: 0,
            given: None,
            built_on: None,
        })
    }

    /// The coordinates of the points by id, in host memory.
    fn own(&self, stream: &Stream) -> Result<Vec<C>> {
        match &self.given {
            Some(given) => given.to_vec(stream),
            None => by_id(&self.ids.to_vec(stream)?, &self.room.to_vec(stream)?, self.dims),
        }
    }

    /// The least and the greatest corner of the box of the points.
    fn bounds<const D: usize>(&self, stream: &Stream) -> Result<[[C; D]; 2]> {
        // The root's two boxes, or points without any.
        let of = if self.boxes.is_empty() {
            self.room.front_to_vec(stream, self.ids.len() * D)?
        } else {
            self.boxes.front_to_vec(stream, 4 * D)?
        };
        Ok(bounds(of.as_chunks::<D>().0))
    }

    fn look<R>(
        &self,
        queries: ValidatedQueries<'_, C>,
        wanted: ValidatedOptions<C>,
        run: impl FnOnce(RangeLaunch<'_, C>) -> Result<R>,
    ) -> Result<R> {
        let stream = self.stream()?;
        let asked = DeviceOptions::new(&stream, wanted)?;
        let mut uploaded = None;
        let all = 0..queries.len(self.dims, self.num_points());
        let queries = self.queries_on(&stream, queries, all, &mut uploaded)?;
        run(RangeLaunch::of(self, &stream, Within::Distance(&asked, queries)))
    }

    /// Some queries on the device.
    fn queries_on<'a>(
        &'a self,
        stream: &Stream,
        queries: ValidatedQueries<'_, C>,
        range: Range<usize>,
        uploaded: &'a mut Option<Buffer<C>>,
    ) -> Result<QueryView<'a, C>> {
        Ok(match queries {
            ValidatedQueries::Points { coords, first_left_out } => {
                let coords = &coords[range.start * self.dims..range.end * self.dims];
                let coords = uploaded.insert(Buffer::from_slice(stream, coords, "queries")?);
                QueryView::of_points(coords.slice()).leaving_out(first_left_out, range.start)
            }
            // SAFETY: queries are numbered as the tree's points are, so the range is one of these.
            ValidatedQueries::Own { itself } => unsafe { QueryView::own(self, range, itself) },
        })
    }

    fn look_in_boxes<R>(
        &self,
        corners: &[C],
        mask: Option<&PointMask>,
        run: impl FnOnce(RangeLaunch<'_, C>) -> Result<R>,
    ) -> Result<R> {
        let stream = self.stream()?;
        let corners = Buffer::from_slice(&stream, corners, "corners of boxes")?;
        let asked = DeviceOptions::<C>::new(&stream, ValidatedOptions::points(mask.cloned()))?;
        run(RangeLaunch::of(self, &stream, Within::Boxes(corners.slice(), asked.mask())))
    }

    /// What a call counts, in host memory.
    fn counts(&self, call: RangeLaunch<'_, C>) -> Result<Vec<u32>> {
        let stream = call.stream();
        let mut counts = Buffer::uninitialized(&self.gpu, call.num_rows(), "counts of points")?;
        call.count(&mut Workspace::new(&self.gpu), &mut counts)?;
        counts.to_vec(stream)
    }

    /// What a call finds, in host memory.
    fn found(&self, call: RangeLaunch<'_, C>) -> Result<RangeResult<C>> {
        let (stream, item_bytes) = (call.stream(), call.item_bytes());
        let found = call.find_all(&mut Workspace::new(&self.gpu))?;
        let offsets = found.offsets.to_vec(stream)?;
        let (count, bytes) = (found.ids.len() as u64, found.ids.len() as u64 * item_bytes);
        let copied = || {
            memory::check(bytes, "points found")?;
            Ok(RangeResult { offsets, ids: found.ids.to_vec(stream)?, dist2: found.dist2.to_vec(stream)? })
        };
        copied().map_err(|error: Error| error.of_result(count, bytes))
    }

    /// A new stream, for work after what has been done to the tree.
    pub(crate) fn stream(&self) -> Result<Stream> {
        let stream = Stream::new(&self.gpu)?;
        self.wait(&stream)?;
        Ok(stream)
    }

    /// Lets a stream wait for the one that builds the tree, if that is another.
    pub(crate) fn wait(&self, stream: &Stream) -> Result<()> {
        match &self.built_on {
            Some(built_on) => stream.wait_for(built_on),
            None => Ok(()),
        }
    }

    /// Checks that tree, stream and what was asked for are of one device.
    fn check(&self, stream: &Stream, asked: &DeviceOptions<C>) -> Result<()> {
        self.ids.check_device(stream)?;
        asked.check_device(stream)
    }

    /// Number of queries, if they are whole points on the stream's device.
    fn num_queries(&self, stream: &Stream, queries: DeviceQueries<'_, C>) -> Result<usize> {
        match queries {
            DeviceQueries::Coordinates(coords) => {
                let num_queries = coords.len() / self.dims;
                coords.check(stream, "coordinates of the queries", num_queries * self.dims)?;
                Ok(num_queries)
            }
            DeviceQueries::Own { .. } => Ok(self.num_points()),
        }
    }

    /// Number of points that the tree was given.
    pub(crate) fn num_points(&self) -> usize {
        self.given.as_ref().map_or(self.ids.len(), |given| given.len() / self.dims)
    }

    /// Levels above the buckets.
    fn levels(&self) -> u32 {
        Cut::of(self.ids.len() as u32, self.bucket_len).levels
    }

    /// The index as kernels take it.
    pub(crate) fn view(&self) -> Index<'_, C> {
        Index {
            coords: self.room.slice(),
            ids: self.ids.slice(),
            boxes: self.boxes.slice(),
            least_ids: self.least_ids.slice(),
            dims: self.dims as u32,
            bucket_len: self.bucket_len,
        }
    }

    /// The coordinates of point after point.
    pub(crate) fn coords(&self) -> Slice<'_, C> {
        // SAFETY: the buffer has room for all points, and more behind them.
        unsafe { self.room.slice().part(0, self.ids.len() * self.dims) }
    }
}

impl<C: Coord> QueryBackend<C> for BucketIndex<C> {
    fn check_queries(&self, queries: ValidatedQueries<'_, C>, wanted: &ValidatedOptions<C>) -> Result<()> {
        if wanted.periods.is_empty() {
            return Ok(());
        }
        let stream = self.stream()?;
        with_dims!(self.dims, D => {
            wanted.check_queries(queries, self.bounds::<D>(&stream)?, || self.own(&stream))
        })
    }

    fn nearest(
        &self,
        queries: ValidatedQueries<'_, C>,
        k: usize,
        wanted: ValidatedOptions<C>,
        mut ids: Vec<u32>,
        mut dist2: Vec<C>,
    ) -> Result<(Vec<u32>, Vec<C>)> {
        let num_queries = queries.len(self.dims, self.num_points());
        if num_queries == 0 || k == 0 {
            return Ok((ids, dist2));
        }
        let stream = self.stream()?;
        let mut workspace = Workspace::new(&self.gpu);
        let asked = DeviceOptions::new(&stream, wanted)?;
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
            let plan = Nearest::plan(&mut layout, self, &asked, batch_queries, k);
            let temp = workspace.carve(&stream, &layout, "k-d tree queries")?;
            // SAFETY: the buffers live until the results have been copied; a row belongs to one query.
            unsafe { plan.run(&stream, &temp, self, &asked, batch_queries, rows)? };
            batch_ids.append_to(&stream, &mut ids)?;
            batch_dist2.append_to(&stream, &mut dist2)?;
        }
        let is_own = matches!(queries, ValidatedQueries::Own { .. });
        if is_own && batch < num_queries && self.given.is_none() {
            // Batches are in the order of the tree.
            let order = self.ids.to_vec(&stream)?;
            return Ok((by_id(&order, &ids, k)?, by_id(&order, &dist2, k)?));
        }
        Ok((ids, dist2))
    }

    fn count_within(
        &self,
        queries: ValidatedQueries<'_, C>,
        wanted: ValidatedOptions<C>,
    ) -> Result<Vec<u32>> {
        self.look(queries, wanted, |call| self.counts(call))
    }

    fn within(
        &self,
        queries: ValidatedQueries<'_, C>,
        wanted: ValidatedOptions<C>,
    ) -> Result<RangeResult<C>> {
        self.look(queries, wanted, |call| self.found(call))
    }

    fn count_in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<Vec<u32>> {
        self.look_in_boxes(corners, mask, |call| self.counts(call))
    }

    fn in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<RangeResult<C>> {
        self.look_in_boxes(corners, mask, |call| self.found(call))
    }

    fn find_batches(
        &self,
        sought: RangeQuery<'_, C>,
        delivery: &mut Delivery<'_, '_>,
        show: &mut VisitRange<'_, C>,
    ) -> Result<ControlFlow<()>> {
        self.deliver_found(sought, delivery, show)
    }

    fn nearest_batches(
        &self,
        queries: ValidatedQueries<'_, C>,
        k: usize,
        wanted: ValidatedOptions<C>,
        delivery: &mut Delivery<'_, '_>,
        show: &mut VisitNearest<'_, C>,
    ) -> Result<ControlFlow<()>> {
        self.deliver_nearest(queries, k, wanted, delivery, show)
    }
}

impl<C: Coord> DeviceQueryBackend<C> for BucketIndex<C> {
    fn prepare(&self, stream: &Stream, wanted: ValidatedOptions<C>) -> Result<DeviceOptions<C>> {
        self.ids.check_device(stream)?;
        DeviceOptions::new(stream, wanted)
    }

    #[allow(clippy::too_many_arguments)]
    fn nearest_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, C>,
        k: usize,
        asked: &DeviceOptions<C>,
        ids: &mut Buffer<u32>,
        dist2: &mut Buffer<C>,
    ) -> Result<()> {
        self.check(stream, asked)?;
        let num_queries = self.num_queries(stream, queries)?;
        ids.check(stream, "ids of neighbors", num_queries.saturating_mul(k))?;
        dist2.check(stream, "distances of neighbors", num_queries.saturating_mul(k))?;
        if ids.is_empty() {
            return Ok(());
        }
        let mut layout = Layout::new();
        let rows = ResultRows { dist2: dist2.slice_mut(), ids: ids.slice_mut(), k: k as u64 };
        let queries = QueryView::all(self, queries);
        let plan = Nearest::plan(&mut layout, self, asked, queries, k);
        let temp = workspace.carve(stream, &layout, "k-d tree queries")?;
        self.wait(stream)?;
        // SAFETY: lengths have been checked, the borrows keep buffers apart, and buffers wait for the device before they are
        // freed.
        unsafe { plan.run(stream, &temp, self, asked, queries, rows) }
    }

    fn count_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        look: DeviceRangeQuery<'_, C>,
        counts: &mut Buffer<u32>,
    ) -> Result<()> {
        RangeLaunch::new(self, stream, look)?.count(workspace, counts)
    }

    fn find_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        look: DeviceRangeQuery<'_, C>,
        offsets: &mut Buffer<u64>,
        ids: &mut Buffer<u32>,
        dist2: Option<&mut Buffer<C>>,
    ) -> Result<()> {
        RangeLaunch::new(self, stream, look)?.find(workspace, offsets, ids, dist2)
    }

    fn find_all_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        look: DeviceRangeQuery<'_, C>,
    ) -> Result<DeviceWithin<C>> {
        RangeLaunch::new(self, stream, look)?.find_all(workspace)
    }
}

/// Rows of `k` entries, which are in the order of `ids`, in that of the ids themselves.
pub(crate) fn by_id<T: Copy + Send + Sync>(ids: &[u32], rows: &[T], k: usize) -> Result<Vec<T>> {
    let mut place = memory::vec_with_capacity(ids.len(), "places of rows")?;
    place.resize(ids.len(), 0_usize);
    for (i, &id) in ids.iter().enumerate() {
        place[id as usize] = i;
    }
    let mut sorted = memory::vec_with_capacity(rows.len(), "rows of the result")?;
    for i in place {
        sorted.extend_from_slice(&rows[i * k..(i + 1) * k]);
    }
    Ok(sorted)
}
