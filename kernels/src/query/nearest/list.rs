//! Up to 32 nearest points in the registers of a lane. Inserting one point would cost a step per entry, so lanes collect points in shared
//! memory, and all lanes merge theirs together by a sorting network.

use super::{KeepBest, ResultRows, THREADS, worst};
use crate::query::traversal::{GROUP, TraversalSmem, Visitor};
use crate::thread::coord::Float;
use crate::thread::network::keep_first;
use crate::thread::ranked::Ranked;
use crate::thread::words::Words;
use cuda_std::prelude::*;

/// Shared memory: the points that the threads have collected, and the memory of their traversals.
#[repr(C, align(16))]
pub struct ListSmem<C: Float, const B: usize> {
    collected: [[C::Ranked; THREADS]; B],
    pub(super) traversal: TraversalSmem<C>,
}

/// The `K` best points of a lane; the first `K - k` entries are fillers.
pub(super) struct List<'a, C: Float, const K: usize, const B: usize> {
    best: [C::Ranked; K],
    /// The greatest distance of the best.
    bound: C,
    /// The points not yet merged, of each thread.
    collected: SharedSlice<'a, C::Ranked>,
    num_collected: u32,
}

impl<C: Float, const K: usize, const B: usize> List<'_, C, K, B> {
    #[inline(always)]
    pub(super) unsafe fn new(bound: C, k: usize, smem: *mut ListSmem<C, B>) -> Self {
        let mut best = [worst(bound); K];
        for i in 0..K {
            if i < K - k {
                best[i] = C::Ranked::ZEROS;
            }
        }
        Self { best, bound, collected: shared_field!(smem, collected), num_collected: 0 }
    }

    /// The index of the thread's collected point `i`.
    #[inline(always)]
    fn index(i: u32) -> usize {
        i as usize * THREADS + thread::thread_idx_x() as usize
    }

    /// Merges the collected points into the best ones.
    #[inline(always)]
    unsafe fn merge_collected(&mut self) {
        let mut items = [C::Ranked::LAST; B];
        for i in 0..B {
            if (i as u32) < self.num_collected {
                items[i] = self.collected.load(Self::index(i as u32));
            }
        }
        self.num_collected = 0;
        keep_first(&mut self.best, items);
        self.bound = C::from_key(self.best[K - 1].rank());
    }
}

impl<C: Float, const K: usize, const B: usize> Visitor<C> for List<'_, C, K, B> {
    const ONE_QUERY_PER_WARP: bool = false;
    const NEAREST_FIRST: bool = true;

    #[inline(always)]
    fn min_start_points(&self) -> u32 {
        K as u32
    }

    #[inline(always)]
    fn bound(&self) -> C {
        self.bound
    }

    #[inline(always)]
    unsafe fn worst_id(&self) -> u32 {
        self.best[K - 1].id()
    }

    #[inline(always)]
    unsafe fn offer(&mut self, is_accepted: bool, distance: C, id: u32) {
        if is_accepted {
            self.collected.store(Self::index(self.num_collected), C::Ranked::new(distance.key(), id));
            self.num_collected += 1;
        }
    }

    #[inline(always)]
    unsafe fn flush_if_full(&mut self) {
        if warp::warp_vote_any(warp::FULL_MASK, self.num_collected > (B - GROUP) as u32) {
            self.merge_collected();
        }
    }
}

impl<C: Float, const K: usize, const B: usize> KeepBest<C> for List<'_, C, K, B> {
    #[inline(always)]
    unsafe fn finish(&mut self) {
        self.merge_collected();
    }

    #[inline(always)]
    unsafe fn write(self, row: ResultRows<'_, C>) {
        for i in 0..K {
            let entry = (i + row.k()).wrapping_sub(K);
            if entry < row.k() {
                row.set(entry, self.best[i]);
            }
        }
    }
}
