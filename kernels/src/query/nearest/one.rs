//! The nearest point.

use super::{KeepBest, ResultRows, Start, Traversal, WARPS};
use crate::query::traversal::GROUP;
use crate::query::traversal::together::{Bounds, KeepTogether, TogetherSmem};
use crate::thread::coord::{Coord, Float};
use crate::thread::ranked::Ranked;
use cuda_std::prelude::*;

/// The best point of a run; in the end, the best point of the lane's query.
pub(super) struct One<C: Float, const D: usize> {
    bound: C,
    /// The largest id if there is none yet.
    id: u32,
    smem: *mut TogetherSmem<C, D, WARPS>,
}

impl<C: Float, const D: usize> One<C, D> {
    #[inline(always)]
    pub(super) unsafe fn new(start: Start<'_, C>, smem: *mut TogetherSmem<C, D, WARPS>) -> Self {
        let best = start.best(0);
        Self { bound: C::from_key(best.rank()), id: best.id(), smem }
    }
}

impl<C: Float, const D: usize> KeepTogether<C> for One<C, D> {
    #[inline(always)]
    unsafe fn begin(&mut self, bounds: Bounds<'_, C>, of: u32) {
        (self.bound, self.id) = bounds.get(of);
    }

    #[inline(always)]
    fn bound(&self) -> C {
        self.bound
    }

    #[inline(always)]
    unsafe fn offer(&mut self, _: Bounds<'_, C>, _: u32, distances: [C; GROUP], ids: [u32; GROUP]) {
        for i in 0..GROUP {
            let is_tie = (distances[i] == self.bound) & (ids[i] < self.id);
            if (distances[i] < self.bound) | is_tie {
                (self.bound, self.id) = (distances[i], ids[i]);
            }
        }
    }

    #[inline(always)]
    unsafe fn end(&mut self, bounds: Bounds<'_, C>, of: u32) {
        bounds.lower(of, self.bound, self.id);
    }
}

impl<C: Coord, const D: usize> KeepBest<C, D> for One<C::Distance, D> {
    const ONE_QUERY_PER_WARP: bool = false;

    #[inline(always)]
    unsafe fn search(&mut self, traversal: Traversal<'_, C, D>) {
        let bounds = traversal.search_together((self.bound, self.id), self, self.smem);
        (self.bound, self.id) = bounds.get(warp::lane_id());
    }

    #[inline(always)]
    unsafe fn write(self, row: ResultRows<'_, C::Distance>) {
        row.set(0, Ranked::new(self.bound.key(), self.id));
    }
}
