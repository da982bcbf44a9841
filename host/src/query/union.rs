//! A union of indexes over disjoint sets of points, queried as one: the parts of a tree over several devices.

use kauri_kernels::thread::coord::Float;
use std::borrow::Cow;

use crate::error::Result;
use crate::memory::{self, Parts};
use crate::parallel::Ranges;
use crate::query::backend::{NearestQuery, NearestRows, QueryBackend, RangeQuery, ValidatedQueries};
use crate::query::options::ValidatedOptions;
use crate::query::result_rows;
use crate::query::within::RangeResult;
use crate::threads::each;

/// Maximum entries of the rows that are merged at a time; each index has that many beside the result.
const MERGED_ENTRIES: usize = 1 << 24;
/// Rows that a task merges.
const ROWS_PER_TASK: usize = 1 << 10;

/// Indexes over disjoint sets of points; ids count over all points.
pub(crate) struct UnionIndex<C> {
    /// The indexes, in the order in which a range query finds their points.
    pub(crate) indexes: Vec<Box<dyn QueryBackend<C>>>,
    /// Returns the coordinates of all points by id.
    pub(crate) coords_by_id: Box<dyn Fn() -> Result<Vec<C>> + Send + Sync>,
}

impl<C: Float> UnionIndex<C> {
    /// Runs a query on all indexes concurrently.
    fn each<R: Send>(&self, run: impl Fn(&dyn QueryBackend<C>) -> Result<R> + Sync) -> Result<Vec<R>> {
        each(&self.indexes, |index| run(&**index))
    }

    /// Appends the rows of the nearest points of some queries.
    fn append_nearest(&self, query: NearestQuery<'_, C>, (ids, dist2): &mut NearestRows<C>) -> Result<()> {
        let (num_queries, k) = (query.queries.len, query.k);
        let rows = self.each(|index| index.nearest(query, result_rows(num_queries, k)?))?;
        let begin = ids.len();
        ids.resize(begin + num_queries * k, u32::MAX);
        dist2.resize(begin + num_queries * k, C::INFINITY);
        let (ids, dist2) = (&mut ids[begin..], &mut dist2[begin..]);
        let (ids, dist2) = (Parts::of_initialized(ids), Parts::of_initialized(dist2));
        Ranges::new(num_queries, ROWS_PER_TASK).for_each(&|rows_of_task| {
            for row in rows_of_task {
                let entries = row * k..(row + 1) * k;
                // SAFETY: rows do not overlap.
                let (ids, dist2) = unsafe { (ids.part(entries.clone()), dist2.part(entries)) };
                // SAFETY: both have been resized.
                let (ids, dist2) = unsafe { (ids.assume_init_mut(), dist2.assume_init_mut()) };
                merge(&rows, row * k, ids, dist2);
            }
        });
        Ok(())
    }
}

/// Concatenates the results of several indexes row by row.
fn concatenated<C: Float>(results: &[RangeResult<C>], num_rows: usize, total: u64) -> Result<RangeResult<C>> {
    let len = usize::try_from(total).unwrap_or(usize::MAX);
    let mut offsets = memory::vec_with_capacity(num_rows + 1, "offsets of rows")?;
    offsets.extend((0..=num_rows).map(|row| results.iter().map(|found| found.offsets[row]).sum::<u64>()));
    let has_distances = results.iter().any(|found| !found.dist2.is_empty());
    let mut ids = memory::vec_with_capacity(len, "ids of points found")?;
    let mut dist2 =
        memory::vec_with_capacity(if has_distances { len } else { 0 }, "distances of points found")?;
    for row in 0..num_rows {
        for found in results {
            let range = found.offsets[row] as usize..found.offsets[row + 1] as usize;
            ids.extend_from_slice(&found.ids[range.clone()]);
            if has_distances {
                dist2.extend_from_slice(&found.dist2[range]);
            }
        }
    }
    Ok(RangeResult { offsets, ids, dist2 })
}

/// Merges the rows of all indexes that start at an entry, sorted by (distance, id).
fn merge<C: Float>(rows: &[NearestRows<C>], begin: usize, ids: &mut [u32], dist2: &mut [C]) {
    let mut next = [0; MAX_INDEXES];
    for (to_id, to_dist2) in ids.iter_mut().zip(dist2) {
        let rank =
            |index: usize| (rows[index].1[begin + next[index]].key(), rows[index].0[begin + next[index]]);
        let Some(nearest) = (0..rows.len()).min_by_key(|&index| rank(index)) else { return };
        let at = begin + next[nearest];
        (*to_id, *to_dist2) = (rows[nearest].0[at], rows[nearest].1[at]);
        next[nearest] += 1;
    }
}

/// Maximum number of indexes in a union.
pub(crate) const MAX_INDEXES: usize = 15;

impl<C: Float> QueryBackend<C> for UnionIndex<C> {
    fn check_queries(&self, queries: ValidatedQueries<'_, C>, options: &ValidatedOptions<C>) -> Result<()> {
        let self_coords = queries.self_coords(self)?;
        let queries = queries.with_self_coords(&self_coords);
        self.each(|index| index.check_queries(queries, options)).map(drop)
    }

    fn self_coords(&self) -> Result<Option<Cow<'_, [C]>>> {
        (self.coords_by_id)().map(|coords| Some(coords.into()))
    }

    fn nearest(&self, query: NearestQuery<'_, C>, mut rows: NearestRows<C>) -> Result<NearestRows<C>> {
        let NearestQuery { queries, k, .. } = query;
        if k == 0 {
            return Ok(rows);
        }
        let step = (MERGED_ENTRIES / k).max(1);
        for range in Ranges::new(queries.len, step).iter() {
            self.append_nearest(NearestQuery { queries: queries.part(range), ..query }, &mut rows)?;
        }
        Ok(rows)
    }

    /// Returns the sums over all indexes.
    fn count(&self, query: RangeQuery<'_, C>) -> Result<Vec<u32>> {
        let mut counts = self.each(|index| index.count(query))?.into_iter();
        let mut sums = counts.next().unwrap_or_else(|| vec![0; query.num_rows()]);
        for others in counts {
            sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
        }
        Ok(sums)
    }

    /// Within a row, the points of one index come after the points of another.
    fn find(&self, query: RangeQuery<'_, C>) -> Result<RangeResult<C>> {
        let results = self.each(|index| index.find(query))?;
        let total = results.iter().map(|found| found.ids.len() as u64).sum::<u64>();
        concatenated(&results, query.num_rows(), total)
            .map_err(|error| error.of_result(total, query.item_bytes()))
    }
}
