//! Sets of points that answer as one, wherever they are: the parts of a tree over several devices.

use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use std::ops::ControlFlow;

use crate::batches::Delivery;
use crate::error::Result;
use crate::memory;
use crate::query::backend::{QueryBackend, ValidatedQueries};
use crate::query::batches::{RangeQuery, VisitNearest, VisitRange, deliver_found, deliver_nearest};
use crate::query::options::ValidatedOptions;
use crate::query::within::RangeResult;
use crate::query::{PointMask, item_bytes, result_rows};
use crate::threads::each;

/// Most entries of the rows that are merged at a time: rows of all sets, beside the result.
const MERGED: usize = 1 << 24;
/// Rows that a thread merges at a time.
const ROWS: usize = 1 << 10;

/// The sets, in the order in which their points are found. Ids are of all points, and no point is in two sets.
pub(crate) struct UnionIndex<C> {
    pub(crate) sets: Vec<Box<dyn QueryBackend<C>>>,
    pub(crate) dims: usize,
    /// Gives the coordinates of all points by id.
    pub(crate) own: Box<dyn Fn() -> Result<Vec<C>> + Send + Sync>,
}

/// Rows of the nearest points of a set.
type NearestRows<C> = (Vec<u32>, Vec<C>);

impl<C: Coord> UnionIndex<C> {
    /// The coordinates of all points by id, if they are the queries.
    fn own(&self, queries: ValidatedQueries<'_, C>) -> Result<Vec<C>> {
        match queries {
            ValidatedQueries::Own { .. } => (self.own)(),
            ValidatedQueries::Points { .. } => Ok(Vec::new()),
        }
    }

    /// Asks all sets at the same time.
    fn each<R: Send>(&self, ask: impl Fn(&dyn QueryBackend<C>) -> Result<R> + Sync) -> Result<Vec<R>> {
        each(&self.sets, |set| ask(&**set))
    }

    /// Sums of numbers that all sets have for each row.
    fn counts(&self, count: impl Fn(&dyn QueryBackend<C>) -> Result<Vec<u32>> + Sync) -> Result<Vec<u32>> {
        let mut counts = self.each(count)?.into_iter();
        let mut sums = counts.next().unwrap_or_default();
        for others in counts {
            sums.par_iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
        }
        Ok(sums)
    }

    /// Rows that have what all sets find, one set behind the other.
    fn found(
        &self,
        find: impl Fn(&dyn QueryBackend<C>) -> Result<RangeResult<C>> + Sync,
    ) -> Result<RangeResult<C>> {
        let sets = self.each(find)?;
        let num_rows = sets.first().map_or(0, |found| found.offsets.len() - 1);
        let total = sets.iter().map(|found| found.ids.len() as u64).sum::<u64>();
        let bytes = total.saturating_mul(item_bytes::<C>());
        joined(&sets, num_rows, total).map_err(|error| error.of_result(total, bytes))
    }

    /// Appends rows of the `k` nearest points of some queries.
    fn append_nearest(
        &self,
        queries: ValidatedQueries<'_, C>,
        k: usize,
        wanted: &ValidatedOptions<C>,
        (ids, dist2): &mut NearestRows<C>,
    ) -> Result<()> {
        let num_queries = queries.len(self.dims, 0);
        let rows = self.each(|set| {
            let (ids, dist2) = result_rows(num_queries, k)?;
            set.nearest(queries, k, wanted.clone(), ids, dist2)
        })?;
        let begin = ids.len();
        ids.resize(begin + num_queries * k, u32::MAX);
        dist2.resize(begin + num_queries * k, C::INFINITY);
        let (ids, dist2) = (&mut ids[begin..], &mut dist2[begin..]);
        let rows_of_thread = ids.par_chunks_mut(ROWS * k).zip(dist2.par_chunks_mut(ROWS * k)).enumerate();
        rows_of_thread.for_each(|(i, (ids, dist2))| {
            for (row, (ids, dist2)) in ids.chunks_mut(k).zip(dist2.chunks_mut(k)).enumerate() {
                merge(&rows, (i * ROWS + row) * k, ids, dist2);
            }
        });
        Ok(())
    }
}

/// What sets have found of each row, one set behind the other.
fn joined<C: Coord>(sets: &[RangeResult<C>], num_rows: usize, total: u64) -> Result<RangeResult<C>> {
    let len = usize::try_from(total).unwrap_or(usize::MAX);
    let mut offsets = memory::vec_with_capacity(num_rows + 1, "offsets of rows")?;
    offsets.extend((0..=num_rows).map(|row| sets.iter().map(|found| found.offsets[row]).sum::<u64>()));
    let has_distances = sets.iter().any(|found| !found.dist2.is_empty());
    let mut ids = memory::vec_with_capacity(len, "ids of points found")?;
    let mut dist2 =
        memory::vec_with_capacity(if has_distances { len } else { 0 }, "distances of points found")?;
    for row in 0..num_rows {
        for found in sets {
            let of_row = found.offsets[row] as usize..found.offsets[row + 1] as usize;
            ids.extend_from_slice(&found.ids[of_row.clone()]);
            if has_distances {
                dist2.extend_from_slice(&found.dist2[of_row]);
            }
        }
    }
    Ok(RangeResult { offsets, ids, dist2 })
}

/// Merges the rows of all sets that begin at an entry, each by distance and id.
fn merge<C: Coord>(rows: &[NearestRows<C>], begin: usize, ids: &mut [u32], dist2: &mut [C]) {
    let mut next = [0; MAX_SETS];
    for (to_id, to_dist2) in ids.iter_mut().zip(dist2) {
        let of = |set: usize| (rows[set].1[begin + next[set]].key(), rows[set].0[begin + next[set]]);
        let Some(nearest) = (0..rows.len()).min_by_key(|&set| of(set)) else { return };
        let at = begin + next[nearest];
        (*to_id, *to_dist2) = (rows[nearest].0[at], rows[nearest].1[at]);
        next[nearest] += 1;
    }
}

/// Most sets.
pub(crate) const MAX_SETS: usize = 15;

impl<C: Coord> QueryBackend<C> for UnionIndex<C> {
    fn check_queries(&self, queries: ValidatedQueries<'_, C>, wanted: &ValidatedOptions<C>) -> Result<()> {
        if wanted.periods.is_empty() {
            return Ok(());
        }
        let own = self.own(queries)?;
        let queries = queries.with_own(&own);
        self.each(|set| set.check_queries(queries, wanted)).map(drop)
    }

    fn nearest(
        &self,
        queries: ValidatedQueries<'_, C>,
        k: usize,
        wanted: ValidatedOptions<C>,
        ids: Vec<u32>,
        dist2: Vec<C>,
    ) -> Result<(Vec<u32>, Vec<C>)> {
        let own = self.own(queries)?;
        let (queries, mut rows) = (queries.with_own(&own), (ids, dist2));
        let num_queries = queries.len(self.dims, 0);
        if k == 0 {
            return Ok(rows);
        }
        let step = (MERGED / k).max(1);
        for begin in (0..num_queries).step_by(step) {
            let some = queries.part(begin..num_queries.min(begin + step), self.dims);
            self.append_nearest(some, k, &wanted, &mut rows)?;
        }
        Ok(rows)
    }

    fn count_within(
        &self,
        queries: ValidatedQueries<'_, C>,
        wanted: ValidatedOptions<C>,
    ) -> Result<Vec<u32>> {
        let own = self.own(queries)?;
        let queries = queries.with_own(&own);
        self.counts(|set| set.count_within(queries, wanted.clone()))
    }

    fn within(
        &self,
        queries: ValidatedQueries<'_, C>,
        wanted: ValidatedOptions<C>,
    ) -> Result<RangeResult<C>> {
        let own = self.own(queries)?;
        let queries = queries.with_own(&own);
        self.found(|set| set.within(queries, wanted.clone()))
    }

    fn count_in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<Vec<u32>> {
        self.counts(|set| set.count_in_boxes(corners, mask))
    }

    fn in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<RangeResult<C>> {
        self.found(|set| set.in_boxes(corners, mask))
    }

    fn find_batches(
        &self,
        sought: RangeQuery<'_, C>,
        delivery: &mut Delivery<'_, '_>,
        show: &mut VisitRange<'_, C>,
    ) -> Result<ControlFlow<()>> {
        match sought {
            RangeQuery::Within(queries, wanted) => {
                let own = self.own(queries)?;
                let queries = queries.with_own(&own);
                deliver_found(self, self.dims, &RangeQuery::Within(queries, wanted), delivery, show)
            }
            boxes => deliver_found(self, self.dims, &boxes, delivery, show),
        }
    }

    fn nearest_batches(
        &self,
        queries: ValidatedQueries<'_, C>,
        k: usize,
        wanted: ValidatedOptions<C>,
        delivery: &mut Delivery<'_, '_>,
        show: &mut VisitNearest<'_, C>,
    ) -> Result<ControlFlow<()>> {
        let own = self.own(queries)?;
        let queries = queries.with_own(&own);
        deliver_nearest(self, self.dims, queries, k, &wanted, delivery, show)
    }
}
