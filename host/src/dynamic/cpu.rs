//! A tree whose points change, on the CPU: up to three left-balanced trees of decreasing size, its *parts* (Bentley, Saxe 1980).
//!
//! New points become a part, together with the points of the last parts if those are small. The larger the batches are in comparison with
//! the first part, the larger the other parts may be: with `n` points in the first part and batches of `m`, the third part has up to
//! `c m` points and the second up to `c² m`, where `c³ = 2 n / m`. Then each batch costs the build of `3 c m / 2` points on average, which
//! is the least for three parts. A removed point keeps its slot, which has no id from then on.

use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

use crate::dynamic::backend::Backend;
use crate::error::{Error, Result};
use crate::kdtree::{SplitRule, cpu};
use crate::memory;
use crate::point::with_dims;
use crate::primitives::cpu::bounds::bounds;
use crate::query::backend::{NearestQuery, NearestRows, QueryBackend, RangeQuery, Regions, ValidatedQueries};
use crate::query::cpu::CpuIndex;
use crate::query::options::{PointsById, ValidatedOptions, has_bit};
use crate::query::union::{Indexes, Rounds, UnionIndex};
use crate::query::within::RangeResult;
use crate::stats::Stats;

/// Most parts; each part costs a query a traversal.
const MAX_PARTS: usize = 3;

/// A tree whose points change.
pub(crate) struct CpuParts<C> {
    dims: usize,
    split: SplitRule,
    /// The largest first.
    parts: Vec<CpuIndex<C>>,
    num_ids: usize,
    /// A bit for each id: the point has been removed.
    removed: Vec<u32>,
}

impl<C: Coord> CpuParts<C> {
    pub(crate) fn new(dims: usize, split: SplitRule) -> Self {
        Self { dims, split, parts: Vec::new(), num_ids: 0, removed: Vec::new() }
    }

    /// A tree that has given many ids, without bits for them.
    #[cfg(test)]
    pub(crate) fn with_ids_given(dims: usize, split: SplitRule, num_ids: usize) -> Self {
        Self { num_ids, ..Self::new(dims, split) }
    }

    /// Builds a part of the points of some parts, without removed ones, and of further points with the next ids.
    fn merge(
        &self,
        parts: &[CpuIndex<C>],
        is_removed: impl Fn(u32) -> bool,
        coords: &[C],
    ) -> Result<CpuIndex<C>> {
        let num_merged: usize = parts.iter().map(CpuIndex::num_remaining).sum();
        let num_points = num_merged + coords.len() / self.dims;
        let mut merged = memory::vec_with_capacity(num_points * self.dims, "points of a part")?;
        let mut ids = memory::vec_with_capacity(num_points, "ids of a part")?;
        with_dims!(self.dims, D => {
            for part in parts {
                part.for_each_point::<D>(|point, id| {
                    if !is_removed(id) {
                        merged.extend_from_slice(&point);
                        ids.push(id);
                    }
                });
            }
        });
        merged.extend_from_slice(coords);
        ids.extend((self.num_ids as u32..).take(coords.len() / self.dims));
        let tree = cpu::build(&merged, Some(&ids), self.dims, self.split, &mut Stats::default())?;
        Ok(tree.into_part())
    }

    /// Returns the coordinates of the points by id; zeros for removed points.
    fn coords_by_id(&self) -> Result<Vec<C>> {
        let mut by_id = memory::filled(self.num_ids * self.dims, C::ZERO, "points as queries")?;
        with_dims!(self.dims, D => {
            let rows = by_id.as_chunks_mut::<D>().0;
            for part in &self.parts {
                part.for_each_point::<D>(|point, id| rows[id as usize] = point);
            }
        });
        Ok(by_id)
    }

    /// Runs a query on the only part, or on the union of all.
    fn query<R>(&self, run: impl FnOnce(&dyn QueryBackend<C>) -> R) -> R {
        match &self.parts[..] {
            [part] => run(part),
            _ => run(&UnionIndex { rounds: Box::new(self), coords_by_id: Box::new(|| self.coords_by_id()) }),
        }
    }

    /// Tells the queries which points have been removed.
    fn with_removed<'a>(&'a self, queries: ValidatedQueries<'a, C>) -> ValidatedQueries<'a, C> {
        ValidatedQueries { removed: &self.removed, ..queries }
    }

    fn range<'a>(&'a self, query: RangeQuery<'a, C>) -> RangeQuery<'a, C> {
        let regions = match query.regions {
            Regions::Within(queries) => Regions::Within(self.with_removed(queries)),
            boxes @ Regions::InBoxes(..) => boxes,
        };
        RangeQuery { regions, ..query }
    }
}

/// Returns how many of the parts with these numbers of points stay as they are when a batch of points is inserted.
fn num_kept(lens: &[usize], batch: usize) -> usize {
    let (mut kept, mut merged) = (lens.len(), batch);
    let is_too_large = |kept: usize, merged: usize| {
        let (first, cube) = (lens[0] as u128, (merged as u128).pow(3));
        match kept {
            1 => cube > 4 * first * first * batch as u128,
            2 => cube > 2 * first * (batch as u128).pow(2),
            _ => kept >= MAX_PARTS,
        }
    };
    while kept > 0 && (lens[kept - 1] <= merged || is_too_large(kept, merged)) {
        kept -= 1;
        merged += lens[kept];
    }
    kept
}

impl<C: Coord> Backend<C> for CpuParts<C> {
    fn query_backend(&self) -> &dyn QueryBackend<C> {
        self
    }

    fn num_ids(&self) -> usize {
        self.num_ids
    }

    fn num_points(&self) -> usize {
        self.parts.iter().map(CpuIndex::num_remaining).sum()
    }

    fn contains(&self, id: u32) -> Result<bool> {
        Ok((id as usize) < self.num_ids && !has_bit(&self.removed, id as usize))
    }

    fn insert(&mut self, coords: &[C]) -> Result<()> {
        let num_new = coords.len() / self.dims;
        if num_new == 0 {
            return Ok(());
        }
        let lens = memory::collect(self.parts.iter().map(CpuIndex::num_remaining), "sizes of parts")?;
        let kept = num_kept(&lens, num_new);
        let merged = self.merge(&self.parts[kept..], |_| false, coords)?;
        let words = (self.num_ids + num_new).div_ceil(32);
        let more = words.saturating_sub(self.removed.len());
        memory::reserve_more(&mut self.removed, more, "removed points")?;
        memory::reserve_more(&mut self.parts, 1, "parts")?;
        self.removed.resize(words, 0);
        self.parts.truncate(kept);
        self.parts.push(merged);
        self.num_ids += num_new;
        Ok(())
    }

    fn remove(&mut self, ids: &[u32]) -> Result<()> {
        let mut marked: Vec<u32> = memory::filled(self.removed.len(), 0, "points to remove")?;
        let mut least = None;
        for &id in ids {
            let bit = 1 << (id % 32);
            let error = if (id as usize) >= self.num_ids || has_bit(&self.removed, id as usize) {
                Error::UnknownId { id }
            } else if marked[id as usize / 32] & bit != 0 {
                Error::RepeatedId { id }
            } else {
                marked[id as usize / 32] |= bit;
                continue;
            };
            if least.as_ref().is_none_or(|&(least, _)| id < least) {
                least = Some((id, error));
            }
        }
        if let Some((_, error)) = least {
            return Err(error);
        }
        let is_removed = |id: u32| has_bit(&marked, id as usize);
        let remaining = self.num_points() - ids.len();
        let slots: usize = self.parts.iter().map(CpuIndex::num_points).sum();
        if remaining == 0 {
            self.parts.clear();
        } else if 2 * remaining < slots {
            self.parts = vec![self.merge(&self.parts, is_removed, &[])?];
        } else {
            with_dims!(self.dims, D => {
                let boxes = self.parts.iter().map(|part| part.boxes_without::<D>(is_removed));
                let boxes = boxes.collect::<Result<Vec<_>>>()?;
                for (part, boxes) in self.parts.iter_mut().zip(boxes) {
                    part.remove(is_removed, boxes);
                }
            });
            self.parts.retain(|part| part.num_remaining() > 0);
            self.parts.sort_by_key(|part| std::cmp::Reverse(part.num_remaining()));
        }
        self.removed.iter_mut().zip(&marked).for_each(|(removed, marked)| *removed |= marked);
        Ok(())
    }
}

/// One round of all parts.
impl<C: Coord> Rounds<C> for &CpuParts<C> {
    fn num_rounds(&self) -> usize {
        1
    }

    fn indexes(&self, _: usize) -> Result<Indexes<'_, C>> {
        Ok(Indexes::InHostMemory(self.parts.iter().map(|part| part as &dyn QueryBackend<C>).collect()))
    }
}

impl<C: Coord> QueryBackend<C> for CpuParts<C> {
    fn check_queries(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: &ValidatedOptions<C::Distance>,
    ) -> Result<()> {
        with_dims!(self.dims, D => {
            let corners = self.parts.iter().map(CpuIndex::bounds::<D>);
            let [low, high] = corners.fold([[C::EMPTY[0]; D], [C::EMPTY[1]; D]], |[low, high], corners| {
                [bounds(&[low, corners[0]])[0], bounds(&[high, corners[1]])[1]]
            });
            options.check_queries::<_, D>(queries, [low, high], || {
                let removed = memory::copy(&self.removed, "removed points")?;
                Ok(PointsById { coords: self.coords_by_id()?, removed })
            })
        })
    }

    fn self_coords(&self) -> Result<Option<Cow<'_, [C]>>> {
        self.coords_by_id().map(|coords| Some(coords.into()))
    }

    fn nearest(
        &self,
        query: NearestQuery<'_, C>,
        rows: NearestRows<C::Distance>,
    ) -> Result<NearestRows<C::Distance>> {
        let query = NearestQuery { queries: self.with_removed(query.queries), ..query };
        self.query(|index| index.nearest(query, rows))
    }

    fn nearest_of_one(
        &self,
        query: NearestQuery<'_, C>,
        ids: &mut [u32],
        dist2: &mut [C::Distance],
    ) -> Result<()> {
        self.query(|index| index.nearest_of_one(query, ids, dist2))
    }

    fn count(&self, query: RangeQuery<'_, C>) -> Result<Vec<u32>> {
        self.query(|index| index.count(self.range(query)))
    }

    fn find(&self, query: RangeQuery<'_, C>) -> Result<RangeResult<C::Distance>> {
        self.query(|index| index.find(self.range(query)))
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PARTS, num_kept};

    /// Inserts batches of equal size, and returns the points that were built per batch, and the largest number of parts.
    fn cost(first: usize, batch: usize, num_batches: usize) -> (f64, usize) {
        let (mut lens, mut built, mut most) = (vec![first], 0, 0);
        for _ in 0..num_batches {
            let kept = num_kept(&lens, batch);
            let merged = batch + lens[kept..].iter().sum::<usize>();
            lens.truncate(kept);
            lens.push(merged);
            built += merged;
            most = most.max(lens.len());
        }
        (built as f64 / num_batches as f64, most)
    }

    #[test]
    fn batches_cost_the_cube_root_of_their_number() {
        for (first, batch) in [(10_000_000, 100_000), (10_000_000, 10_000), (1_000_000, 100), (1000, 1)] {
            let (built, most) = cost(first, batch, first / batch);
            let c = (2.0 * first as f64 / batch as f64).cbrt();
            assert!(most <= MAX_PARTS && built < 2.5 * c * batch as f64, "{first} {batch}: {built} {c}");
        }
        // A batch as large as all points is built together with them.
        assert_eq!(num_kept(&[100, 10, 5], 200), 0);
        assert_eq!(num_kept(&[], 5), 0);
    }
}
