//! A union of indexes over disjoint sets of points, queried as one: the parts of a tree over several devices, the parts of a tree that
//! pass through a device one after another, or the parts of a tree in host memory whose points change.

use kauri_kernels::thread::coord::{Coord, Float};
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
pub(crate) struct UnionIndex<'a, C> {
    pub(crate) rounds: Box<dyn Rounds<C> + 'a>,
    /// Returns the coordinates of all points by id.
    pub(crate) coords_by_id: Box<dyn Fn() -> Result<Vec<C>> + Send + Sync + 'a>,
}

/// The indexes of a union, in rounds: the indexes of one round are in device memory together, and are queried concurrently.
pub(crate) trait Rounds<C: Coord>: Send + Sync {
    /// Number of rounds.
    fn num_rounds(&self) -> usize;
    /// Returns the indexes of a round, at most [`MAX_INDEXES`]. The rounds, and the indexes of a round, are in the order in which a range
    /// query finds their points.
    fn indexes(&self, round: usize) -> Result<Indexes<'_, C>>;
}

/// The indexes of a round.
pub(crate) enum Indexes<'a, C: Coord> {
    /// Indexes that stay in device memory.
    Resident(&'a [Box<dyn QueryBackend<C>>]),
    /// Indexes in host memory. Each of them uses all threads, so they are queried one after another.
    InHostMemory(Vec<&'a dyn QueryBackend<C>>),
    /// An index that was brought to the device for this round.
    Loaded(Box<dyn QueryBackend<C>>),
}

/// One round of all indexes.
impl<C: Coord> Rounds<C> for Vec<Box<dyn QueryBackend<C>>> {
    fn num_rounds(&self) -> usize {
        1
    }

    fn indexes(&self, _: usize) -> Result<Indexes<'_, C>> {
        Ok(Indexes::Resident(self))
    }
}

impl<C: Coord> Indexes<'_, C> {
    /// Runs a query on all indexes concurrently.
    fn each<R: Send>(&self, run: impl Fn(&dyn QueryBackend<C>) -> Result<R> + Sync) -> Result<Vec<R>> {
        match self {
            Self::Resident(indexes) => each(*indexes, |index| run(&**index)),
            Self::InHostMemory(indexes) => indexes.iter().map(|index| run(*index)).collect(),
            Self::Loaded(index) => Ok(vec![run(&**index)?]),
        }
    }

    /// Merges the rows of the nearest points of some queries into rows that have the nearest points of earlier rounds.
    fn merge_nearest(
        &self,
        query: NearestQuery<'_, C>,
        is_first: bool,
        ids: &mut [u32],
        dist2: &mut [C::Distance],
    ) -> Result<()> {
        let (num_queries, k) = (query.queries.len, query.k);
        let mut rows = self.each(|index| index.nearest(query, result_rows(num_queries, k)?))?;
        if !is_first {
            let label = "neighbors of earlier rounds";
            rows.push((memory::copy(ids, label)?, memory::copy(dist2, label)?));
        }
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

impl<C: Coord> UnionIndex<'_, C> {
    /// Runs a query on all indexes, round by round.
    fn each<R: Send>(
        &self,
        run: impl Fn(&dyn QueryBackend<C>) -> Result<R> + Sync,
        mut visit: impl FnMut(Vec<R>) -> Result<()>,
    ) -> Result<()> {
        (0..self.rounds.num_rounds()).try_for_each(|round| visit(self.rounds.indexes(round)?.each(&run)?))
    }
}

/// Concatenates the results of several indexes row by row.
fn concatenated<C: Float>(
    mut results: Vec<RangeResult<C>>,
    num_rows: usize,
    total: u64,
) -> Result<RangeResult<C>> {
    if results.len() == 1 {
        return Ok(results.remove(0));
    }
    let len = usize::try_from(total).unwrap_or(usize::MAX);
    let mut offsets = memory::vec_with_capacity(num_rows + 1, "offsets of rows")?;
    offsets.extend((0..=num_rows).map(|row| results.iter().map(|found| found.offsets[row]).sum::<u64>()));
    let has_distances = results.iter().any(|found| !found.dist2.is_empty());
    let mut ids = memory::vec_with_capacity(len, "ids of points found")?;
    let mut dist2 =
        memory::vec_with_capacity(if has_distances { len } else { 0 }, "distances of points found")?;
    for row in 0..num_rows {
        for found in &results {
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
    // The rows of earlier rounds are one more.
    let mut next = [0; MAX_INDEXES + 1];
    for (to_id, to_dist2) in ids.iter_mut().zip(dist2) {
        let rank =
            |index: usize| (rows[index].1[begin + next[index]].key(), rows[index].0[begin + next[index]]);
        let Some(nearest) = (0..rows.len()).min_by_key(|&index| rank(index)) else { return };
        let at = begin + next[nearest];
        (*to_id, *to_dist2) = (rows[nearest].0[at], rows[nearest].1[at]);
        next[nearest] += 1;
    }
}

/// Maximum number of indexes in a round.
pub(crate) const MAX_INDEXES: usize = 15;

impl<C: Coord> QueryBackend<C> for UnionIndex<'_, C> {
    fn check_queries(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: &ValidatedOptions<C::Distance>,
    ) -> Result<()> {
        let self_coords = queries.self_coords(self)?;
        let queries = queries.with_self_coords(&self_coords);
        self.each(|index| index.check_queries(queries, options), |_| Ok(()))
    }

    fn self_coords(&self) -> Result<Option<Cow<'_, [C]>>> {
        (self.coords_by_id)().map(|coords| Some(coords.into()))
    }

    fn nearest(
        &self,
        query: NearestQuery<'_, C>,
        (mut ids, mut dist2): NearestRows<C::Distance>,
    ) -> Result<NearestRows<C::Distance>> {
        let NearestQuery { queries, k, .. } = query;
        if queries.len == 0 || k == 0 {
            return Ok((ids, dist2));
        }
        ids.resize(queries.len * k, u32::MAX);
        dist2.resize(queries.len * k, C::Distance::INFINITY);
        let step = (MERGED_ENTRIES / k).max(1);
        for round in 0..self.rounds.num_rounds() {
            let indexes = self.rounds.indexes(round)?;
            for range in Ranges::new(queries.len, step).iter() {
                let entries = range.start * k..range.end * k;
                let part = NearestQuery { queries: queries.part(range), ..query };
                indexes.merge_nearest(part, round == 0, &mut ids[entries.clone()], &mut dist2[entries])?;
            }
        }
        Ok((ids, dist2))
    }

    /// Returns the sums over all indexes.
    fn count(&self, query: RangeQuery<'_, C>) -> Result<Vec<u32>> {
        let mut sums = memory::filled(query.num_rows(), 0, "counts of points")?;
        self.each(
            |index| index.count(query),
            |counts| {
                for counts in counts {
                    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                }
                Ok(())
            },
        )?;
        Ok(sums)
    }

    /// Within a row, the points of one index come after the points of another.
    fn find(&self, query: RangeQuery<'_, C>) -> Result<RangeResult<C::Distance>> {
        let mut all: Option<RangeResult<C::Distance>> = None;
        self.each(
            |index| index.find(query),
            |results| {
                let results: Vec<_> = all.take().into_iter().chain(results).collect();
                let total = results.iter().map(|found| found.ids.len() as u64).sum::<u64>();
                all = Some(
                    concatenated(results, query.num_rows(), total)
                        .map_err(|error| error.of_result(total, query.item_bytes()))?,
                );
                Ok(())
            },
        )?;
        all.map_or_else(|| concatenated(Vec::new(), query.num_rows(), 0), Ok)
    }
}
