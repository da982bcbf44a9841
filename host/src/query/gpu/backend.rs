//! The query backend of every tree on a GPU, with queries and results in host memory or in device memory.

use crate::batches::Delivery;
use crate::device::{Buffer, Stream, Workspace};
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::Ranges;
use crate::point::with_dims;
use crate::primitives::cpu::bounds::bounds;
use crate::query::backend::{
    DeviceNearest, DeviceQueryBackend, DeviceRange, DeviceRows, DeviceVisit, LaunchVisits, NearestQuery,
    NearestRows, QueryBackend, RangeQuery, Regions, ValidatedQueries,
};
use crate::query::batches::{VisitNearest, VisitRange};
use crate::query::gpu::device_options::{DeviceOptions, QueryView};
use crate::query::gpu::within::{RangeLaunch, RegionViews};
use crate::query::gpu::{BucketIndex, batches};
use crate::query::ids::rows_by_id;
use crate::query::on_device::{DeviceQueries, DeviceWithin};
use crate::query::options::ValidatedOptions;
use crate::query::within::RangeResult;
use kauri_kernels::query::nearest::ResultRows;
use kauri_kernels::thread::coord::Coord;
use std::ops::{ControlFlow, Range};

/// Maximum bytes of queries and results on the device at a time; more are processed in batches.
const BATCH_BYTES: usize = 1 << 30;
/// The label of reordered result rows.
const RESULT: &str = "rows of the result";

impl<C: Coord> QueryBackend<C> for BucketIndex<C> {
    fn check_queries(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: &ValidatedOptions<C::Distance>,
    ) -> Result<()> {
        let stream = self.stream()?;
        with_dims!(self.dims, D => {
            options.check_queries(queries, self.bounds::<D>(&stream)?, || self.coords_to_host(&stream))
        })
    }

    fn nearest(
        &self,
        NearestQuery { queries, k, options }: NearestQuery<'_, C>,
        (mut ids, mut dist2): NearestRows<C::Distance>,
    ) -> Result<NearestRows<C::Distance>> {
        if queries.len == 0 || k == 0 {
            return Ok((ids, dist2));
        }
        let stream = self.stream()?;
        let mut workspace = Workspace::new(&self.gpu);
        let options = DeviceOptions::new(&stream, options.clone())?;
        let query_bytes =
            (self.dims * size_of::<C>()).saturating_add(k.saturating_mul(size_of::<C::Distance>() + 4));
        let batch = (BATCH_BYTES / query_bytes).clamp(1, queries.len);
        for range in Ranges::new(queries.len, batch).iter() {
            let mut batch_dist2 =
                Buffer::uninitialized(&self.gpu, range.len() * k, "distances of neighbors")?;
            let mut batch_ids = Buffer::uninitialized(&self.gpu, range.len() * k, "ids of neighbors")?;
            let rows = ResultRows { dist2: batch_dist2.slice_mut(), ids: batch_ids.slice_mut(), k: k as u64 };
            let mut uploaded = None;
            let batch_queries = self.queries_on(&stream, queries, range, &mut uploaded)?;
            // SAFETY: the buffers live until the results have been copied; a row belongs to one query.
            unsafe { self.launch_nearest(&stream, &mut workspace, &options, batch_queries, rows)? };
            batch_ids.append_to(&stream, &mut ids)?;
            batch_dist2.append_to(&stream, &mut dist2)?;
        }
        if queries.coords.is_none() && batch < queries.len && self.input_coords.is_none() {
            // The rows of several batches are in the order of the tree.
            let order = self.own_rows_to_vec(&stream)?;
            return Ok((rows_by_id(&order, &ids, k, RESULT)?, rows_by_id(&order, &dist2, k, RESULT)?));
        }
        Ok((ids, dist2))
    }

    fn count(&self, query: RangeQuery<'_, C>) -> Result<Vec<u32>> {
        self.with_range(query, |launch| {
            let mut counts = Buffer::uninitialized(&self.gpu, launch.num_rows(), "counts of points")?;
            launch.count(&mut Workspace::new(&self.gpu), &mut counts)?;
            counts.to_vec(launch.stream)
        })
    }

    fn find(&self, query: RangeQuery<'_, C>) -> Result<RangeResult<C::Distance>> {
        self.with_range(query, |launch| {
            let (stream, found) = (launch.stream, launch.find_all(&mut Workspace::new(&self.gpu))?);
            let offsets = found.offsets.to_vec(stream)?;
            let (count, item_bytes) = (found.ids.len() as u64, query.item_bytes());
            memory::check_result(count, item_bytes, "points found")?;
            let copied = || {
                let (ids, dist2) = (found.ids.to_vec(stream)?, found.dist2.to_vec(stream)?);
                Ok(RangeResult { offsets, ids, dist2 })
            };
            copied().map_err(|error: Error| error.of_result(count, item_bytes))
        })
    }

    fn range_batches(
        &self,
        query: RangeQuery<'_, C>,
        delivery: &mut Delivery<'_, '_>,
        visit: &mut VisitRange<'_, C::Distance>,
    ) -> Result<ControlFlow<()>> {
        batches::deliver_range(self, query, delivery, visit)
    }

    fn nearest_batches(
        &self,
        query: NearestQuery<'_, C>,
        delivery: &mut Delivery<'_, '_>,
        visit: &mut VisitNearest<'_, C::Distance>,
    ) -> Result<ControlFlow<()>> {
        batches::deliver_nearest(self, query, delivery, visit)
    }
}

impl<C: Coord> DeviceQueryBackend<C> for BucketIndex<C> {
    fn prepare(
        &self,
        stream: &Stream,
        options: ValidatedOptions<C::Distance>,
    ) -> Result<DeviceOptions<C::Distance>> {
        self.ids.check_device(stream)?;
        DeviceOptions::new(stream, options)
    }

    fn nearest_on(&self, query: DeviceNearest<'_, C>) -> Result<()> {
        let DeviceNearest { stream, workspace, queries, k, options, ids, dist2 } = query;
        self.check(stream, options)?;
        let num_queries = self.num_queries(stream, queries)?;
        ids.check(stream, "ids of neighbors", num_queries.saturating_mul(k))?;
        dist2.check(stream, "distances of neighbors", num_queries.saturating_mul(k))?;
        if ids.is_empty() {
            return Ok(());
        }
        let rows = ResultRows { dist2: dist2.slice_mut(), ids: ids.slice_mut(), k: k as u64 };
        self.wait(stream)?;
        // SAFETY: lengths have been checked, the borrows keep buffers apart, and buffers wait for the device before they are
        // freed.
        unsafe {
            self.launch_nearest(stream, workspace, options, QueryView::all(self, stream, queries)?, rows)
        }
    }

    fn visit_on(&self, visit: DeviceVisit<'_, C>, launch: &mut LaunchVisits<'_, C>) -> Result<()> {
        let DeviceVisit { stream, workspace, queries, options } = visit;
        self.check(stream, options)?;
        if self.num_queries(stream, queries)? == 0 {
            return Ok(());
        }
        self.wait(stream)?;
        // SAFETY: the borrow keeps the queries, and buffers wait for the device before they are freed.
        unsafe {
            self.launch_visits(stream, workspace, options, QueryView::all(self, stream, queries)?, launch)
        }
    }

    fn count_on(&self, range: DeviceRange<'_, C>, counts: &mut Buffer<u32>) -> Result<()> {
        RangeLaunch::new(self, range.stream, range.query)?.count(range.workspace, counts)
    }

    fn find_on(&self, range: DeviceRange<'_, C>, rows: DeviceRows<'_, C::Distance>) -> Result<()> {
        RangeLaunch::new(self, range.stream, range.query)?.find(range.workspace, rows)
    }

    fn find_all_on(&self, range: DeviceRange<'_, C>) -> Result<DeviceWithin<C::Distance>> {
        RangeLaunch::new(self, range.stream, range.query)?.find_all(range.workspace)
    }
}

impl<C: Coord> BucketIndex<C> {
    /// Copies the rows of the slots' points in a query for all points to host memory.
    fn own_rows_to_vec(&self, stream: &Stream) -> Result<Vec<u32>> {
        self.own_rows(stream)?;
        self.rows.get().unwrap_or(&self.ids).to_vec(stream)
    }

    /// Copies the coordinates of the points, by id, to host memory.
    fn coords_to_host(&self, stream: &Stream) -> Result<Vec<C>> {
        match &self.input_coords {
            Some(coords) => coords.to_vec(stream),
            None => {
                let (rows, coords) = (self.own_rows_to_vec(stream)?, self.padded_coords.to_vec(stream)?);
                rows_by_id(&rows, &coords, self.dims, "points as queries")
            }
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

    /// Runs a range query whose queries or boxes are in host memory.
    fn with_range<R>(
        &self,
        query: RangeQuery<'_, C>,
        run: impl FnOnce(RangeLaunch<'_, C>) -> Result<R>,
    ) -> Result<R> {
        let stream = &self.stream()?;
        let options = &DeviceOptions::new(stream, query.options.clone())?;
        let mut uploaded = None;
        let regions = match query.regions {
            Regions::Within(queries) => {
                RegionViews::Within(self.queries_on(stream, queries, 0..queries.len, &mut uploaded)?)
            }
            Regions::InBoxes(corners, _) => RegionViews::InBoxes(
                uploaded.insert(Buffer::from_slice(stream, corners, "corners of boxes")?).slice(),
            ),
        };
        run(RangeLaunch { tree: self, stream, options, regions })
    }

    /// Uploads a range of queries; the index's own points are used where they are.
    fn queries_on<'a>(
        &'a self,
        stream: &Stream,
        queries: ValidatedQueries<'_, C>,
        range: Range<usize>,
        uploaded: &'a mut Option<Buffer<C>>,
    ) -> Result<QueryView<'a, C>> {
        Ok(match queries.coords {
            Some(coords) => {
                let coords = &coords[range.start * self.dims..range.end * self.dims];
                let coords = uploaded.insert(Buffer::from_slice(stream, coords, "queries")?);
                QueryView::of_points(coords.slice()).excluding(queries.first_excluded, range.start)
            }
            // SAFETY: a self-query has a query for each point, so the range is one of points.
            None => unsafe { QueryView::self_query(self, stream, range, queries.first_excluded.is_none())? },
        })
    }

    /// Returns the number of queries, after checking that they are whole points on the stream's device.
    pub(super) fn num_queries(&self, stream: &Stream, queries: DeviceQueries<'_, C>) -> Result<usize> {
        match queries {
            DeviceQueries::Coordinates(coords) => {
                let num_queries = coords.len() / self.dims;
                coords.check(stream, "coordinates of the queries", num_queries * self.dims)?;
                Ok(num_queries)
            }
            DeviceQueries::SelfQuery { .. } => Ok(self.num_points()),
        }
    }
}
