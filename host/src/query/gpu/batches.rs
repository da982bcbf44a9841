//! Query results in batches on a GPU.

use crate::batches::{
    BatchContext, BatchSource, Delivery, FinishedBatch, InputBuffer, RowBatches, RowLaunch, RowSplitter,
    items, split_equal_rows,
};
use crate::device::{Buffer, Stream};
use crate::error::Result;
use crate::primitives::permute::{Direction, permute_parts};
use crate::query::backend::{NearestQuery, RangeQuery, Regions, ValidatedQueries};
use crate::query::batches::{VisitNearest, VisitRange};
use crate::query::gpu::BucketIndex;
use crate::query::gpu::device_options::{DeviceOptions, QueryView};
use crate::query::gpu::within::{DeviceRangeMut, RangeLaunch, RegionViews};
use crate::query::item_bytes;
use crate::query::within::RangeResultMut;
use cuda_std::mem::Slice;
use kauri_kernels::query::nearest::ResultRows;
use kauri_kernels::thread::coord::Coord;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Delivers the result of a range query in batches.
pub(super) fn deliver_range<C: Coord>(
    tree: &BucketIndex<C>,
    query: RangeQuery<'_, C>,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitRange<'_, C::Distance>,
) -> Result<ControlFlow<()>> {
    let (stream, item_bytes) = (tree.stream()?, query.item_bytes());
    let options = DeviceOptions::new(&stream, query.options.clone())?;
    let (input, value_bytes) = match query.regions {
        Regions::Within(queries) => (RowInput::queries(tree, &stream, queries)?, size_of::<C::Distance>()),
        Regions::InBoxes(corners, dims) => (RowInput::boxes(corners, dims), 0),
    };
    let rows = RowSplitter::new(query.num_rows(), item_bytes, delivery.limits());
    let mut batches =
        RowBatches::new(rows, value_bytes, |launch| launch_range(tree, &options, &input, launch));
    delivery.run_pipeline(&stream, &mut batches, |delivery, rows, [offsets, ids, dist2]| {
        let (offsets, ids, dist2) = (items(offsets), items(ids), items(dist2));
        delivery.deliver(rows.len(), ids.len(), item_bytes, || {
            visit(rows.start, RangeResultMut { offsets, ids, dist2 })
        })
    })
}

/// Counts the points of a range of rows, and writes ids and distances up to the capacity of the arrays.
fn launch_range<C: Coord>(
    tree: &BucketIndex<C>,
    options: &DeviceOptions<C::Distance>,
    from: &RowInput<'_, C>,
    launch: RowLaunch<'_>,
) -> Result<()> {
    let RowLaunch { stream, workspace, input, rows, offsets, ids, values, total } = launch;
    let (regions, dist2) = if from.are_boxes {
        (RegionViews::InBoxes(from.coords_on(input, &rows)?), None)
    } else {
        let queries = from.queries_on(input, &rows)?;
        (RegionViews::Within(queries), Some(values.reserve("distances of points found")?))
    };
    let launch = RangeLaunch { tree, stream, options, regions };
    // SAFETY: there is one more offset than rows, and points beyond the capacity of the arrays are not written; the pipeline keeps
    // arrays until they have been copied, and the input until the next batch.
    unsafe {
        let order = launch.offsets(workspace, offsets)?;
        total.send(stream, offsets)?;
        launch.emit(order, offsets.read_only(), DeviceRangeMut { ids, dist2 })
    }
}

/// Delivers the nearest neighbors in batches.
pub(super) fn deliver_nearest<C: Coord>(
    tree: &BucketIndex<C>,
    NearestQuery { queries, k, options }: NearestQuery<'_, C>,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitNearest<'_, C::Distance>,
) -> Result<ControlFlow<()>> {
    let stream = tree.stream()?;
    let options = DeviceOptions::new(&stream, options.clone())?;
    let from = RowInput::queries(tree, &stream, queries)?;
    let rows = split_equal_rows(queries.len, k, item_bytes::<C::Distance>(), delivery.limits())?;
    let mut work = NearestWork { tree, options: &options, from, k, rows, drafted: 0..0 };
    delivery.run_pipeline(&stream, &mut work, |delivery, rows, [ids, dist2, _]| {
        let (ids, dist2) = (&*items(ids), &*items(dist2));
        delivery.deliver(rows.len(), ids.len(), item_bytes::<C::Distance>(), || visit(rows, ids, dist2))
    })
}

impl<C: Coord> BucketIndex<C> {
    /// Returns the points' coordinates by id, on the device.
    fn coords_by_id(&self, stream: &Stream) -> Result<Arc<Buffer<C>>> {
        if let Some(coords) = &self.input_coords {
            return Ok(coords.clone());
        }
        let mut by_id = Buffer::uninitialized(&self.gpu, self.num_points() * self.dims, "points as queries")?;
        let (coords, rows, to) = (self.coords(), self.own_rows(stream)?, by_id.slice_mut());
        // SAFETY: every row belongs to a point, and the buffer waits for the device before it is freed.
        unsafe { permute_parts(stream, Direction::Scatter, self.dims, coords, rows, to) }?;
        stream.synchronize()?;
        Ok(Arc::new(by_id))
    }

    /// Returns the id of the point of each row of a query for all points, if that is not the row.
    fn ids_by_row(&self, stream: &Stream) -> Result<Option<Buffer<u32>>> {
        if self.has_point.is_empty() {
            return Ok(None);
        }
        let mut by_row = Buffer::uninitialized(&self.gpu, self.ids.len(), "points as queries")?;
        // SAFETY: as in `coords_by_id`.
        unsafe {
            let (ids, rows, to) = (self.ids.slice(), self.own_rows(stream)?, by_row.slice_mut());
            permute_parts(stream, Direction::Scatter, 1, ids, rows, to)?;
        }
        stream.synchronize()?;
        Ok(Some(by_row))
    }
}

/// The input that the rows of the result belong to: queries or boxes.
struct RowInput<'a, C> {
    coords: InputCoords<'a, C>,
    /// Coordinates of a row.
    row_len: usize,
    are_boxes: bool,
    /// Query `i` excludes the point with this id plus `i`.
    first_excluded: Option<u32>,
    /// The id of the point that each query excludes, in place of `first_excluded`.
    excluded: Option<Buffer<u32>>,
}

/// Coordinates, row after row.
enum InputCoords<'a, C> {
    Host(&'a [C]),
    /// The points of the tree by id.
    Device(Arc<Buffer<C>>),
}

impl<'a, C: Coord> RowInput<'a, C> {
    fn queries(tree: &BucketIndex<C>, stream: &Stream, queries: ValidatedQueries<'a, C>) -> Result<Self> {
        let coords = match queries.coords {
            Some(coords) => InputCoords::Host(coords),
            None => InputCoords::Device(tree.coords_by_id(stream)?),
        };
        let (row_len, mut first_excluded) = (queries.dims, queries.first_excluded);
        let excludes_own = queries.coords.is_none() && first_excluded.is_some();
        let excluded = if excludes_own { tree.ids_by_row(stream)? } else { None };
        if excluded.is_some() {
            first_excluded = None;
        }
        Ok(Self { coords, row_len, are_boxes: false, first_excluded, excluded })
    }

    fn boxes(corners: &'a [C], dims: usize) -> Self {
        let coords = InputCoords::Host(corners);
        Self { coords, row_len: 2 * dims, are_boxes: true, first_excluded: None, excluded: None }
    }

    /// Returns the coordinates of a range of rows on the device.
    fn coords_on<'b>(&'b self, input: InputBuffer<'b>, rows: &Range<usize>) -> Result<Slice<'b, C>> {
        let range = rows.start * self.row_len..rows.end * self.row_len;
        match &self.coords {
            InputCoords::Host(coords) => input.upload(&coords[range], "queries"),
            // SAFETY: there is a row for each point.
            InputCoords::Device(coords) => Ok(unsafe { coords.slice().part(range.start, range.len()) }),
        }
    }

    /// Returns the queries of a range of rows on the device.
    fn queries_on<'b>(&'b self, input: InputBuffer<'b>, rows: &Range<usize>) -> Result<QueryView<'b, C>> {
        let coords = self.coords_on(input, rows)?;
        let queries = QueryView::of_points(coords).excluding(self.first_excluded, rows.start);
        let Some(ids) = &self.excluded else { return Ok(queries) };
        // SAFETY: there is an id for each row.
        let excluded = unsafe { ids.slice().part(rows.start, rows.len()) };
        Ok(QueryView { excluded, ..queries })
    }
}

/// Nearest query in batches.
struct NearestWork<'a, C: Coord, R> {
    tree: &'a BucketIndex<C>,
    options: &'a DeviceOptions<C::Distance>,
    from: RowInput<'a, C>,
    k: usize,
    rows: R,
    /// The rows of the current batch.
    drafted: Range<usize>,
}

impl<C: Coord, R: Iterator<Item = Range<usize>>> BatchSource for NearestWork<'_, C, R> {
    /// The rows of the batch; its arrays are ids and distances.
    type Batch = Range<usize>;

    fn start(&mut self, context: BatchContext<'_>) -> Result<bool> {
        let Some(rows) = self.rows.next() else { return Ok(false) };
        self.drafted = rows.clone();
        let (k, len) = (self.k as u64, rows.len() * self.k);
        if len == 0 {
            return Ok(true);
        }
        let BatchContext { stream, workspace, input, arrays: [ids, dist2, _], .. } = context;
        let ids = ids.reserve(len, len, "ids of neighbors")?;
        let dist2 = dist2.reserve(len, len, "distances of neighbors")?;
        let (queries, rows) = (self.from.queries_on(input, &rows)?, ResultRows { dist2, ids, k });
        // SAFETY: there are `k` entries per row; the pipeline keeps the output arrays until they have been copied, and the input until the
        // next batch.
        unsafe { self.tree.launch_nearest(stream, workspace, self.options, queries, rows) }?;
        Ok(true)
    }

    fn finish(&mut self, _: u64, _: BatchContext<'_>) -> Result<FinishedBatch<Self::Batch>> {
        let len = self.drafted.len() * self.k;
        let bytes = [len * size_of::<u32>(), len * size_of::<C::Distance>(), 0];
        Ok(FinishedBatch { bytes, batch: self.drafted.clone() })
    }
}
