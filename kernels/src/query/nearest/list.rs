//! Up to 32 nearest points in the registers of a lane. Inserting one point would cost a step per entry, so points are collected in
//! shared memory, and each lane merges those of its query by a sorting network, all lanes at the same time.

use super::{KeepBest, ResultRows, Start, THREADS, Traversal, WARPS};
use crate::query::traversal::GROUP;
use crate::query::traversal::together::{Bounds, KeepTogether, TogetherSmem};
use crate::thread::coord::{Coord, Float};
use crate::thread::network::keep_first;
use crate::thread::ranked::Ranked;
use crate::thread::words::Words;
use cuda_std::prelude::*;

/// Shared memory: the points collected for each thread's query and their number, and the memory of the search.
#[repr(C, align(16))]
pub struct ListSmem<C: Float, const D: usize, const B: usize> {
    collected: [[C::Ranked; THREADS]; B],
    num_collected: [u32; THREADS],
    search: TogetherSmem<C, D, WARPS>,
}

/// The `K` best points of a lane's query; the first `K - k` entries are fillers.
pub(super) struct List<C: Float, const D: usize, const K: usize, const B: usize> {
    best: [C::Ranked; K],
    /// The bound of the query whose run is visited: a distance and an id.
    bound: (C, u32),
    smem: *mut ListSmem<C, D, B>,
}

impl<C: Float, const D: usize, const K: usize, const B: usize> List<C, D, K, B> {
    #[inline(always)]
    pub(super) unsafe fn new(start: Start<'_, C>, smem: *mut ListSmem<C, D, B>) -> Self {
        let (mut best, num_fillers) = ([C::Ranked::ZEROS; K], K - start.row.k());
        for i in 0..K {
            if i >= num_fillers {
                best[i] = start.best(i - num_fillers);
            }
        }
        let last = best[K - 1];
        let list = Self { best, bound: (C::from_key(last.rank()), last.id()), smem };
        list.num_collected().store(Self::thread_of(warp::lane_id()), 0);
        list
    }

    #[inline(always)]
    fn num_collected(&self) -> SharedSlice<'_, u32> {
        shared_field!(self.smem, num_collected)
    }

    /// The thread of a lane of the caller's warp.
    #[inline(always)]
    fn thread_of(lane: u32) -> usize {
        (thread::thread_idx_x() / 32 * 32 + lane) as usize
    }
}

impl<C: Float, const D: usize, const K: usize, const B: usize> KeepTogether<C> for List<C, D, K, B> {
    #[inline(always)]
    fn min_start_points(&self) -> u32 {
        K as u32
    }

    #[inline(always)]
    unsafe fn begin(&mut self, bounds: Bounds<'_, C>, of: u32) {
        self.bound = bounds.get(of);
    }

    #[inline(always)]
    fn bound(&self) -> C {
        self.bound.0
    }

    #[inline(always)]
    unsafe fn offer(&mut self, bounds: Bounds<'_, C>, of: u32, mut distances: [C; GROUP], ids: [u32; GROUP]) {
        let of_thread = Self::thread_of(of);
        loop {
            // Points for which there is no room are offered again.
            let mut is_full = false;
            for i in 0..GROUP {
                let is_tie = (distances[i] == self.bound.0) & (ids[i] < self.bound.1);
                if (distances[i] < self.bound.0) | is_tie {
                    let (collected, num) = (shared_field!(self.smem, collected), self.num_collected());
                    let at = num.atomic_add(of_thread, 1, Ordering::Relaxed, Scope::Block) as usize;
                    if at < B {
                        collected.store(at * THREADS + of_thread, C::Ranked::new(distances[i].key(), ids[i]));
                        distances[i] = C::NAN;
                    } else {
                        is_full = true;
                    }
                }
            }
            if !warp::warp_vote_any(warp::FULL_MASK, is_full) {
                return;
            }
            self.settle(bounds);
            self.bound = bounds.get(of);
        }
    }

    /// Merges the points collected for the lane's query into its best ones.
    #[inline(always)]
    unsafe fn settle(&mut self, bounds: Bounds<'_, C>) {
        warp::sync_warp(warp::FULL_MASK);
        let own = Self::thread_of(warp::lane_id());
        let (collected, num) = (shared_field!(self.smem, collected), self.num_collected().load(own) as usize);
        let mut items = [C::Ranked::LAST; B];
        for i in 0..B {
            if i < num {
                items[i] = collected.load(i * THREADS + own);
            }
        }
        keep_first(&mut self.best, items);
        let last = self.best[K - 1];
        bounds.set(C::from_key(last.rank()), last.id());
        self.num_collected().store(own, 0);
        warp::sync_warp(warp::FULL_MASK);
    }
}

impl<C: Coord, const D: usize, const K: usize, const B: usize> KeepBest<C, D> for List<C::Distance, D, K, B> {
    const ONE_QUERY_PER_WARP: bool = false;

    #[inline(always)]
    unsafe fn search(&mut self, traversal: Traversal<'_, C, D>) {
        let smem = &raw mut (*self.smem).search;
        traversal.search_together(self.bound, self, smem);
    }

    #[inline(always)]
    unsafe fn write(self, row: ResultRows<'_, C::Distance>) {
        for i in 0..K {
            let entry = (i + row.k()).wrapping_sub(K);
            if entry < row.k() {
                row.set(entry, self.best[i]);
            }
        }
    }
}
