//! Up to `32 * T` of one query, kept by the lanes of a warp together (after Johnson, Douze, Jégou 2017, *Billion-scale
//! similarity search with GPUs*, section 4.2).

use super::{Best, ResultRows, worst};
use crate::query::walk::Visit;
use crate::thread::coord::Coord;
use crate::thread::network;
use crate::thread::ranked::Ranked;
use crate::thread::words::Words;
use crate::warp::bitonic::{merge_bitonic, sort_reversed};
use crate::warp::shuffle::shuffle_idx;
use cuda_std::prelude::*;

/// The best of a warp in order: number `32 * t + lane` is item `t` of the lane. The first may be there to fill the room.
pub(super) struct Queue<C: Coord, const T: usize> {
    best: [C::Ranked; T],
    /// The greatest distance of the best.
    bound: C,
}

impl<C: Coord, const T: usize> Queue<C, T> {
    #[inline(always)]
    pub(super) fn new(bound: C, k: usize) -> Self {
        let mut best = [worst(bound); T];
        let mut t = 0;
        while t < T {
            if 32 * t + (warp::lane_id() as usize) < 32 * T - k {
                best[t] = C::Ranked::ZEROS;
            }
            t += 1;
        }
        Self { best, bound }
    }

    /// Sorts what rises and then falls.
    #[inline(always)]
    unsafe fn merge(&mut self) {
        network::merge_bitonic(&mut self.best);
        let mut t = 0;
        while t < T {
            self.best[t] = merge_bitonic(self.best[t]);
            t += 1;
        }
    }
}

impl<C: Coord, const T: usize> Visit<C> for Queue<C, T> {
    const ONE_QUERY: bool = true;
    const NEAREST_FIRST: bool = true;

    #[inline(always)]
    fn first_points(&self) -> u32 {
        32 * T as u32
    }

    #[inline(always)]
    fn bound(&self) -> C {
        self.bound
    }

    #[inline(always)]
    unsafe fn last_id(&self) -> u32 {
        shuffle_idx(self.best[T - 1], 31).id()
    }

    #[inline(always)]
    unsafe fn offer(&mut self, is_taken: bool, distance: C, id: u32) {
        let item = if is_taken { C::Ranked::new(distance.key(), id) } else { C::Ranked::LAST };
        let backwards = sort_reversed(item);
        let last = self.best[T - 1];
        self.best[T - 1] = if backwards.is_before(last) { backwards } else { last };
        self.merge();
        self.bound = C::from_key(shuffle_idx(self.best[T - 1], 31).rank());
    }
}

impl<C: Coord, const T: usize> Best<C> for Queue<C, T> {
    #[inline(always)]
    unsafe fn write(self, row: ResultRows<'_, C>) {
        let mut t = 0;
        while t < T {
            let entry = (32 * t + warp::lane_id() as usize + row.k()).wrapping_sub(32 * T);
            if entry < row.k() {
                row.set(entry, self.best[t]);
            }
            t += 1;
        }
    }
}
