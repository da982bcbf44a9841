//! Any number of nearest points, as a heap in the result row.

use super::{KeepBest, ResultRows, Start, Traversal};
use crate::query::traversal::Visitor;
use crate::thread::best_k::BestK;
use crate::thread::coord::{Coord, Float};

/// The best points of a lane.
pub(super) struct Heap<'a, C> {
    best: BestK<'a, C>,
    k: u32,
}

impl<'a, C: Float> Heap<'a, C> {
    #[inline(always)]
    pub(super) unsafe fn new(Start { bound, row, continues }: Start<'a, C>) -> Self {
        let mut best = BestK::new(row.dist2, row.ids, bound);
        if continues {
            best.resume();
        }
        Self { best, k: row.k() as u32 }
    }
}

impl<C: Float> Visitor<C> for Heap<'_, C> {
    const ONE_QUERY_PER_WARP: bool = false;
    const NEAREST_FIRST: bool = true;

    #[inline(always)]
    fn min_start_points(&self) -> u32 {
        self.k
    }

    #[inline(always)]
    fn bound(&self) -> C {
        self.best.bound()
    }

    #[inline(always)]
    unsafe fn worst_id(&self) -> u32 {
        self.best.worst_id()
    }

    #[inline(always)]
    unsafe fn offer(&mut self, is_accepted: bool, distance: C, id: u32) {
        if is_accepted {
            self.best.offer(distance, id);
        }
    }
}

impl<C: Coord, const D: usize> KeepBest<C, D> for Heap<'_, C::Distance> {
    const ONE_QUERY_PER_WARP: bool = false;

    #[inline(always)]
    unsafe fn search(&mut self, traversal: Traversal<'_, C, D>) {
        traversal.run(self);
    }

    #[inline(always)]
    unsafe fn write(self, _: ResultRows<'_, C::Distance>) {
        self.best.finish();
    }
}
