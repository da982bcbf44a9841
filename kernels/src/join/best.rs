//! The best pairs so far, and what a pair has to be better than.
//!
//! Pairs are ordered by score, the greatest first, then by the left id, then by the right one, so that no two are equal. Kernels
//! append those that may be among the best k; between launches the k best of them are kept, and the last of these is the limit.

use crate::block::counting_rank::{CountingRankSmem, THREADS, rank_by_counting};
use crate::policy::{PER_ITEM_THREADS, TOP_K};
use crate::thread::ranked::Ranked;
use crate::thread::words::Bits128;
use cuda_std::atomic::{Ordering, Scope};
use cuda_std::prelude::*;

/// Words of the state.
pub mod state {
    /// How many pairs there are, more than there is room for if some were lost.
    pub const COUNT: usize = 0;
    /// 1 if pairs were lost, now or before.
    pub const LOST: usize = 1;
    /// The limit, two words: the worst pair that may still be among the best.
    pub const LIMIT: usize = 2;
    /// The rank of the best score that a pair may have of which a point was left out; 0 if there is none.
    pub const LEFT_OUT: usize = 4;
    /// How many tasks were left to the launch after this one.
    pub const TASKS: usize = 5;
    /// Number of words.
    pub const LEN: usize = 6;
}

/// A pair with its score's rank; the lesser is the better.
#[inline(always)]
pub fn pair(rank: u64, left: u32, right: u32) -> Bits128 {
    Bits128(!rank, u64::from(left) << 32 | u64::from(right))
}

/// The best pairs of one launch.
#[derive(Clone, Copy)]
pub(super) struct Best<'a> {
    pairs: SliceMut<'a, Bits128>,
    state: SliceMut<'a, u64>,
    limit: Bits128,
}

impl<'a> Best<'a> {
    /// With the limit as it is before the launch.
    #[inline(always)]
    pub(super) unsafe fn new(pairs: SliceMut<'a, Bits128>, state: SliceMut<'a, u64>) -> Self {
        let limit = Bits128(state.load(state::LIMIT), state.load(state::LIMIT + 1));
        Self { pairs, state, limit }
    }

    /// The least rank of a score that may still be among the best.
    #[inline(always)]
    pub(super) fn least_rank(&self) -> u64 {
        !self.limit.0
    }

    /// True as long as there is room.
    #[inline(always)]
    pub(super) unsafe fn has_room(&self) -> bool {
        let count = self.state.atomic_load(state::COUNT, Ordering::Relaxed, Scope::Device);
        count <= self.pairs.len() as u64
    }

    /// Keeps a pair that may be among the best.
    #[inline(always)]
    pub(super) unsafe fn offer(&self, pair: Bits128) {
        if !self.limit.is_before(pair) {
            let place = self.state.atomic_add(state::COUNT, 1, Ordering::Relaxed, Scope::Device);
            if place < self.pairs.len() as u64 {
                self.pairs.store(place as usize, pair);
            }
        }
    }
}

/// Offers pairs in memory, a thread each.
#[kernel(family = "join", block = PER_ITEM_THREADS)]
pub unsafe fn join_offer(offered: Slice<Bits128>, pairs: SliceMut<Bits128>, state: SliceMut<u64>) {
    let i = thread::index_1d_u64() as usize;
    if i < offered.len() {
        let item = offered.load(i);
        if item != Bits128::LAST {
            Best::new(pairs, state).offer(item);
        }
    }
}

/// Writes the best `k` pairs in order to `best`, and the state that goes with them; a block as many pairs as
/// [`counting_rank`](crate::block::counting_rank) says.
#[kernel(family = "join", block = THREADS, min_blocks = TOP_K.min_blocks, shared = CountingRankSmem<Bits128>, hot)]
pub unsafe fn join_keep_best(
    pairs: Slice<Bits128>,
    state: Slice<u64>,
    k: u64,
    best: SliceMut<Bits128>,
    best_state: SliceMut<u64>,
) {
    let count = settle(pairs.len(), state, k, best_state);
    // What the pairs do not fill, for the host to read.
    let mut i = count + thread::index_1d_u64() as usize;
    while (i as u64) < k {
        best.store(i, Bits128::LAST);
        i += thread::grid_dim_x() as usize * THREADS;
    }
    rank_by_counting(pairs.part(0, count), shared_mem(), |place, item| {
        if (place as u64) < k {
            best.store(place, item);
        }
        if place as u64 + 1 == k {
            set_limit(best_state, item);
        }
    });
}

/// Writes how many pairs there are, of those that had room; one thread.
#[kernel(family = "join", block = 32)]
pub unsafe fn join_clip(state: Slice<u64>, room: u64, count: SliceMut<u64>) {
    if thread::index_1d() == 0 {
        let all = state.load(state::COUNT);
        count.store(0, if all < room { all } else { room });
    }
}

/// Writes the state of the best `k` of sorted pairs; one thread.
#[kernel(family = "join", block = 32)]
pub unsafe fn join_settle(sorted: Slice<Bits128>, state: Slice<u64>, k: u64, best_state: SliceMut<u64>) {
    let count = settle(sorted.len(), state, k, best_state);
    if thread::index_1d() == 0 && count as u64 >= k {
        set_limit(best_state, sorted.load(k as usize - 1));
    }
}

/// Writes the state of the best `k` but for their limit, unless that stays as it was. Returns the number of pairs.
#[inline(always)]
unsafe fn settle(room: usize, state: Slice<'_, u64>, k: u64, best_state: SliceMut<'_, u64>) -> usize {
    let all = state.load(state::COUNT);
    let count = if all < room as u64 { all } else { room as u64 };
    if thread::index_1d() == 0 {
        best_state.store(state::COUNT, if count < k { count } else { k });
        best_state.store(state::LOST, state.load(state::LOST) | u64::from(all > count));
        best_state.store(state::LEFT_OUT, state.load(state::LEFT_OUT));
        best_state.store(state::TASKS, 0);
        if count < k {
            set_limit(best_state, Bits128(state.load(state::LIMIT), state.load(state::LIMIT + 1)));
        }
    }
    count as usize
}

#[inline(always)]
unsafe fn set_limit(state: SliceMut<'_, u64>, limit: Bits128) {
    state.store(state::LIMIT, limit.0);
    state.store(state::LIMIT + 1, limit.1);
}
