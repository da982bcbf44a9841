//! Query results in batches on a GPU.

use crate::batches::{
    BatchContext, BatchSource, Delivery, FinishedBatch, InputBuffer, RowBatches, RowLaunch, RowSplitter,
    items, split_equal_rows,
};
use crate::device::{Buffer, Layout, Stream};
use crate::error::Result;
use crate::primitives::permute::{Direction, permute_parts};
use crate::query::backend::ValidatedQueries;
use crate::query::batches::{RangeQuery, VisitNearest, VisitRange};
use crate::query::gpu::BucketIndex;
use crate::query::gpu::device_options::{DeviceOptions, QueryView};
use crate::query::gpu::nearest::Nearest;
use crate::query::gpu::within::{DeviceRangeMut, RangeLaunch, RangeView};
use crate::query::item_bytes;
use crate::query::options::ValidatedOptions;
use crate::query::within::RangeResultMut;
use kauri_kernels::query::nearest::ResultRows;
use kauri_kernels::thread::coord::Coord;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

impl<C: Coord> BucketIndex<C> {
    /// Delivers the result of a range query in batches.
    pub(crate) fn deliver_range(
        &self,
        query: RangeQuery<'_, C>,
        delivery: &mut Delivery<'_, '_>,
        visit: &mut VisitRange<'_, C>,
    ) -> Result<ControlFlow<()>> {
        let (stream, item_bytes) = (self.stream()?, query.item_bytes());
        let (options, from) = match query {
            RangeQuery::Within(queries, options) => {
                (DeviceOptions::new(&stream, options)?, RowInput::queries(self, &stream, queries)?)
            }
            RangeQuery::InBoxes(corners, mask) => (
                DeviceOptions::new(&stream, ValidatedOptions::points(mask.cloned()))?,
                RowInput::Boxes(corners),
            ),
        };
        let rows = RowSplitter::new(from.num_rows(self.dims), item_bytes, delivery.limits());
        let value_bytes = if matches!(from, RowInput::Boxes(_)) { 0 } else { size_of::<C>() };
        let mut batches =
            RowBatches::new(rows, value_bytes, |launch| self.launch_range(&options, &from, launch));
        delivery.run_pipeline(&stream, &mut batches, |delivery, rows, [offsets, ids, dist2]| {
            let (offsets, ids, dist2) = (items(offsets), items(ids), items(dist2));
            delivery.deliver(rows.len(), ids.len(), item_bytes, || {
                visit(rows.start, RangeResultMut { offsets, ids, dist2 })
            })
        })
    }

    /// Counts the points of a range of rows, and writes as many ids and distances as the arrays hold.
    fn launch_range(
        &self,
        options: &DeviceOptions<C>,
        from: &RowInput<'_, C>,
        launch: RowLaunch<'_>,
    ) -> Result<()> {
        let RowLaunch { stream, workspace, input, rows, offsets, ids, values, total } = launch;
        let (query, dist2) = match from {
            RowInput::Boxes(corners) => {
                let corners = &corners[rows.start * 2 * self.dims..rows.end * 2 * self.dims];
                (RangeView::InBoxes(input.upload(corners, "corners of boxes")?, options.mask()), None)
            }
            from => {
                let queries = from.queries_on(input, &rows, self.dims)?;
                (RangeView::Within(options, queries), Some(values.reserve("distances of points found")?))
            }
        };
        let range_launch = RangeLaunch::of(self, stream, query);
        let (plan, temp) = range_launch.prepare(workspace)?;
        // SAFETY: there is one more offset than rows, and points beyond the capacity of the arrays are not written; the pipeline keeps
        // arrays until they have been copied, and the input until the next batch.
        unsafe {
            let order = plan.offsets(&range_launch, &temp, offsets)?;
            total.send(stream, offsets)?;
            range_launch.emit(order, offsets.read_only(), DeviceRangeMut { ids, dist2 })
        }
    }

    /// Delivers the nearest neighbors in batches.
    pub(crate) fn deliver_nearest(
        &self,
        queries: ValidatedQueries<'_, C>,
        k: usize,
        options: ValidatedOptions<C>,
        delivery: &mut Delivery<'_, '_>,
        visit: &mut VisitNearest<'_, C>,
    ) -> Result<ControlFlow<()>> {
        let stream = self.stream()?;
        let options = DeviceOptions::new(&stream, options)?;
        let from = RowInput::queries(self, &stream, queries)?;
        let rows = split_equal_rows(from.num_rows(self.dims), k, item_bytes::<C>(), delivery.limits())?;
        let mut work = NearestWork { tree: self, options: &options, from, k, rows, drafted: 0..0 };
        delivery.run_pipeline(&stream, &mut work, |delivery, rows, [ids, dist2, _]| {
            let (ids, dist2) = (&*items(ids), &*items(dist2));
            delivery.deliver(rows.len(), ids.len(), item_bytes::<C>(), || visit(rows, ids, dist2))
        })
    }

    /// Returns the points' coordinates by id, on the device.
    fn coords_by_id(&self, stream: &Stream) -> Result<Arc<Buffer<C>>> {
        if let Some(coords) = &self.input_coords {
            return Ok(coords.clone());
        }
        let mut by_id = Buffer::uninitialized(&self.gpu, self.num_points() * self.dims, "points as queries")?;
        // SAFETY: every id belongs to a point, and the buffer waits for the device before it is freed.
        unsafe {
            permute_parts(
                stream,
                Direction::Scatter,
                self.dims,
                self.coords(),
                self.ids.slice(),
                by_id.slice_mut(),
            )
        }?;
        stream.synchronize()?;
        Ok(Arc::new(by_id))
    }
}

/// The input that each row of the result belongs to.
enum RowInput<'a, C> {
    /// Coordinates of queries in host memory, and the first excluded point, if points are excluded.
    Queries(&'a [C], Option<u32>),
    /// Corners of boxes in host memory.
    Boxes(&'a [C]),
    /// The points of the tree, by id, and the first excluded point, if points are excluded.
    SelfQuery(Arc<Buffer<C>>, Option<u32>),
}

impl<'a, C: Coord> RowInput<'a, C> {
    fn queries(tree: &BucketIndex<C>, stream: &Stream, queries: ValidatedQueries<'a, C>) -> Result<Self> {
        Ok(match queries {
            ValidatedQueries::Points { coords, first_excluded } => Self::Queries(coords, first_excluded),
            ValidatedQueries::SelfQuery { include_self } => {
                Self::SelfQuery(tree.coords_by_id(stream)?, (!include_self).then_some(0))
            }
        })
    }

    fn num_rows(&self, dims: usize) -> usize {
        match self {
            Self::Queries(coords, _) => coords.len() / dims,
            Self::Boxes(corners) => corners.len() / (2 * dims),
            Self::SelfQuery(coords, _) => coords.len() / dims,
        }
    }

    /// Returns the queries of a range of rows on the device.
    fn queries_on<'b>(
        &'b self,
        input: InputBuffer<'b>,
        rows: &Range<usize>,
        dims: usize,
    ) -> Result<QueryView<'b, C>> {
        let range = rows.start * dims..rows.end * dims;
        Ok(match self {
            Self::Queries(coords, excluded) => {
                let coords = input.upload(&coords[range], "queries")?;
                QueryView::of_points(coords).excluding(*excluded, rows.start)
            }
            Self::SelfQuery(coords, excluded) => {
                // SAFETY: there is a row for each point.
                let coords = unsafe { coords.slice().part(range.start, range.len()) };
                QueryView::of_points(coords).excluding(*excluded, rows.start)
            }
            Self::Boxes(_) => unreachable!("boxes are no queries"),
        })
    }
}

/// Nearest query in batches.
struct NearestWork<'a, C: Coord, R> {
    tree: &'a BucketIndex<C>,
    options: &'a DeviceOptions<C>,
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
        let (tree, options, k, len) = (self.tree, self.options, self.k, rows.len() * self.k);
        if len == 0 {
            return Ok(true);
        }
        let BatchContext { stream, workspace, input, arrays: [ids, dist2, _], .. } = context;
        let ids = ids.reserve(len, len, "ids of neighbors")?;
        let dist2 = dist2.reserve(len, len, "distances of neighbors")?;
        let queries = self.from.queries_on(input, &rows, tree.dims)?;
        let mut layout = Layout::new();
        let plan = Nearest::plan(&mut layout, tree, options, queries, k);
        let temp = workspace.carve(stream, &layout, "k-d tree queries")?;
        // SAFETY: there are `k` entries per row; the pipeline keeps the output arrays until they have been copied, and the input until the
        // next batch.
        unsafe { plan.run(stream, &temp, tree, options, queries, ResultRows { dist2, ids, k: k as u64 }) }?;
        Ok(true)
    }

    fn finish(&mut self, _: u64, _: BatchContext<'_>) -> Result<FinishedBatch<Self::Batch>> {
        let len = self.drafted.len() * self.k;
        let bytes = [len * size_of::<u32>(), len * size_of::<C>(), 0];
        Ok(FinishedBatch { bytes, batch: self.drafted.clone() })
    }
}
