//! Up to 32 of a lane in registers. To sort in one alone would cost a step an entry; so some are collected, in shared memory,
//! and all lanes sort theirs in together, by a network.

use super::{Best, ResultRows, THREADS, worst};
use crate::query::walk::{GROUP, Visit, WalkSmem};
use crate::thread::coord::Coord;
use crate::thread::network::keep_first;
use crate::thread::ranked::Ranked;
use crate::thread::words::Words;
use cuda_std::prelude::*;

/// Shared memory: what the threads have collected, and what their walks need.
#[repr(C, align(16))]
pub struct ListSmem<C: Coord, const B: usize> {
    collected: [[C::Ranked; THREADS]; B],
    pub(super) walk: WalkSmem<C>,
}

/// The `K` best of a lane, of which the first may be there to fill the room.
pub(super) struct List<'a, C: Coord, const K: usize, const B: usize> {
    best: [C::Ranked; K],
    /// The greatest distance of the best.
    bound: C,
    /// Those not yet sorted in, of each thread.
    collected: SharedSlice<'a, C::Ranked>,
    num_collected: u32,
}

impl<C: Coord, const K: usize, const B: usize> List<'_, C, K, B> {
    #[inline(always)]
    pub(super) unsafe fn new(bound: C, k: usize, smem: *mut ListSmem<C, B>) -> Self {
        let mut best = [worst(bound); K];
        let mut i = 0;
        while i < K {
            if i < K - k {
                best[i] = C::Ranked::ZEROS;
            }
            i += 1;
        }
        Self { best, bound, collected: shared_field!(smem, collected), num_collected: 0 }
    }

    /// The thread's place in row `i` of what is collected.
    #[inline(always)]
    fn place(i: u32) -> usize {
        i as usize * THREADS + thread::thread_idx_x() as usize
    }

    /// Sorts in what is collected.
    #[inline(always)]
    unsafe fn sort_in(&mut self) {
        let mut items = [C::Ranked::LAST; B];
        let mut i = 0;
        while i < B {
            if (i as u32) < self.num_collected {
                items[i] = self.collected.load(Self::place(i as u32));
            }
            i += 1;
        }
        self.num_collected = 0;
        keep_first(&mut self.best, items);
        self.bound = C::from_key(self.best[K - 1].rank());
    }
}

impl<C: Coord, const K: usize, const B: usize> Visit<C> for List<'_, C, K, B> {
    const ONE_QUERY: bool = false;
    const NEAREST_FIRST: bool = true;

    #[inline(always)]
    fn first_points(&self) -> u32 {
        K as u32
    }

    #[inline(always)]
    fn bound(&self) -> C {
        self.bound
    }

    #[inline(always)]
    unsafe fn last_id(&self) -> u32 {
        self.best[K - 1].id()
    }

    #[inline(always)]
    unsafe fn offer(&mut self, is_taken: bool, distance: C, id: u32) {
        if is_taken {
            self.collected.store(Self::place(self.num_collected), C::Ranked::new(distance.key(), id));
            self.num_collected += 1;
        }
    }

    #[inline(always)]
    unsafe fn make_room(&mut self) {
        if warp::warp_vote_any(warp::FULL_MASK, self.num_collected > (B - GROUP) as u32) {
            self.sort_in();
        }
    }
}

impl<C: Coord, const K: usize, const B: usize> Best<C> for List<'_, C, K, B> {
    #[inline(always)]
    unsafe fn finish(&mut self) {
        self.sort_in();
    }

    #[inline(always)]
    unsafe fn write(self, row: ResultRows<'_, C>) {
        let mut i = 0;
        while i < K {
            let entry = (i + row.k()).wrapping_sub(K);
            if entry < row.k() {
                row.set(entry, self.best[i]);
            }
            i += 1;
        }
    }
}
