//! Finds the best pairs on the CPU.
//!
//! Each thread collects pairs before the threshold and adds them to a shared list a few at a time. When the list has about `2 k` pairs,
//! the best `k` are kept, and the last of them becomes the new threshold. The threshold includes the ids of its pair, so that few of many
//! pairs with equal scores are visited.

use super::overfull_cells::{NodeFilter, OverfullCells, Subtree, TreeNode, TreePoint, TreeVisitor};
use super::sets::{JoinSides, MatchVisitor};
use crate::error::Result;
use crate::join::rows::zeros;
use crate::join::scored::Score;
use crate::join::top_k::PAIR_BYTES;
use crate::memory;
use crate::parallel::{self, TASK_ITEMS};
use crate::threads::lock;
use kauri_kernels::join::best::pair;
use kauri_kernels::join::score::Scoring;
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::words::Bits128;
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Pairs that a thread adds to the shared list at a time.
const BATCH: usize = 64;
/// The shared list has at least this many pairs before the best are selected.
const MIN_CAPACITY: usize = 1 << 7;
/// For a greater `k` all pairs are counted first, so that the list is no larger than needed.
const COUNTED_FROM: usize = 1 << 16;

/// Returns the ranks of the scores of points by their ids.
pub(super) type RanksOf<'a> = dyn Fn(&[u32]) -> Result<Vec<u64>> + 'a;

/// Returns the rank of the score of a left and a right id.
pub(in crate::join) type CustomScore<'a> = dyn Fn(u32, u32) -> u64 + Sync + 'a;

/// Where the scores of pairs come from.
#[derive(Clone, Copy)]
pub(super) enum PairScores<'a> {
    /// The scores of points, whose ranks are returned for both sides, and a score function.
    OfPoints([&'a RanksOf<'a>; 2], &'a Scoring),
    /// A custom score.
    Custom(&'a CustomScore<'a>),
}

/// Returns the ranks of the scores of points.
pub(super) fn ranks_of<S: Score>(ids: &[u32], scores: &[S]) -> Result<Vec<u64>> {
    parallel::collect(ids.len(), TASK_ITEMS, "ranks of scores", |i| scores[ids[i] as usize].score_rank())
}

/// Finds the best `k` pairs, in order; `k` is at least 1.
pub(super) fn best_pairs<C: Float, const D: usize>(
    sides: &JoinSides<'_, C, D>,
    scores: PairScores<'_>,
    k: usize,
) -> Result<Vec<Bits128>> {
    let Some(best) = SharedBest::of_join(k, || sides.count())? else { return Ok(Vec::new()) };
    let ranks = SortedScores::new(sides, scores)?;
    let tasks = sides.tasks();
    parallel::try_for_each(tasks.num(), &|task| {
        let mut pairs = memory::vec_with_capacity(BATCH, "best pairs")?;
        let probe_point = |probe: usize| ProbePoint {
            scores: &ranks,
            position: probe,
            id: sides.probe.ids[probe],
            threshold: best.threshold(),
        };
        let may_have_pairs = |&probe: &usize| probe_point(probe).may_have_pairs(None, 0);
        sides.try_for_each(tasks.get(task).filter(may_have_pairs), |probe, segments| {
            let mut visitor = BestVisitor {
                best: &best,
                ids: &sides.build.ids,
                point: probe_point(probe),
                pairs: &mut pairs,
            };
            sides.search(probe, segments, &mut visitor)
        })?;
        best.add(&mut pairs);
        Ok(())
    })?;
    Ok(best.into_pairs())
}

/// Finds the best `k` pairs of `num_tasks` tasks, in order; `k` is at least 1. `task` gets the number of a task, and where to offer its
/// pairs. `count` returns the number of all pairs.
pub(in crate::join) fn best_pairs_of_tasks(
    k: usize,
    count: impl FnOnce() -> u64,
    num_tasks: usize,
    task: impl Fn(usize, &mut TaskPairs<'_>) + Sync,
) -> Result<Vec<Bits128>> {
    let Some(best) = SharedBest::of_join(k, || Ok(count()))? else { return Ok(Vec::new()) };
    parallel::try_for_each(num_tasks, &|number| {
        let pairs = memory::vec_with_capacity(BATCH, "best pairs")?;
        let mut found = TaskPairs { best: &best, threshold: best.threshold(), pairs };
        task(number, &mut found);
        best.add(&mut found.pairs);
        Ok(())
    })?;
    Ok(best.into_pairs())
}

/// The pairs that a task has found and not yet added to the shared list.
pub(in crate::join) struct TaskPairs<'a> {
    best: &'a SharedBest,
    threshold: Bits128,
    pairs: Vec<Bits128>,
}

impl TaskPairs<'_> {
    /// True if a pair is before the threshold.
    #[inline(always)]
    pub(in crate::join) fn accepts(&self, pair: Bits128) -> bool {
        key(&pair) < key(&self.threshold)
    }

    /// Adds a pair that is before the threshold.
    #[inline(always)]
    pub(in crate::join) fn offer(&mut self, pair: Bits128) {
        if self.accepts(pair) {
            self.pairs.push(pair);
            if self.pairs.len() == BATCH {
                self.best.add(&mut self.pairs);
                self.threshold = self.best.threshold();
            }
        }
    }
}

/// The range of no ranks, as [least, greatest].
const EMPTY: [u64; 2] = [u64::MAX, 0];

/// Returns the smallest range that contains both.
fn union(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
    [a[0].min(b[0]), a[1].max(b[1])]
}

/// Returns the least and the greatest rank below each node.
fn node_ranks<C: Float, const D: usize>(
    overfull: &OverfullCells<C, D>,
    ranks: &[u64],
) -> Result<Vec<[u64; 2]>> {
    fn set<C: Float, const D: usize>(subtree: Subtree<'_, C, D>, ranks: &[u64], to: &mut [[u64; 2]]) {
        to[subtree.index] = match subtree.children() {
            Some(children) => {
                let [left, right] = children.map(|child| child.index);
                children.into_iter().for_each(|child| set(child, ranks, to));
                union(to[left], to[right])
            }
            None => {
                let ranks = subtree.items.iter().map(|item| [ranks[item.position as usize]; 2]);
                ranks.fold(EMPTY, union)
            }
        };
    }
    let mut to = zeros(overfull.nodes.len(), "ranks of scores")?;
    overfull.trees().for_each(|tree| set(tree, ranks, &mut to));
    Ok(to)
}

/// The best pairs so far, shared by all threads.
struct SharedBest {
    k: usize,
    pairs: Mutex<Vec<Bits128>>,
    /// The running threshold: only pairs before it may be among the best.
    threshold: [AtomicU64; 2],
}

impl SharedBest {
    /// Allocates the list for the best `k` pairs of a join, or returns `None` if it has none. `count` returns the number of all pairs.
    fn of_join(k: usize, count: impl FnOnce() -> Result<u64>) -> Result<Option<Self>> {
        let all = if k > COUNTED_FROM { usize::try_from(count()?).unwrap_or(usize::MAX) } else { usize::MAX };
        Ok(if all == 0 { None } else { Some(Self::new(k.min(all), all)?) })
    }

    /// Allocates the list for the best `k` of at most `all` pairs.
    fn new(k: usize, all: usize) -> Result<Self> {
        let capacity = k.saturating_mul(2).min(all).max(MIN_CAPACITY).saturating_add(BATCH);
        let pairs = memory::vec_with_capacity(capacity, "best pairs")
            .map_err(|error| error.of_result(k as u64, PAIR_BYTES))?;
        Ok(Self { k, pairs: Mutex::new(pairs), threshold: [const { AtomicU64::new(u64::MAX) }; 2] })
    }

    /// Returns a pair that is not before the current threshold.
    fn threshold(&self) -> Bits128 {
        // Thresholds only decrease. The ids belong to the threshold of the rank or to a later one, so that both together are never before
        // the latest threshold.
        let rank = self.threshold[0].load(Ordering::Acquire);
        Bits128(rank, self.threshold[1].load(Ordering::Relaxed))
    }

    /// Adds at most [`BATCH`] pairs.
    fn add(&self, added: &mut Vec<Bits128>) {
        if added.is_empty() {
            return;
        }
        let mut pairs = lock(&self.pairs);
        if pairs.capacity() - pairs.len() < added.len() {
            let last = keep_best(&mut pairs, self.k);
            self.threshold[1].store(last.1, Ordering::Relaxed);
            self.threshold[0].store(last.0, Ordering::Release);
        }
        pairs.append(added);
    }

    /// Returns the best pairs in order.
    fn into_pairs(self) -> Vec<Bits128> {
        let mut pairs = self.pairs.into_inner().unwrap_or_else(PoisonError::into_inner);
        if pairs.len() > self.k {
            keep_best(&mut pairs, self.k);
        }
        pairs.par_sort_unstable_by_key(key);
        pairs
    }
}

/// Returns the bytes of the list for the best `k` pairs of sets of `num_points` points.
pub(in crate::join) fn best_bytes(k: usize, num_points: [usize; 2]) -> u64 {
    let all = num_points[0] as u128 * num_points[1] as u128;
    let room = (2 * k as u128).min(all).max(MIN_CAPACITY as u128) + BATCH as u128;
    u64::try_from(room * size_of::<Bits128>() as u128).unwrap_or(u64::MAX)
}

/// Returns the sort key of a pair.
fn key(pair: &Bits128) -> (u64, u64) {
    (pair.0, pair.1)
}

/// Keeps the best `k` of more than `k` pairs and returns the last of them.
fn keep_best(pairs: &mut Vec<Bits128>, k: usize) -> Bits128 {
    let (_, &mut last, _) = pairs.select_nth_unstable_by_key(k - 1, key);
    pairs.truncate(k);
    last
}

/// The scores of pairs, by positions.
enum SortedScores<'a> {
    OfPoints {
        scoring: &'a Scoring,
        /// The ranks of the scores of both sides.
        ranks: [Vec<u64>; 2],
        /// The least and the greatest rank of the build side, and below each node of its trees.
        extremes: [u64; 2],
        node_ranks: Vec<[u64; 2]>,
    },
    Custom(&'a CustomScore<'a>),
}

impl<'a> SortedScores<'a> {
    fn new<C: Float, const D: usize>(sides: &JoinSides<'_, C, D>, scores: PairScores<'a>) -> Result<Self> {
        let (ranks_of, scoring) = match scores {
            PairScores::OfPoints(ranks_of, scoring) => (ranks_of, scoring),
            PairScores::Custom(score) => return Ok(Self::Custom(score)),
        };
        let ranks = [ranks_of[0](&sides.build.ids)?, ranks_of[1](&sides.probe.ids)?];
        let range_of = |ranks: &[u64]| ranks.iter().map(|&rank| [rank; 2]).fold(EMPTY, union);
        let extremes = parallel::reduce(ranks[0].len(), TASK_ITEMS, |part| range_of(&ranks[0][part]), union);
        let node_ranks = node_ranks(&sides.build.overfull, &ranks[0])?;
        Ok(Self::OfPoints { scoring, ranks, extremes: extremes.unwrap_or(EMPTY), node_ranks })
    }
}

/// A probe point and the threshold for its pairs.
struct ProbePoint<'a> {
    scores: &'a SortedScores<'a>,
    position: usize,
    id: u32,
    threshold: Bits128,
}

impl ProbePoint<'_> {
    /// Returns the pair with the build point at a position if it is before the threshold.
    #[inline(always)]
    fn pair(&self, build: usize, id: u32) -> Option<Bits128> {
        let rank = match self.scores {
            SortedScores::OfPoints { scoring, ranks, .. } => {
                scoring.rank(ranks[0][build], ranks[1][self.position])
            }
            SortedScores::Custom(score) => score(id, self.id),
        };
        self.pair_of_rank(rank, id)
    }

    #[inline(always)]
    fn pair_of_rank(&self, rank: u64, id: u32) -> Option<Bits128> {
        let pair = pair(rank, id, self.id);
        (key(&pair) < key(&self.threshold)).then_some(pair)
    }

    /// True if build points below a node, or any build points, with ids from `least_id` on may make a pair before the threshold.
    fn may_have_pairs(&self, node: Option<usize>, least_id: u32) -> bool {
        let SortedScores::OfPoints { scoring, ranks, extremes, node_ranks } = self.scores else {
            return true;
        };
        // Every score function is monotone in the score of one point.
        let ends = node.map_or(*extremes, |node| node_ranks[node]);
        let rank = |end| scoring.rank(end, ranks[1][self.position]);
        ends.into_iter().any(|end| self.pair_of_rank(rank(end), least_id).is_some())
    }
}

/// Collects the best pairs of a probe point.
struct BestVisitor<'a> {
    best: &'a SharedBest,
    /// The ids of the build points, by position.
    ids: &'a [u32],
    point: ProbePoint<'a>,
    /// Pairs to add to the shared list.
    pairs: &'a mut Vec<Bits128>,
}

impl<C: Float, const D: usize> MatchVisitor<C, D> for BestVisitor<'_> {
    #[inline(always)]
    fn visit(&mut self, position: usize) {
        if let Some(pair) = self.point.pair(position, self.ids[position]) {
            self.pairs.push(pair);
            if self.pairs.len() == BATCH {
                self.best.add(self.pairs);
                self.point.threshold = self.best.threshold();
            }
        }
    }

    fn visit_overfull_cell(
        &mut self,
        sides: &JoinSides<'_, C, D>,
        tree: Subtree<'_, C, D>,
        _: Range<usize>,
        point: &[C; D],
    ) -> Result<()> {
        let _ = tree.search(point, sides.params, self);
        Ok(())
    }
}

impl<C: Float, const D: usize> TreeVisitor<C, D> for BestVisitor<'_> {
    fn filter(&self, node: &TreeNode<C, D>, index: usize) -> NodeFilter {
        match self.point.may_have_pairs(Some(index), self.ids[node.positions[0] as usize]) {
            // Never all points, because the threshold may decrease during the search.
            true => NodeFilter::Descend,
            false => NodeFilter::Skip,
        }
    }

    fn visit(&mut self, item: &TreePoint<C, D>) -> ControlFlow<()> {
        MatchVisitor::<C, D>::visit(self, item.position as usize);
        ControlFlow::Continue(())
    }
}
