//! Query results in batches, for results that are larger than memory or that are consumed as they come.

use kauri_kernels::thread::coord::Coord;
use std::fmt;
use std::ops::{ControlFlow, Range};

use crate::batches::{Delivery, RowSplitter, split_equal_rows};
use crate::error::Result;
use crate::memory;
use crate::point::{DistanceOf, LonLat, Point};
use crate::query::backend::{NearestQuery, QueryBackend, RangeQuery};
use crate::query::item_bytes;
use crate::query::neighbors::NeighborRow;
use crate::query::within::{RangeResultMut, offsets_of};
use crate::rows::{RowView, RowsIter, SHOWN_ROWS, row_in_batch, sealed::Sealed};

/// Receives a batch of a range query's result, and the number of its first row.
pub(crate) type VisitRange<'s, C> = dyn FnMut(usize, RangeResultMut<'_, C>) -> ControlFlow<()> + 's;
/// Receives a batch of nearest neighbors: the numbers of the queries, ids and distances.
pub(crate) type VisitNearest<'s, C> = dyn FnMut(Range<usize>, &[u32], &[C]) -> ControlFlow<()> + 's;

/// A batch of the nearest points of queries: some rows of [`Neighbors`](super::Neighbors), borrowed.
///
/// [`SpatialIndex::nearest_batches`](crate::SpatialIndex::nearest_batches) delivers it. Rows keep the numbers that they have in the whole
/// result.
///
/// ```
/// use kauri::{Batches, Device, KdTree, KdTreeOptions, QueryOptions, SpatialIndex};
/// use std::ops::ControlFlow;
/// let points = [[0.0f32, 0.0], [3.0, 4.0]];
/// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
/// tree.nearest_batches(&points, 1, &QueryOptions::default(), &mut Batches::default(), |batch| {
///     for (query, neighbors) in batch {
///         assert_eq!(neighbors.ids(), [query as u32]);
///     }
///     ControlFlow::Continue(())
/// })?;
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct NearestBatch<'a, P: Point> {
    first: usize,
    len: usize,
    k: usize,
    ids: &'a [u32],
    dist2: &'a [DistanceOf<P>],
}

impl<'a, P: Point> NearestBatch<'a, P> {
    /// Takes `k` ids and distances for each query of `rows`.
    pub(crate) fn new(rows: Range<usize>, k: usize, ids: &'a [u32], dist2: &'a [DistanceOf<P>]) -> Self {
        Self { first: rows.start, len: rows.len(), k, ids, dist2 }
    }

    /// The numbers of the queries in the batch.
    pub fn rows(&self) -> Range<usize> {
        self.first..self.first + self.len
    }

    /// Entries of a row of the matrices.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The matrix of ids, with padding.
    pub fn ids(&self) -> &'a [u32] {
        self.ids
    }

    /// The matrix of distances, with padding.
    pub fn dist2(&self) -> &'a [DistanceOf<P>] {
        self.dist2
    }

    /// The neighbors of query `query`, by its number among all, without padding. O(log k).
    ///
    /// # Panics
    /// If the query is not in the batch.
    pub fn row(&self, query: usize) -> NeighborRow<'a, DistanceOf<P>> {
        let (ids, dist2) = self.padded_row(query);
        NeighborRow::without_padding(ids, dist2)
    }

    /// The `k` ids and distances of query `query`, by its number among all, with padding.
    ///
    /// # Panics
    /// If the query is not in the batch.
    pub fn padded_row(&self, query: usize) -> (&'a [u32], &'a [DistanceOf<P>]) {
        let row = row_in_batch(query, self.rows());
        let entries = row * self.k..(row + 1) * self.k;
        (&self.ids[entries.clone()], &self.dist2[entries])
    }

    /// Iterates over the queries' numbers and neighbors, without padding.
    pub fn iter(self) -> RowsIter<Self> {
        RowsIter::new(self, self.rows())
    }
}

impl<'a> NearestBatch<'a, LonLat> {
    /// Great-circle distances of query `query` in meters, infinity for padding.
    ///
    /// # Panics
    /// If the query is not in the batch.
    pub fn meters(&self, query: usize) -> impl ExactSizeIterator<Item = f64> + use<'a> {
        self.padded_row(query).1.iter().map(|&chord2| LonLat::chord2_to_meters(chord2))
    }
}

impl<P: Point> Sealed for NearestBatch<'_, P> {}

impl<'a, P: Point> RowView for NearestBatch<'a, P> {
    type Row = NeighborRow<'a, DistanceOf<P>>;

    fn get(self, query: usize) -> Self::Row {
        self.row(query)
    }
}

impl<'a, P: Point> IntoIterator for NearestBatch<'a, P> {
    type Item = (usize, NeighborRow<'a, DistanceOf<P>>);
    type IntoIter = RowsIter<Self>;

    fn into_iter(self) -> RowsIter<Self> {
        self.iter()
    }
}

impl<P: Point> fmt::Debug for NearestBatch<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first_rows: Vec<_> = self.iter().take(SHOWN_ROWS).collect();
        f.debug_struct("NearestBatch")
            .field("rows", &self.rows())
            .field("k", &self.k)
            .field("first_rows", &first_rows)
            .finish()
    }
}

/// Delivers the result of a range query in batches, made one after another. The queries are not a self-query.
pub(crate) fn deliver_range<C: Coord, B: QueryBackend<C> + ?Sized>(
    backend: &B,
    query: RangeQuery<'_, C>,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitRange<'_, C::Distance>,
) -> Result<ControlFlow<()>> {
    let item_bytes = query.item_bytes();
    let mut rows = RowSplitter::new(query.num_rows(), item_bytes, delivery.limits());
    while let Some(part) = rows.next_range() {
        let first = part.start;
        let mut found = delivery.produce(|| {
            let counts = backend.count(query.part(part))?;
            let fit = rows.rows_that_fit(&offsets_of(counts.into_iter().map(u64::from))?)?;
            backend.find(query.part(first..first + fit))
        })?;
        let (num_rows, num_items) = (found.offsets.len() - 1, found.ids.len());
        rows.advance(num_rows, num_items as u64);
        let flow = delivery.deliver(num_rows, num_items, item_bytes, || visit(first, found.rows_mut()));
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Delivers rows of the `k` nearest neighbors in batches, made one after another. The queries are not a self-query.
pub(crate) fn deliver_nearest<C: Coord, B: QueryBackend<C> + ?Sized>(
    backend: &B,
    query: NearestQuery<'_, C>,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitNearest<'_, C::Distance>,
) -> Result<ControlFlow<()>> {
    let (NearestQuery { queries, k, .. }, item_bytes) = (query, item_bytes::<C::Distance>());
    let (mut ids, mut dist2) = (Vec::new(), Vec::new());
    for rows in split_equal_rows(queries.len, k, item_bytes, delivery.limits())? {
        (ids, dist2) = delivery.produce(|| {
            ids.clear();
            dist2.clear();
            memory::reserve(&mut ids, rows.len() * k, "ids of neighbors")?;
            memory::reserve(&mut dist2, rows.len() * k, "distances of neighbors")?;
            backend.nearest(NearestQuery { queries: queries.part(rows.clone()), ..query }, (ids, dist2))
        })?;
        let flow = delivery.deliver(rows.len(), ids.len(), item_bytes, || visit(rows.clone(), &ids, &dist2));
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
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
        // Every point finds every other one: 8 bytes each, and in boxes 4.
        LIMIT.set(999_999);
        let options = QueryOptions::default();
        let boxes = [[[0.0f32], [500.0]]; 500];
        let errors = [
            tree.within(&points, 500.0, &options).unwrap_err(),
            tree.nearest(&points, 500).unwrap_err(),
            tree.in_boxes(&boxes, None).unwrap_err(),
        ];
        for (error, expected) in errors.into_iter().zip([2_000_000, 2_000_000, 1_000_000]) {
            let Error::ResultTooLarge { count, bytes, memory: "host", .. } = error else { panic!("{error}") };
            assert_eq!((count, bytes), (250_000, expected));
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
