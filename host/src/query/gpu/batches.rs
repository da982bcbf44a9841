//! Results in batches on a GPU.

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
use crate::query::gpu::within::{DeviceRangeMut, RangeLaunch, Within};
use crate::query::item_bytes;
use crate::query::options::ValidatedOptions;
use crate::query::within::RangeResultMut;
use kauri_kernels::query::nearest::ResultRows;
use kauri_kernels::thread::coord::Coord;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

impl<C: Coord> BucketIndex<C> {
    /// Delivers the points that are looked for.
    pub(crate) fn deliver_found(
        &self,
        sought: RangeQuery<'_, C>,
        delivery: &mut Delivery<'_, '_>,
        show: &mut VisitRange<'_, C>,
    ) -> Result<ControlFlow<()>> {
        let (stream, item_bytes) = (self.stream()?, sought.item_bytes());
        let (asked, from) = match sought {
            RangeQuery::Within(queries, wanted) => {
                (DeviceOptions::new(&stream, wanted)?, Origin::queries(self, &stream, queries)?)
            }
            RangeQuery::InBoxes(corners, mask) => (
                DeviceOptions::new(&stream, ValidatedOptions::points(mask.cloned()))?,
                Origin::Boxes(corners),
            ),
        };
        let rows = RowSplitter::new(from.num_rows(self.dims), item_bytes, delivery.limits());
        let value_bytes = if matches!(from, Origin::Boxes(_)) { 0 } else { size_of::<C>() };
        let mut batches =
            RowBatches::new(rows, value_bytes, |launch| self.launch_range(&asked, &from, launch));
        delivery.run_pipeline(&stream, &mut batches, |delivery, rows, [offsets, ids, dist2]| {
            let (offsets, ids, dist2) = (items(offsets), items(ids), items(dist2));
            delivery.deliver(rows.len(), ids.len(), item_bytes, || {
                show(rows.start, RangeResultMut { offsets, ids, dist2 })
            })
        })
    }

    /// Counts the points of a range of rows, and writes as many ids and distances as the arrays hold.
    fn launch_range(
        &self,
        asked: &DeviceOptions<C>,
        from: &Origin<'_, C>,
        launch: RowLaunch<'_>,
    ) -> Result<()> {
        let RowLaunch { stream, workspace, input, rows, offsets, ids, values, total } = launch;
        let (within, dist2) = match from {
            Origin::Boxes(corners) => {
                let corners = &corners[rows.start * 2 * self.dims..rows.end * 2 * self.dims];
                (Within::Boxes(input.upload(corners, "corners of boxes")?, asked.mask()), None)
            }
            from => {
                let queries = from.queries_on(input, &rows, self.dims)?;
                (Within::Distance(asked, queries), Some(values.reserve("distances of points found")?))
            }
        };
        let call = RangeLaunch::of(self, stream, within);
        let (plan, temp) = call.prepare(workspace)?;
        // SAFETY: there is one more offset than rows, and points beyond the capacity of the arrays are not written; the pipeline keeps
        // arrays until they have been copied, and the input until the next batch.
        unsafe {
            let through = plan.offsets(&call, &temp, offsets)?;
            total.send(stream, offsets)?;
            call.emit(through, offsets.read_only(), DeviceRangeMut { ids, dist2 })
        }
    }

    /// Delivers the nearest neighbors.
    pub(crate) fn deliver_nearest(
        &self,
        queries: ValidatedQueries<'_, C>,
        k: usize,
        wanted: ValidatedOptions<C>,
        delivery: &mut Delivery<'_, '_>,
        show: &mut VisitNearest<'_, C>,
    ) -> Result<ControlFlow<()>> {
        let stream = self.stream()?;
        let asked = DeviceOptions::new(&stream, wanted)?;
        let from = Origin::queries(self, &stream, queries)?;
        let rows = split_equal_rows(from.num_rows(self.dims), k, item_bytes::<C>(), delivery.limits())?;
        let mut finding = FindingNearest { tree: self, asked: &asked, from, k, rows, drafted: 0..0 };
        delivery.run_pipeline(&stream, &mut finding, |delivery, rows, [ids, dist2, _]| {
            let (ids, dist2) = (&*items(ids), &*items(dist2));
            delivery.deliver(rows.len(), ids.len(), item_bytes::<C>(), || show(rows, ids, dist2))
        })
    }

    /// The points' coordinates in the order of their ids, on the device.
    fn coords_by_id(&self, stream: &Stream) -> Result<Arc<Buffer<C>>> {
        if let Some(given) = &self.given {
            return Ok(given.clone());
        }
        let mut by_id = Buffer::uninitialized(&self.gpu, self.num_points() * self.dims, "points as queries")?;
        // SAFETY: every id is that of a point, and the buffer waits for the device before it is freed.
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

/// Where rows come from.
enum Origin<'a, C> {
    /// Coordinates of queries in host memory, and the first point that they leave out, if they do.
    Queries(&'a [C], Option<u32>),
    /// Corners of boxes in host memory.
    Boxes(&'a [C]),
    /// The points of the tree, by id, and the first point that they leave out, if they do.
    Own(Arc<Buffer<C>>, Option<u32>),
}

impl<'a, C: Coord> Origin<'a, C> {
    fn queries(tree: &BucketIndex<C>, stream: &Stream, queries: ValidatedQueries<'a, C>) -> Result<Self> {
        Ok(match queries {
            ValidatedQueries::Points { coords, first_left_out } => Self::Queries(coords, first_left_out),
            ValidatedQueries::Own { itself } => Self::Own(tree.coords_by_id(stream)?, (!itself).then_some(0)),
        })
    }

    fn num_rows(&self, dims: usize) -> usize {
        match self {
            Self::Queries(coords, _) => coords.len() / dims,
            Self::Boxes(corners) => corners.len() / (2 * dims),
            Self::Own(coords, _) => coords.len() / dims,
        }
    }

    /// Some rows on the device, as queries.
    fn queries_on<'b>(
        &'b self,
        input: InputBuffer<'b>,
        rows: &Range<usize>,
        dims: usize,
    ) -> Result<QueryView<'b, C>> {
        let range = rows.start * dims..rows.end * dims;
        Ok(match self {
            Self::Queries(coords, left_out) => {
                let coords = input.upload(&coords[range], "queries")?;
                QueryView::of_points(coords).leaving_out(*left_out, rows.start)
            }
            Self::Own(coords, left_out) => {
                // SAFETY: rows are those of the points.
                let coords = unsafe { coords.slice().part(range.start, range.len()) };
                QueryView::of_points(coords).leaving_out(*left_out, rows.start)
            }
            Self::Boxes(_) => unreachable!("boxes are no queries"),
        })
    }
}

/// Finds the nearest points of some rows.
struct FindingNearest<'a, C: Coord, R> {
    tree: &'a BucketIndex<C>,
    asked: &'a DeviceOptions<C>,
    from: Origin<'a, C>,
    k: usize,
    rows: R,
    /// Those of the batch that is being made.
    drafted: Range<usize>,
}

impl<C: Coord, R: Iterator<Item = Range<usize>>> BatchSource for FindingNearest<'_, C, R> {
    /// The rows; the arrays are ids and distances.
    type Batch = Range<usize>;

    fn start(&mut self, context: BatchContext<'_>) -> Result<bool> {
        let Some(rows) = self.rows.next() else { return Ok(false) };
        self.drafted = rows.clone();
        let (tree, asked, k, len) = (self.tree, self.asked, self.k, rows.len() * self.k);
        if len == 0 {
            return Ok(true);
        }
        let BatchContext { stream, workspace, input, arrays: [ids, dist2, _], .. } = context;
        let ids = ids.reserve(len, len, "ids of neighbors")?;
        let dist2 = dist2.reserve(len, len, "distances of neighbors")?;
        let queries = self.from.queries_on(input, &rows, tree.dims)?;
        let mut layout = Layout::new();
        let plan = Nearest::plan(&mut layout, tree, asked, queries, k);
        let temp = workspace.carve(stream, &layout, "k-d tree queries")?;
        // SAFETY: there are `k` places a row; the pipeline keeps arrays until they have been copied, and what is read until the next
        // batch.
        unsafe { plan.run(stream, &temp, tree, asked, queries, ResultRows { dist2, ids, k: k as u64 }) }?;
        Ok(true)
    }

    fn finish(&mut self, _: u64, _: BatchContext<'_>) -> Result<FinishedBatch<Self::Batch>> {
        let len = self.drafted.len() * self.k;
        let bytes = [len * size_of::<u32>(), len * size_of::<C>(), 0];
        Ok(FinishedBatch { bytes, batch: self.drafted.clone() })
    }
}
