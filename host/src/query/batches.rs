//! Queries whose results come in batches: for results that are larger than memory, or that are used as they come.

use kauri_kernels::thread::coord::Coord;
use std::fmt;
use std::ops::{ControlFlow, Range};

use crate::batches::{Delivery, RowSplitter, split_equal_rows};
use crate::error::Result;
use crate::memory;
use crate::point::{LonLat, Point};
use crate::query::backend::{QueryBackend, ValidatedQueries};
use crate::query::neighbors::NeighborRows;
use crate::query::options::ValidatedOptions;
use crate::query::within::{RangeResultMut, RangeRows};
use crate::query::{PointMask, item_bytes};

/// What points are looked for by, a row each.
#[derive(Clone)]
pub enum RangeQuery<'a, C> {
    /// A distance from queries.
    Within(ValidatedQueries<'a, C>, ValidatedOptions<C>),
    /// Boxes, given as their least and then their greatest coordinates, of the points of a mask.
    InBoxes(&'a [C], Option<&'a PointMask>),
}

/// Takes a batch of points found, from this row on.
pub(crate) type VisitRange<'s, C> = dyn FnMut(usize, RangeResultMut<'_, C>) -> ControlFlow<()> + 's;
/// Takes a batch of neighbors of these rows: ids and squared distances.
pub(crate) type VisitNearest<'s, C> = dyn FnMut(Range<usize>, &[u32], &[C]) -> ControlFlow<()> + 's;

/// A batch of points found within a distance of queries, or in boxes: some rows of what would be a [`Within`](super::Within).
///
/// Rows have the numbers that they have in the whole result.
pub struct WithinBatch<'a, P: Point> {
    first: usize,
    found: RangeRows<'a, P::Coord>,
}

impl<'a, P: Point> WithinBatch<'a, P> {
    pub(crate) fn new(first: usize, found: RangeRows<'a, P::Coord>) -> Self {
        Self { first, found }
    }

    /// The rows of the batch.
    pub fn rows(&self) -> Range<usize> {
        self.first..self.first + self.found.len()
    }

    /// Where each row of the batch begins in [`ids`](Self::ids), and where the last ends: one more than rows.
    pub fn offsets(&self) -> &'a [u64] {
        self.found.offsets
    }

    /// All ids, row after row.
    pub fn ids(&self) -> &'a [u32] {
        self.found.ids
    }

    /// All distances, as [`Neighbors::dist2`](super::Neighbors::dist2) has them; none of points in boxes.
    pub fn dist2(&self) -> &'a [P::Coord] {
        self.found.dist2
    }

    /// The ids of row `row` of the whole result.
    ///
    /// # Panics
    /// If the batch does not have it.
    pub fn row(&self, row: usize) -> &'a [u32] {
        self.found.row(in_batch(row, self.rows()))
    }

    /// The distances of that row; none of points in boxes.
    ///
    /// # Panics
    /// If the batch does not have it.
    pub fn row_dist2(&self, row: usize) -> &'a [P::Coord] {
        self.found.row_dist2(in_batch(row, self.rows()))
    }
}

/// A batch of the nearest points of queries: some rows of what would be [`Neighbors`](super::Neighbors).
///
/// Rows have the numbers that they have in the whole result.
pub struct NearestBatch<'a, P: Point> {
    first: usize,
    found: NeighborRows<'a, P::Coord>,
}

impl<'a, P: Point> NearestBatch<'a, P> {
    pub(crate) fn new(first: usize, found: NeighborRows<'a, P::Coord>) -> Self {
        Self { first, found }
    }

    /// The rows of the batch.
    pub fn rows(&self) -> Range<usize> {
        self.first..self.first + self.found.len
    }

    /// Entries of a row.
    pub fn k(&self) -> usize {
        self.found.k
    }

    /// All ids, row after row.
    pub fn ids(&self) -> &'a [u32] {
        self.found.ids
    }

    /// All squared distances, row after row.
    pub fn dist2(&self) -> &'a [P::Coord] {
        self.found.dist2
    }

    /// The ids and squared distances of query `query`, by its number among all.
    ///
    /// # Panics
    /// If the batch does not have it.
    pub fn row(&self, query: usize) -> (&'a [u32], &'a [P::Coord]) {
        self.found.row(in_batch(query, self.rows()))
    }
}

impl<'a> NearestBatch<'a, LonLat> {
    /// Great-circle distances of query `query` in meters, infinity for padding.
    ///
    /// # Panics
    /// If the batch does not have it.
    pub fn meters(&self, query: usize) -> impl ExactSizeIterator<Item = f64> + 'a {
        self.row(query).1.iter().map(|&chord2| LonLat::chord2_to_meters(chord2))
    }
}

/// The place of a row among those of a batch.
fn in_batch(row: usize, rows: Range<usize>) -> usize {
    assert!(rows.contains(&row), "row {row} of a batch of the rows {rows:?}");
    row - rows.start
}

impl<P: Point> fmt::Debug for WithinBatch<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithinBatch")
            .field("rows", &self.rows())
            .field("points", &self.found.ids.len())
            .finish_non_exhaustive()
    }
}

impl<P: Point> fmt::Debug for NearestBatch<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NearestBatch")
            .field("rows", &self.rows())
            .field("k", &self.k())
            .finish_non_exhaustive()
    }
}

/// Delivers points found in batches that are made one after another, of what is not a tree's own points.
pub(crate) fn deliver_found<C: Coord>(
    answers: &dyn QueryBackend<C>,
    dims: usize,
    sought: &RangeQuery<'_, C>,
    delivery: &mut Delivery<'_, '_>,
    show: &mut VisitRange<'_, C>,
) -> Result<ControlFlow<()>> {
    let item_bytes = sought.item_bytes();
    let mut rows = RowSplitter::new(sought.num_rows(dims), item_bytes, delivery.limits());
    while let Some(part) = rows.next_range() {
        let first = part.start;
        let mut found = delivery.produce(|| {
            let counts = match sought.part(part, dims) {
                RangeQuery::Within(queries, wanted) => answers.count_within(queries, wanted),
                RangeQuery::InBoxes(corners, mask) => answers.count_in_boxes(corners, mask),
            }?;
            let fit = rows.rows_that_fit(&offsets(&counts)?)?;
            match sought.part(first..first + fit, dims) {
                RangeQuery::Within(queries, wanted) => answers.within(queries, wanted),
                RangeQuery::InBoxes(corners, mask) => answers.in_boxes(corners, mask),
            }
        })?;
        let (num_rows, num_items) = (found.offsets.len() - 1, found.ids.len());
        rows.advance(num_rows, num_items as u64);
        let flow = delivery.deliver(num_rows, num_items, item_bytes, || show(first, found.rows_mut()));
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Where rows of those counts begin, and where the last ends.
fn offsets(counts: &[u32]) -> Result<Vec<u64>> {
    let mut offsets = memory::vec_with_capacity(counts.len() + 1, "offsets of rows")?;
    let mut end = 0;
    offsets.push(end);
    offsets.extend(counts.iter().map(|&count| {
        end += u64::from(count);
        end
    }));
    Ok(offsets)
}

/// Delivers rows of the `k` nearest neighbors in batches that are made one after another, of what is not a tree's own points.
pub(crate) fn deliver_nearest<C: Coord>(
    answers: &dyn QueryBackend<C>,
    dims: usize,
    queries: ValidatedQueries<'_, C>,
    k: usize,
    wanted: &ValidatedOptions<C>,
    delivery: &mut Delivery<'_, '_>,
    show: &mut VisitNearest<'_, C>,
) -> Result<ControlFlow<()>> {
    let item_bytes = item_bytes::<C>();
    let (mut ids, mut dist2) = (Vec::new(), Vec::new());
    for rows in split_equal_rows(queries.len(dims, 0), k, item_bytes, delivery.limits())? {
        (ids, dist2) = delivery.produce(|| {
            ids.clear();
            dist2.clear();
            memory::reserve(&mut ids, rows.len() * k, "ids of neighbors")?;
            memory::reserve(&mut dist2, rows.len() * k, "distances of neighbors")?;
            answers.nearest(queries.part(rows.clone(), dims), k, wanted.clone(), ids, dist2)
        })?;
        let flow = delivery.deliver(rows.len(), ids.len(), item_bytes, || show(rows.clone(), &ids, &dist2));
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

impl<'a, C: Coord> RangeQuery<'a, C> {
    /// Number of rows of so many dimensions.
    pub(crate) fn num_rows(&self, dims: usize) -> usize {
        match self {
            Self::Within(queries, _) => queries.len(dims, 0),
            Self::InBoxes(corners, _) => corners.len() / (2 * dims),
        }
    }

    /// Some rows; of queries that are coordinates.
    pub(crate) fn part(&self, rows: Range<usize>, dims: usize) -> Self {
        match self {
            Self::Within(queries, wanted) => Self::Within(queries.part(rows, dims), wanted.clone()),
            Self::InBoxes(corners, mask) => {
                Self::InBoxes(&corners[rows.start * 2 * dims..rows.end * 2 * dims], *mask)
            }
        }
    }

    /// Bytes of a point found.
    pub(crate) fn item_bytes(&self) -> u64 {
        match self {
            Self::Within(..) => item_bytes::<C>(),
            Self::InBoxes(..) => size_of::<u32>() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::LIMIT;
    use crate::query::QueryOptions;
    use crate::{Batches, Device, Error, KdTree, KdTreeOptions, SpatialIndex};

    #[test]
    fn a_result_that_host_memory_cannot_hold_is_refused_with_its_size() {
        let points: Vec<[f32; 1]> = (0..500).map(|x| [x as f32]).collect();
        let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default()).unwrap();
        // Every point finds every other one: 8 bytes each, and in boxes 4, for which the CPU takes 8 as well.
        LIMIT.set(1_000_000);
        let options = QueryOptions::default();
        let boxes = [[[0.0f32], [500.0]]; 500];
        let errors = [
            tree.within(&points, 500.0, &options).unwrap_err(),
            tree.nearest(&points, 500).unwrap_err(),
            tree.in_boxes(&boxes, None).unwrap_err(),
        ];
        for error in errors {
            let Error::ResultTooLarge { count, bytes, memory: "host", .. } = error else { panic!("{error}") };
            assert_eq!((count, bytes), (250_000, 2_000_000));
        }
        // In batches it fits.
        let mut batches = Batches::new().bytes(500_000);
        let look = |items: usize| {
            assert!(items <= 62_500);
            ControlFlow::Continue(())
        };
        let within =
            tree.within_batches(&points, 500.0, &options, &mut batches, |batch| look(batch.ids().len()));
        let nearest =
            tree.nearest_batches(&points, 500, &options, &mut batches, |batch| look(batch.ids().len()));
        LIMIT.set(u64::MAX);
        for delivered in [within.unwrap(), nearest.unwrap()] {
            assert_eq!((delivered.items, delivered.bytes), (250_000, 2_000_000));
        }
    }
}
