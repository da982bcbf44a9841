//! Up to `32 * T` nearest points of one query in the registers of a warp (after Johnson, Douze, Jégou 2017, *Billion-scale
//! similarity search with GPUs*, section 4.2).

use super::{KeepBest, ResultRows, Start, Traversal};
use crate::query::traversal::Visitor;
use crate::thread::coord::{Coord, Float};
use crate::thread::network;
use crate::thread::ranked::Ranked;
use crate::thread::words::Words;
use crate::warp::bitonic::{merge_bitonic, sort_reversed};
use crate::warp::shuffle::shuffle_idx;
use cuda_std::prelude::*;

/// The best points of a warp in order: entry `32 * t + lane` is item `t` of the lane. The first `32 * T - k` entries are fillers.
pub(super) struct Queue<C: Float, const T: usize> {
    best: [C::Ranked; T],
    /// The greatest distance of the best.
    bound: C,
}

impl<C: Float, const T: usize> Queue<C, T> {
    #[inline(always)]
    pub(super) unsafe fn new(start: Start<'_, C>) -> Self {
        let (mut best, num_fillers) = ([C::Ranked::ZEROS; T], 32 * T - start.row.k());
        for t in 0..T {
            let i = 32 * t + warp::lane_id() as usize;
            if i >= num_fillers {
                best[t] = start.best(i - num_fillers);
            }
        }
        Self { best, bound: C::from_key(shuffle_idx(best[T - 1], 31).rank()) }
    }

    /// Sorts a bitonic sequence.
    #[inline(always)]
    unsafe fn merge(&mut self) {
        network::merge_bitonic(&mut self.best);
        for t in 0..T {
            self.best[t] = merge_bitonic(self.best[t]);
        }
    }
}

impl<C: Float, const T: usize> Visitor<C> for Queue<C, T> {
    const ONE_QUERY_PER_WARP: bool = true;
    const NEAREST_FIRST: bool = true;

    #[inline(always)]
    fn min_start_points(&self) -> u32 {
        32 * T as u32
    }

    #[inline(always)]
    fn bound(&self) -> C {
        self.bound
    }

    #[inline(always)]
    unsafe fn worst_id(&self) -> u32 {
        shuffle_idx(self.best[T - 1], 31).id()
    }

    #[inline(always)]
    unsafe fn offer(&mut self, is_accepted: bool, distance: C, id: u32) {
        let item = if is_accepted { C::Ranked::new(distance.key(), id) } else { C::Ranked::LAST };
        let backwards = sort_reversed(item);
        let last = self.best[T - 1];
        self.best[T - 1] = if backwards.is_before(last) { backwards } else { last };
        self.merge();
        self.bound = C::from_key(shuffle_idx(self.best[T - 1], 31).rank());
    }
}

impl<C: Coord, const D: usize, const T: usize> KeepBest<C, D> for Queue<C::Distance, T> {
    const ONE_QUERY_PER_WARP: bool = true;

    #[inline(always)]
    unsafe fn search(&mut self, traversal: Traversal<'_, C, D>) {
        traversal.run(self);
    }

    #[inline(always)]
    unsafe fn write(self, row: ResultRows<'_, C::Distance>) {
        for t in 0..T {
            let entry = (32 * t + warp::lane_id() as usize + row.k()).wrapping_sub(32 * T);
            if entry < row.k() {
                row.set(entry, self.best[t]);
            }
        }
    }
}
