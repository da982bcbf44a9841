//! The candidates for the best pairs, and the running threshold.
//!
//! Pairs are ordered by score, the greatest first, then by left id, then by right id, so that no two pairs are equal. Kernels append
//! pairs that may be among the best k. Between launches the best k pairs are kept, and the last of them is the threshold.

use crate::block::counting_rank::{CountingRankSmem, THREADS, rank_by_counting};
use crate::policy::{PER_ITEM_THREADS, TOP_K};
use crate::thread::items::own_item;
use crate::thread::ranked::Ranked;
use crate::thread::words::Bits128;
use cuda_std::atomic::{Ordering, Scope};
use cuda_std::prelude::*;

/// Words of the state.
pub mod state {
    /// Number of appended pairs; it exceeds the capacity if pairs were lost.
    pub const COUNT: usize = 0;
    /// 1 if pairs were lost in this launch or before.
    pub const OVERFLOWED: usize = 1;
    /// The threshold, two words: the worst pair that may still be among the best.
    pub const THRESHOLD: usize = 2;
    /// The greatest rank of the score of a pair with an excluded point; 0 if no point was excluded.
    pub const EXCLUDED: usize = 4;
    /// Number of tasks that were deferred to the next launch.
    pub const TASKS: usize = 5;
    /// Number of words.
    pub const LEN: usize = 6;
}

/// Returns a pair with the rank of its score. Lesser values are better pairs.
#[inline(always)]
pub fn pair(rank: u64, left: u32, right: u32) -> Bits128 {
    Bits128(!rank, u64::from(left) << 32 | u64::from(right))
}

/// The candidate pairs of one launch.
#[derive(Clone, Copy)]
pub(super) struct CandidateList<'a> {
    pairs: SliceMut<'a, Bits128>,
    state: SliceMut<'a, u64>,
    threshold: Bits128,
}

impl<'a> CandidateList<'a> {
    /// Takes the threshold from before the launch.
    #[inline(always)]
    pub(super) unsafe fn new(pairs: SliceMut<'a, Bits128>, state: SliceMut<'a, u64>) -> Self {
        let threshold = Bits128(state.load(state::THRESHOLD), state.load(state::THRESHOLD + 1));
        Self { pairs, state, threshold }
    }

    /// Returns the least rank of a score that may still be among the best.
    #[inline(always)]
    pub(super) fn least_rank(&self) -> u64 {
        !self.threshold.0
    }

    /// True until pairs are lost.
    #[inline(always)]
    pub(super) unsafe fn has_capacity(&self) -> bool {
        let count = self.state.atomic_load(state::COUNT, Ordering::Relaxed, Scope::Device);
        count <= self.pairs.len() as u64
    }

    /// Appends a pair unless it is after the threshold.
    #[inline(always)]
    pub(super) unsafe fn offer(&self, pair: Bits128) {
        if !self.threshold.is_before(pair) {
            let index = self.state.atomic_add(state::COUNT, 1, Ordering::Relaxed, Scope::Device);
            if index < self.pairs.len() as u64 {
                self.pairs.store(index as usize, pair);
            }
        }
    }
}

/// Offers pairs in memory, a thread per pair.
#[kernel(family = "join", block = PER_ITEM_THREADS)]
pub unsafe fn join_offer(offered: Slice<Bits128>, pairs: SliceMut<Bits128>, state: SliceMut<u64>) {
    let Some(i) = own_item(offered.len()) else { return };
    let item = offered.load(i);
    if item != Bits128::LAST {
        CandidateList::new(pairs, state).offer(item);
    }
}

/// Writes the best `k` pairs in order to `best`, and their state; [`counting_rank`](crate::block::counting_rank) determines the pairs of a block.
#[kernel(family = "join", block = THREADS, min_blocks = TOP_K.min_blocks, shared = CountingRankSmem<Bits128>, hot)]
pub unsafe fn join_keep_best(
    pairs: Slice<Bits128>,
    state: Slice<u64>,
    k: u64,
    best: SliceMut<Bits128>,
    best_state: SliceMut<u64>,
) {
    let count = settle(pairs.len(), state, k, best_state);
    // Fill the rest, because the host reads `k` pairs.
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
            set_threshold(best_state, item);
        }
    });
}

/// Writes the number of appended pairs, limited to the capacity `room`; one thread.
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
        set_threshold(best_state, sorted.load(k as usize - 1));
    }
}

/// Writes the state of the best `k` pairs, and the old threshold if there are fewer than `k`. Returns the number of pairs.
#[inline(always)]
unsafe fn settle(room: usize, state: Slice<'_, u64>, k: u64, best_state: SliceMut<'_, u64>) -> usize {
    let all = state.load(state::COUNT);
    let count = if all < room as u64 { all } else { room as u64 };
    if thread::index_1d() == 0 {
        best_state.store(state::COUNT, if count < k { count } else { k });
        best_state.store(state::OVERFLOWED, state.load(state::OVERFLOWED) | u64::from(all > count));
        best_state.store(state::EXCLUDED, state.load(state::EXCLUDED));
        best_state.store(state::TASKS, 0);
        if count < k {
            set_threshold(
                best_state,
                Bits128(state.load(state::THRESHOLD), state.load(state::THRESHOLD + 1)),
            );
        }
    }
    count as usize
}

#[inline(always)]
unsafe fn set_threshold(state: SliceMut<'_, u64>, threshold: Bits128) {
    state.store(state::THRESHOLD, threshold.0);
    state.store(state::THRESHOLD + 1, threshold.1);
}
