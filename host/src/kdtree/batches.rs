//! Queries whose results come in batches: for results that are larger than memory, or that are used as they come.

use kauri_kernels::thread::coord::Coord;
use std::fmt;
use std::ops::{ControlFlow, Range};

use super::backend::Checked;
use super::neighbors::NeighborRows;
use super::query::{Queries, QueryOptions, Wanted};
use super::within::{FoundMut, FoundRows};
use super::{KdTree, PointMask};
use crate::batches::{Batches, Delivered, Delivery};
use crate::error::Result;
use crate::point::{LonLat, Point, Scalar};

/// What points are looked for by, a row each.
#[derive(Clone)]
pub enum Sought<'a, C> {
    /// A distance from queries.
    Within(Checked<'a, C>, Wanted<C>),
    /// Boxes, given as their least and then their greatest coordinates, of the points of a mask.
    InBoxes(&'a [C], Option<&'a PointMask>),
}

/// Takes a batch of points found, from this row on.
pub(super) type ShowFound<'s, C> = dyn FnMut(usize, FoundMut<'_, C>) -> ControlFlow<()> + 's;
/// Takes a batch of neighbours of these rows: ids and squared distances.
pub(super) type ShowNearest<'s, C> = dyn FnMut(Range<usize>, &[u32], &[C]) -> ControlFlow<()> + 's;

/// A batch of points found within a distance of queries, or in boxes: some rows of what would be a [`Within`](super::Within).
///
/// Rows have the numbers that they have in the whole result.
pub struct WithinBatch<'a, P: Point> {
    first: usize,
    found: FoundRows<'a, P::Coord>,
}

impl<'a, P: Point> WithinBatch<'a, P> {
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
    /// Great-circle distances of query `query` in metres, infinity for padding.
    ///
    /// # Panics
    /// If the batch does not have it.
    pub fn metres(&self, query: usize) -> impl ExactSizeIterator<Item = f64> + 'a {
        self.row(query).1.iter().map(|&chord2| LonLat::chord2_to_metres(chord2))
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

/// Results in batches. Each is shown to `look` in the order of the rows, on the calling thread, while a GPU is busy with the next
/// ones; [`ControlFlow::Break`] stops the call, which then returns what was delivered. The rows are those of the call that returns
/// the whole result. If `look` panics, nothing of the call goes on, and tree and batches stay usable.
impl<P: Point> KdTree<P> {
    /// The `k` nearest points of every query, as [`nearest_with`](KdTree::nearest_with), in batches.
    ///
    /// Memory: that of [`Batches`]; of a GPU also a copy of the points' coordinates, if they are the queries.
    ///
    /// ```
    /// use kauri::{Batches, Device, KdTree, KdTreeOptions};
    /// use kauri::kdtree::QueryOptions;
    /// use std::ops::ControlFlow;
    /// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
    /// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
    ///
    /// // Look for a query that is far from everything, and no further.
    /// let queries = [[0.0, 0.1], [9.0, 9.0], [1.0, 1.0]];
    /// let mut far = None;
    /// let mut batches = Batches::new().rows(1);
    /// let delivered = tree.nearest_batches(&queries, 1, &QueryOptions::default(), &mut batches, |batch| {
    ///     far = batch.rows().find(|&query| batch.row(query).1[0] > 25.0);
    ///     if far.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    /// })?;
    /// assert_eq!(far, Some(1));
    /// assert!(delivered.rows == 2 && !delivered.is_complete);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`nearest_with`](KdTree::nearest_with), of queries before any batch;
    /// [`Error::RowTooLarge`](crate::Error::RowTooLarge) if a batch has no room for one row.
    pub fn nearest_batches<'a>(
        &self,
        queries: impl Into<Queries<'a, P>>,
        k: usize,
        options: &QueryOptions<P>,
        batches: &mut Batches<'_>,
        mut look: impl FnMut(NearestBatch<'_, P>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        let wanted = Wanted::new(options, self.len())?;
        self.checked(queries.into(), |queries| {
            let num_queries = queries.len(P::DIMS, self.len());
            let _span = tracing::debug_span!("kdtree_nearest_batches", queries = num_queries, k).entered();
            Delivery::run(batches, &self.device, num_queries, |delivery| {
                let show = &mut |rows: Range<usize>, ids: &[u32], dist2: &[P::Coord]| {
                    look(NearestBatch {
                        first: rows.start,
                        found: NeighborRows { len: rows.len(), k, ids, dist2 },
                    })
                };
                self.backend().nearest_batches(queries, k, wanted, delivery, show)
            })
        })
    }

    /// The points within `radius` of every query, its border included, as [`within`](KdTree::within), in batches. There may be any
    /// number, also more than 2^32.
    ///
    /// Points are counted before they are written, on the CPU by a walk of its own. Memory: that of [`Batches`]; of a GPU also a
    /// copy of the points' coordinates, if they are the queries.
    ///
    /// # Errors
    /// Those of [`nearest_with`](KdTree::nearest_with), of queries before any batch;
    /// [`Error::RowTooLarge`](crate::Error::RowTooLarge) for the first row that a batch has no room for, when those before it have
    /// been delivered.
    pub fn within_batches<'a>(
        &self,
        queries: impl Into<Queries<'a, P>>,
        radius: P::Coord,
        options: &QueryOptions<P>,
        batches: &mut Batches<'_>,
        look: impl FnMut(WithinBatch<'_, P>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        let wanted = Wanted::new(&options.clone().radius(radius), self.len())?;
        self.checked(queries.into(), |queries| {
            let num_queries = queries.len(P::DIMS, self.len());
            self.find_batches(num_queries, Sought::Within(queries, wanted), options.sorted, batches, look)
        })
    }

    fn find_batches(
        &self,
        num_rows: usize,
        sought: Sought<'_, P::Coord>,
        sorted: bool,
        batches: &mut Batches<'_>,
        mut look: impl FnMut(WithinBatch<'_, P>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        let _span = tracing::debug_span!("kdtree_find_batches", rows = num_rows).entered();
        Delivery::run(batches, &self.device, num_rows, |delivery| {
            let show = &mut |first: usize, mut found: FoundMut<'_, P::Coord>| {
                if sorted {
                    found.sort();
                }
                look(WithinBatch { first, found: found.read_only() })
            };
            self.backend().find_batches(sought, delivery, show)
        })
    }
}

/// Boxes have the axes of the points: for [`LonLat`] there is no such thing.
impl<S: Scalar, const D: usize> KdTree<[S; D]> {
    /// The points in every box, as [`in_boxes`](KdTree::in_boxes), in batches; more of it says
    /// [`within_batches`](KdTree::within_batches).
    ///
    /// # Errors
    /// Those of [`count_in_boxes`](KdTree::count_in_boxes), of boxes before any batch;
    /// [`Error::RowTooLarge`](crate::Error::RowTooLarge) for the first row that a batch has no room for, when those before it have
    /// been delivered.
    pub fn in_boxes_batches(
        &self,
        boxes: &[[[S; D]; 2]],
        mask: Option<&PointMask>,
        batches: &mut Batches<'_>,
        look: impl FnMut(WithinBatch<'_, [S; D]>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        let corners = self.checked_boxes(boxes, mask)?;
        self.find_batches(boxes.len(), Sought::InBoxes(&corners, mask), false, batches, look)
    }
}

impl<C: Coord> Sought<'_, C> {
    /// Bytes of a point found.
    pub(super) fn item_bytes(&self) -> u64 {
        match self {
            Self::Within(..) => super::item_bytes::<C>(),
            Self::InBoxes(..) => size_of::<u32>() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::LIMIT;
    use crate::{Device, Error, KdTreeOptions};

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
