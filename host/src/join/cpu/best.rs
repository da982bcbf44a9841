//! The best pairs of all.
//!
//! Threads collect pairs that are before a limit, and add them to those of all threads a few at a time. Whenever these are about twice
//! as many as are looked for, the best are kept, and the last of them is the new limit. A limit has the ids of its pair too, so that of
//! any number of pairs with one score only few are looked at.

use super::cells::collected;
use super::crowds::{Crowds, Item, Node, Search, Subtree, Wanted};
use super::{Sets, Take};
use crate::error::Result;
use crate::join::scored::{Score, ScoredPair};
use crate::memory;
use kauri_kernels::join::best::pair;
use kauri_kernels::join::score::Scoring;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Pairs that a thread adds at a time.
const ADDED: usize = 64;
/// At least this many pairs are collected before the best of them are selected.
const LEAST: usize = 1 << 7;
/// If more pairs than that are looked for, all are counted first, so that no more memory is taken than they need.
const COUNTED: usize = 1 << 16;

/// Finds the `k` best pairs, at least one.
pub(super) fn of<C: Coord, S: Score, const D: usize>(
    sets: &Sets<'_, C, D>,
    scores: [&[S]; 2],
    scoring: &Scoring,
    k: usize,
) -> Result<Vec<Bits128>> {
    let all = if k > COUNTED { usize::try_from(sets.count()?).unwrap_or(usize::MAX) } else { usize::MAX };
    let best = Best::new(k.min(all), all)?;
    if best.k == 0 {
        return Ok(Vec::new());
    }
    let ranks = |ids: &[u32], scores: &[S]| {
        collected(ids.par_iter().map(|&id| scores[id as usize].score_rank()), "ranks of scores")
    };
    let ranks = [ranks(&sets.left.ids, scores[0])?, ranks(&sets.right.ids, scores[1])?];
    let extremes = ranks[0].par_iter().map(|&rank| [rank; 2]).reduce(|| NONE, outer);
    let node_ranks = node_ranks(&sets.left.crowds, &ranks[0])?;
    sets.tasks().try_for_each(|task| {
        let mut pairs = memory::vec_with_capacity(ADDED, "best pairs")?;
        let of_right = |right: usize| Right {
            scoring,
            id: sets.right.ids[right],
            rank: ranks[1][right],
            limit: best.limit(),
        };
        let wanted = |right: usize| of_right(right).may_have(extremes, 0);
        sets.try_each(task, wanted, |right, segments| {
            let (ids, of, pairs) = (&sets.left.ids[..], of_right(right), &mut pairs);
            let mut probe = Probe { best: &best, ids, ranks: &ranks[0], node_ranks: &node_ranks, of, pairs };
            sets.search(right, segments, &mut probe)
        })?;
        best.add(&mut pairs);
        Ok(())
    })?;
    Ok(best.into_pairs())
}

/// The ranks of no score: the least and the greatest.
const NONE: [u64; 2] = [u64::MAX, 0];

/// The least and the greatest rank of both.
fn outer(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
    [a[0].min(b[0]), a[1].max(b[1])]
}

/// The least and the greatest rank below each node.
fn node_ranks<C: Coord, const D: usize>(crowds: &Crowds<C, D>, ranks: &[u64]) -> Result<Vec<[u64; 2]>> {
    fn set<C: Coord, const D: usize>(subtree: Subtree<'_, C, D>, ranks: &[u64], to: &mut [[u64; 2]]) {
        to[subtree.number] = match subtree.halves() {
            Some(halves) => {
                let numbers = halves.map(|half| half.number);
                halves.into_iter().for_each(|half| set(half, ranks, to));
                outer(to[numbers[0]], to[numbers[1]])
            }
            None => {
                let ranks = subtree.items.iter().map(|item| [ranks[item.left as usize]; 2]);
                ranks.fold(NONE, outer)
            }
        };
    }
    let mut to = memory::vec_with_capacity(crowds.num_nodes(), "ranks of scores")?;
    to.resize(crowds.num_nodes(), NONE);
    crowds.trees().for_each(|tree| set(tree, ranks, &mut to));
    Ok(to)
}

/// The best pairs so far, of all threads.
struct Best {
    k: usize,
    pairs: Mutex<Vec<Bits128>>,
    /// The last pair that may be among the best, and all before it: what is not before it is not wanted.
    limit: [AtomicU64; 2],
}

impl Best {
    /// Room for the `k` best, of at most `all` pairs.
    fn new(k: usize, all: usize) -> Result<Self> {
        let room = k.saturating_mul(2).min(all).max(LEAST).saturating_add(ADDED);
        let bytes = (k as u64).saturating_mul((size_of::<Bits128>() + size_of::<ScoredPair>()) as u64);
        let pairs = memory::vec_with_capacity(room, "best pairs")
            .map_err(|error| error.of_result(k as u64, bytes))?;
        Ok(Self { k, pairs: Mutex::new(pairs), limit: [const { AtomicU64::new(u64::MAX) }; 2] })
    }

    /// A pair that no wanted pair is behind.
    fn limit(&self) -> Bits128 {
        // Limits only come down. The ids are as new as the rank or newer: then both together are behind the newer limit.
        let rank = self.limit[0].load(Ordering::Acquire);
        Bits128(rank, self.limit[1].load(Ordering::Relaxed))
    }

    /// Adds at most [`ADDED`] pairs.
    fn add(&self, added: &mut Vec<Bits128>) {
        if added.is_empty() {
            return;
        }
        let mut pairs = self.pairs();
        if pairs.capacity() - pairs.len() < added.len() {
            let last = keep_best(&mut pairs, self.k);
            self.limit[1].store(last.1, Ordering::Relaxed);
            self.limit[0].store(last.0, Ordering::Release);
        }
        pairs.append(added);
    }

    fn pairs(&self) -> MutexGuard<'_, Vec<Bits128>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The best, in order.
    fn into_pairs(self) -> Vec<Bits128> {
        let mut pairs = self.pairs.into_inner().unwrap_or_else(PoisonError::into_inner);
        if pairs.len() > self.k {
            keep_best(&mut pairs, self.k);
        }
        pairs.par_sort_unstable_by_key(key);
        pairs
    }
}

/// Bytes of the best `k` pairs of sets of so many points while they are looked for.
pub(in crate::join) fn best_bytes(k: usize, num_points: [usize; 2]) -> u64 {
    let all = num_points[0] as u128 * num_points[1] as u128;
    let room = (2 * k as u128).min(all).max(LEAST as u128) + ADDED as u128;
    u64::try_from(room * size_of::<Bits128>() as u128).unwrap_or(u64::MAX)
}

/// What pairs are ordered by.
fn key(pair: &Bits128) -> (u64, u64) {
    (pair.0, pair.1)
}

/// Keeps the `k` best of more pairs and returns the last of them.
fn keep_best(pairs: &mut Vec<Bits128>, k: usize) -> Bits128 {
    let (_, &mut last, _) = pairs.select_nth_unstable_by_key(k - 1, key);
    pairs.truncate(k);
    last
}

/// A right point and what its pairs have to be before.
struct Right<'a> {
    scoring: &'a Scoring,
    id: u32,
    /// The rank of its score.
    rank: u64,
    limit: Bits128,
}

impl Right<'_> {
    /// The pair with a left point, if it is wanted.
    #[inline(always)]
    fn pair(&self, rank: u64, id: u32) -> Option<Bits128> {
        let pair = pair(self.scoring.rank(rank, self.rank), id, self.id);
        (key(&pair) < key(&self.limit)).then_some(pair)
    }

    /// True if left points with scores between two ranks and ids from `least_id` on may make a pair that is wanted. Every function of
    /// scores is monotone in one of them.
    fn may_have(&self, ranks: [u64; 2], least_id: u32) -> bool {
        ranks.into_iter().any(|rank| self.pair(rank, least_id).is_some())
    }
}

/// A search for the best pairs of a right point.
struct Probe<'a> {
    best: &'a Best,
    /// The ids of left positions.
    ids: &'a [u32],
    /// The ranks of their scores.
    ranks: &'a [u64],
    node_ranks: &'a [[u64; 2]],
    of: Right<'a>,
    /// Pairs that are to be added.
    pairs: &'a mut Vec<Bits128>,
}

impl<C: Coord, const D: usize> Take<C, D> for Probe<'_> {
    #[inline(always)]
    fn take(&mut self, left: usize) {
        if let Some(pair) = self.of.pair(self.ranks[left], self.ids[left]) {
            self.pairs.push(pair);
            if self.pairs.len() == ADDED {
                self.best.add(self.pairs);
                self.of.limit = self.best.limit();
            }
        }
    }

    fn take_crowd(
        &mut self,
        sets: &Sets<'_, C, D>,
        crowd: Subtree<'_, C, D>,
        _: Range<usize>,
        point: &[C; D],
    ) -> Result<()> {
        let _ = crowd.search(point, sets.near, self);
        Ok(())
    }
}

impl<C: Coord, const D: usize> Search<C, D> for Probe<'_> {
    fn wants(&self, node: &Node<C, D>, number: usize) -> Wanted {
        match self.of.may_have(self.node_ranks[number], self.ids[node.lefts[0] as usize]) {
            // Not all: the limit may come down meanwhile.
            true => Wanted::Some,
            false => Wanted::None,
        }
    }

    fn take_all(&mut self, items: &[Item<C, D>]) -> ControlFlow<()> {
        items.iter().try_for_each(|item| Search::<C, D>::take(self, item))
    }

    fn take(&mut self, item: &Item<C, D>) -> ControlFlow<()> {
        Take::<C, D>::take(self, item.left as usize);
        ControlFlow::Continue(())
    }
}
