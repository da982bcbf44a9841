//! Query results in batches on a GPU.

use crate::batches::{Delivery, Input, Made, Place, Rows, Work, equal_rows, items};
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
use cuda_std::mem::SliceMut;
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
        let rows = Rows::new(from.num_rows(self.dims), item_bytes, delivery.limits());
        let mut work = RangeWork { tree: self, options: &options, from, rows, drafted: (0..0, 0) };
        delivery.pipelined(&stream, &mut work, |delivery, rows, [offsets, ids, dist2]| {
            let (offsets, ids, dist2) = (items(offsets), items(ids), items(dist2));
            delivery.hand_over(rows.len(), ids.len(), item_bytes, || {
                visit(rows.start, RangeResultMut { offsets, ids, dist2 })
            })
        })
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
        let rows = equal_rows(from.num_rows(self.dims), k, item_bytes::<C>(), delivery.limits())?;
        let mut work = NearestWork { tree: self, options: &options, from, k, rows, drafted: 0..0 };
        delivery.pipelined(&stream, &mut work, |delivery, rows, [ids, dist2, _]| {
            let (ids, dist2) = (&*items(ids), &*items(dist2));
            delivery.hand_over(rows.len(), ids.len(), item_bytes::<C>(), || visit(rows, ids, dist2))
        })
    }

    /// Returns the points' coordinates by id, on the device.
    fn coords_by_id(&self, stream: &Stream) -> Result<Arc<Buffer<C>>> {
        if let Some(input_coords) = &self.input_coords {
            return Ok(input_coords.clone());
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
        input: Input<'b>,
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

/// Range query in batches: counts the points of some rows, and finds those of the rows that fit into a batch.
struct RangeWork<'a, C: Coord> {
    tree: &'a BucketIndex<C>,
    options: &'a DeviceOptions<C>,
    from: RowInput<'a, C>,
    rows: Rows,
    /// The counted rows of the current batch, and the number of points that have been allocated.
    drafted: (Range<usize>, u64),
}

impl<C: Coord> RangeWork<'_, C> {
    /// Counts the points of some rows, sends their total to the host unless it `is_known`, and finds up to `capacity` points.
    fn draft(&mut self, place: Place<'_>, part: Range<usize>, capacity: u64, is_known: bool) -> Result<()> {
        let (tree, options, dims) = (self.tree, self.options, self.tree.dims);
        let len = usize::try_from(capacity).unwrap_or(usize::MAX);
        let most = usize::try_from(self.rows.most_items()).unwrap_or(usize::MAX);
        let [offsets, ids, dist2] = place.parts;
        let offsets: SliceMut<'_, u64> = offsets.of(part.len() + 1, usize::MAX, "offsets of rows")?;
        let ids = ids.of(len, most, "ids of points found")?;
        let (within, dist2) = match &self.from {
            RowInput::Boxes(corners) => {
                let corners = &corners[part.start * 2 * dims..part.end * 2 * dims];
                (RangeView::InBoxes(place.input.upload(corners, "corners of boxes")?, options.mask()), None)
            }
            from => {
                let queries = from.queries_on(place.input, &part, dims)?;
                let dist2 = dist2.of(len, most, "distances of points found")?;
                (RangeView::Within(options, queries), Some(dist2))
            }
        };
        let launch = RangeLaunch::of(tree, place.stream, within);
        let (plan, temp) = launch.prepare(place.workspace)?;
        // SAFETY: there is one offset more than rows, and points beyond the capacity are not written; the pipeline keeps the output arrays
        // until they have been copied, and the input until the next batch.
        unsafe {
            let order = plan.offsets(&launch, &temp, offsets)?;
            if !is_known {
                place.telling.tell(place.stream, offsets.read_only().part(part.len(), 1))?;
            }
            launch.emit(order, offsets.read_only(), DeviceRangeMut { ids, dist2 })?;
        }
        self.drafted = (part, capacity);
        Ok(())
    }
}

impl<C: Coord> Work for RangeWork<'_, C> {
    /// The rows of the batch; its arrays are offsets, ids and distances.
    type Batch = Range<usize>;

    fn make(&mut self, place: Place<'_>) -> Result<bool> {
        let Some(part) = self.rows.next_part() else { return Ok(false) };
        let capacity = self.rows.likely_items(part.len());
        self.draft(place, part, capacity, false)?;
        Ok(true)
    }

    fn settle(&mut self, total: u64, mut place: Place<'_>) -> Result<Made<Self::Batch>> {
        let (part, capacity) = self.drafted.clone();
        let (num_rows, num_items) = self.rows.fit(part.len(), total, || {
            let offsets = place.parts[0].reborrow().of(part.len() + 1, usize::MAX, "offsets of rows")?;
            // SAFETY: the draft has written an offset for each row, and the end.
            unsafe { place.stream.read(offsets.read_only()) }
        })?;
        if num_items > capacity {
            // Draft again with the known capacity, once the input is no longer in use.
            place.stream.synchronize()?;
            self.draft(place, part.clone(), num_items, true)?;
        }
        self.rows.took(num_rows, num_items);
        let len = num_items as usize;
        let distance_bytes = if matches!(self.from, RowInput::Boxes(_)) { 0 } else { len * size_of::<C>() };
        let bytes = [(num_rows + 1) * size_of::<u64>(), len * size_of::<u32>(), distance_bytes];
        Ok(Made { bytes, batch: part.start..part.start + num_rows })
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

impl<C: Coord, R: Iterator<Item = Range<usize>>> Work for NearestWork<'_, C, R> {
    /// The rows of the batch; its arrays are ids and distances.
    type Batch = Range<usize>;

    fn make(&mut self, place: Place<'_>) -> Result<bool> {
        let Some(rows) = self.rows.next() else { return Ok(false) };
        self.drafted = rows.clone();
        let (tree, options, k, len) = (self.tree, self.options, self.k, rows.len() * self.k);
        if len == 0 {
            return Ok(true);
        }
        let Place { stream, workspace, input, parts: [ids, dist2, _], .. } = place;
        let ids = ids.of(len, len, "ids of neighbors")?;
        let dist2 = dist2.of(len, len, "distances of neighbors")?;
        let queries = self.from.queries_on(input, &rows, tree.dims)?;
        let mut layout = Layout::new();
        let plan = Nearest::plan(&mut layout, tree, options, queries, k);
        let temp = workspace.carve(stream, &layout, "k-d tree queries")?;
        // SAFETY: there are `k` entries per row; the pipeline keeps the output arrays until they have been copied, and the input until the
        // next batch.
        unsafe { plan.run(stream, &temp, tree, options, queries, ResultRows { dist2, ids, k: k as u64 }) }?;
        Ok(true)
    }

    fn settle(&mut self, _: u64, _: Place<'_>) -> Result<Made<Self::Batch>> {
        let len = self.drafted.len() * self.k;
        let bytes = [len * size_of::<u32>(), len * size_of::<C>(), 0];
        Ok(Made { bytes, batch: self.drafted.clone() })
    }
}
