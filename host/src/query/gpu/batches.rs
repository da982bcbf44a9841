//! Results in batches on a GPU.

use crate::batches::{Delivery, Input, Made, Place, Rows, Work, equal_rows, items};
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
use cuda_std::mem::SliceMut;
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
        let rows = Rows::new(from.num_rows(self.dims), item_bytes, delivery.limits());
        let mut finding = Finding { tree: self, asked: &asked, from, rows, drafted: (0..0, 0) };
        delivery.pipelined(&stream, &mut finding, |delivery, rows, [offsets, ids, dist2]| {
            let (offsets, ids, dist2) = (items(offsets), items(ids), items(dist2));
            delivery.hand_over(rows.len(), ids.len(), item_bytes, || {
                show(rows.start, RangeResultMut { offsets, ids, dist2 })
            })
        })
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
        let rows = equal_rows(from.num_rows(self.dims), k, item_bytes::<C>(), delivery.limits())?;
        let mut finding = FindingNearest { tree: self, asked: &asked, from, k, rows, drafted: 0..0 };
        delivery.pipelined(&stream, &mut finding, |delivery, rows, [ids, dist2, _]| {
            let (ids, dist2) = (&*items(ids), &*items(dist2));
            delivery.hand_over(rows.len(), ids.len(), item_bytes::<C>(), || show(rows, ids, dist2))
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
        input: Input<'b>,
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

/// Counts the points of some rows, and finds those of as many as fit.
struct Finding<'a, C: Coord> {
    tree: &'a BucketIndex<C>,
    asked: &'a DeviceOptions<C>,
    from: Origin<'a, C>,
    rows: Rows,
    /// The rows of the batch that is being made, and how many of their points have room.
    drafted: (Range<usize>, u64),
}

impl<C: Coord> Finding<'_, C> {
    /// Counts the points of some rows, tells their number if it is not known, and finds as many as are to have room.
    fn draft(&mut self, place: Place<'_>, part: Range<usize>, room: u64, is_known: bool) -> Result<()> {
        let (tree, asked, dims) = (self.tree, self.asked, self.tree.dims);
        let len = usize::try_from(room).unwrap_or(usize::MAX);
        let most = usize::try_from(self.rows.most_items()).unwrap_or(usize::MAX);
        let [offsets, ids, dist2] = place.parts;
        let offsets: SliceMut<'_, u64> = offsets.of(part.len() + 1, usize::MAX, "offsets of rows")?;
        let ids = ids.of(len, most, "ids of points found")?;
        let (within, dist2) = match &self.from {
            Origin::Boxes(corners) => {
                let corners = &corners[part.start * 2 * dims..part.end * 2 * dims];
                (Within::Boxes(place.input.upload(corners, "corners of boxes")?, asked.mask()), None)
            }
            from => {
                let queries = from.queries_on(place.input, &part, dims)?;
                let dist2 = dist2.of(len, most, "distances of points found")?;
                (Within::Distance(asked, queries), Some(dist2))
            }
        };
        let call = RangeLaunch::of(tree, place.stream, within);
        let (plan, temp) = call.prepare(place.workspace)?;
        // SAFETY: there is an offset more than rows, and points for which there is no room are left out; the pipeline keeps arrays
        // until they have been copied, and what is read until the next batch.
        unsafe {
            let through = plan.offsets(&call, &temp, offsets)?;
            if !is_known {
                place.telling.tell(place.stream, offsets.read_only().part(part.len(), 1))?;
            }
            call.emit(through, offsets.read_only(), DeviceRangeMut { ids, dist2 })?;
        }
        self.drafted = (part, room);
        Ok(())
    }
}

impl<C: Coord> Work for Finding<'_, C> {
    /// The rows; the arrays are their offsets, ids and distances.
    type Batch = Range<usize>;

    fn make(&mut self, place: Place<'_>) -> Result<bool> {
        let Some(part) = self.rows.next_part() else { return Ok(false) };
        let room = self.rows.likely_items(part.len());
        self.draft(place, part, room, false)?;
        Ok(true)
    }

    fn settle(&mut self, total: u64, mut place: Place<'_>) -> Result<Made<Self::Batch>> {
        let (part, room) = self.drafted.clone();
        let (num_rows, num_items) = self.rows.fit(part.len(), total, || {
            let offsets = place.parts[0].reborrow().of(part.len() + 1, usize::MAX, "offsets of rows")?;
            // SAFETY: the draft has written an offset a row and one more.
            unsafe { place.stream.read(offsets.read_only()) }
        })?;
        if num_items > room {
            // Once more, when what is read is not in use any more.
            place.stream.synchronize()?;
            self.draft(place, part.clone(), num_items, true)?;
        }
        self.rows.took(num_rows, num_items);
        let len = num_items as usize;
        let distance_bytes = if matches!(self.from, Origin::Boxes(_)) { 0 } else { len * size_of::<C>() };
        let bytes = [(num_rows + 1) * size_of::<u64>(), len * size_of::<u32>(), distance_bytes];
        Ok(Made { bytes, batch: part.start..part.start + num_rows })
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

impl<C: Coord, R: Iterator<Item = Range<usize>>> Work for FindingNearest<'_, C, R> {
    /// The rows; the arrays are ids and distances.
    type Batch = Range<usize>;

    fn make(&mut self, place: Place<'_>) -> Result<bool> {
        let Some(rows) = self.rows.next() else { return Ok(false) };
        self.drafted = rows.clone();
        let (tree, asked, k, len) = (self.tree, self.asked, self.k, rows.len() * self.k);
        if len == 0 {
            return Ok(true);
        }
        let Place { stream, workspace, input, parts: [ids, dist2, _], .. } = place;
        let ids = ids.of(len, len, "ids of neighbors")?;
        let dist2 = dist2.of(len, len, "distances of neighbors")?;
        let queries = self.from.queries_on(input, &rows, tree.dims)?;
        let mut layout = Layout::new();
        let plan = Nearest::plan(&mut layout, tree, asked, queries, k);
        let temp = workspace.carve(stream, &layout, "k-d tree queries")?;
        // SAFETY: there are `k` places a row; the pipeline keeps arrays until they have been copied, and what is read until the next
        // batch.
        unsafe { plan.run(stream, &temp, tree, asked, queries, ResultRows { dist2, ids, k: k as u64 }) }?;
        Ok(true)
    }

    fn settle(&mut self, _: u64, _: Place<'_>) -> Result<Made<Self::Batch>> {
        let len = self.drafted.len() * self.k;
        let bytes = [len * size_of::<u32>(), len * size_of::<C>(), 0];
        Ok(Made { bytes, batch: self.drafted.clone() })
    }
}
