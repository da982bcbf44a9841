//! The points within a distance of each query, or in each box: rows of any length.

use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use std::fmt;

use crate::point::Point;

/// Rows of points found, a row a query or box, one behind the other.
///
/// The points of a row are in the order of the tree, or sorted by (distance, id) if that was asked for.
pub struct Within<P: Point> {
    found: RangeResult<P::Coord>,
}

/// The same without its type of points.
#[derive(Clone)]
pub struct RangeResult<C> {
    /// Where each row begins, and where the last ends.
    pub offsets: Vec<u64>,
    pub ids: Vec<u32>,
    /// Empty if distances were not asked for.
    pub dist2: Vec<C>,
}

impl<C: Coord> RangeResult<C> {
    /// Its rows, to be changed.
    pub(crate) fn rows_mut(&mut self) -> RangeResultMut<'_, C> {
        RangeResultMut { offsets: &self.offsets, ids: &mut self.ids, dist2: &mut self.dist2 }
    }
}

/// Rows of points found, wherever they are.
pub struct RangeResultMut<'a, C> {
    /// Where each row begins, and where the last ends.
    pub offsets: &'a [u64],
    pub ids: &'a mut [u32],
    /// Nothing if distances were not asked for.
    pub dist2: &'a mut [C],
}

impl<'a, C: Coord> RangeResultMut<'a, C> {
    /// The ids and distances of each row.
    fn split(&mut self) -> Vec<(&mut [u32], &mut [C])> {
        let (mut rest_ids, mut rest_dist2) = (&mut *self.ids, &mut *self.dist2);
        let row = |ends: &[u64]| {
            let len = (ends[1] - ends[0]) as usize;
            let (ids, later_ids) = std::mem::take(&mut rest_ids).split_at_mut(len);
            let (dist2, later_dist2) = std::mem::take(&mut rest_dist2).split_at_mut(len);
            (rest_ids, rest_dist2) = (later_ids, later_dist2);
            (ids, dist2)
        };
        self.offsets.windows(2).map(row).collect()
    }

    /// Sorts each row by (distance, id).
    pub(crate) fn sort(&mut self) {
        self.split().into_par_iter().for_each_init(Vec::new, |row, (ids, dist2)| {
            row.clear();
            row.extend(dist2.iter().map(|distance| distance.key()).zip(ids.iter().copied()));
            row.sort_unstable();
            for ((key, id), (to_id, to_dist2)) in row.iter().zip(ids.iter_mut().zip(dist2)) {
                (*to_id, *to_dist2) = (*id, C::from_key(*key));
            }
        });
    }

    /// To be read.
    pub(crate) fn read_only(self) -> RangeRows<'a, C> {
        RangeRows { offsets: self.offsets, ids: self.ids, dist2: self.dist2 }
    }
}

/// The same, to be read.
#[derive(Clone, Copy)]
pub(crate) struct RangeRows<'a, C> {
    pub(crate) offsets: &'a [u64],
    pub(crate) ids: &'a [u32],
    pub(crate) dist2: &'a [C],
}

impl<'a, C> RangeRows<'a, C> {
    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(crate) fn row(&self, row: usize) -> &'a [u32] {
        &self.ids[self.range(row)]
    }

    pub(crate) fn row_dist2(&self, row: usize) -> &'a [C] {
        if self.dist2.is_empty() { &[] } else { &self.dist2[self.range(row)] }
    }

    fn range(&self, row: usize) -> std::ops::Range<usize> {
        assert!(row < self.len(), "row {row} of {} rows", self.len());
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }
}

impl<P: Point> Within<P> {
    pub(crate) fn new(found: RangeResult<P::Coord>) -> Self {
        Self { found }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows().len()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where each row begins in [`ids`](Self::ids), and where the last ends: one more than rows.
    pub fn offsets(&self) -> &[u64] {
        &self.found.offsets
    }

    /// All ids, row after row.
    pub fn ids(&self) -> &[u32] {
        &self.found.ids
    }

    /// All distances, as [`Neighbors::dist2`](super::Neighbors::dist2) has them; none of points in boxes.
    pub fn dist2(&self) -> &[P::Coord] {
        &self.found.dist2
    }

    /// The ids of row `row`.
    ///
    /// # Panics
    /// If there are not that many rows.
    pub fn row(&self, row: usize) -> &[u32] {
        self.rows().row(row)
    }

    /// The distances of row `row`; none of points in boxes.
    ///
    /// # Panics
    /// If there are not that many rows.
    pub fn row_dist2(&self, row: usize) -> &[P::Coord] {
        self.rows().row_dist2(row)
    }

    /// Offsets, ids and distances.
    pub fn into_parts(self) -> (Vec<u64>, Vec<u32>, Vec<P::Coord>) {
        (self.found.offsets, self.found.ids, self.found.dist2)
    }

    fn rows(&self) -> RangeRows<'_, P::Coord> {
        let RangeResult { offsets, ids, dist2 } = &self.found;
        RangeRows { offsets, ids, dist2 }
    }
}

impl<P: Point> fmt::Debug for Within<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Within")
            .field("len", &self.len())
            .field("points", &self.ids().len())
            .finish_non_exhaustive()
    }
}
