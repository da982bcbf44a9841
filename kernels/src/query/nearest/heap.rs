//! Any number, in the result itself.

use super::{Best, ResultRows};
use crate::query::walk::Visit;
use crate::thread::best_k::BestK;
use crate::thread::coord::Coord;

/// The best of a lane.
pub(super) struct Heap<'a, C> {
    best: BestK<'a, C>,
    k: u32,
}

impl<'a, C: Coord> Heap<'a, C> {
    #[inline(always)]
    pub(super) fn new(bound: C, row: ResultRows<'a, C>) -> Self {
        Self { best: BestK::new(row.dist2, row.ids, bound), k: row.k() as u32 }
    }
}

impl<C: Coord> Visit<C> for Heap<'_, C> {
    const ONE_QUERY: bool = false;
    const NEAREST_FIRST: bool = true;

    #[inline(always)]
    fn first_points(&self) -> u32 {
        self.k
    }

    #[inline(always)]
    fn bound(&self) -> C {
        self.best.bound()
    }

    #[inline(always)]
    unsafe fn last_id(&self) -> u32 {
        self.best.worst_id()
    }

    #[inline(always)]
    unsafe fn offer(&mut self, is_taken: bool, distance: C, id: u32) {
        if is_taken {
            self.best.offer(distance, id);
        }
    }
}

impl<C: Coord> Best<C> for Heap<'_, C> {
    #[inline(always)]
    unsafe fn write(self, _: ResultRows<'_, C>) {
        self.best.finish();
    }
}
