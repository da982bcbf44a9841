//! The nearest point.

use super::{KeepBest, ResultRows, worst};
use crate::query::traversal::Visitor;
use crate::thread::coord::Float;
use crate::thread::ranked::Ranked;

/// The best point of a lane.
pub(super) struct One<C: Float> {
    best: C::Ranked,
    bound: C,
}

impl<C: Float> One<C> {
    #[inline(always)]
    pub(super) fn new(bound: C) -> Self {
        Self { best: worst(bound), bound }
    }
}

impl<C: Float> Visitor<C> for One<C> {
    const ONE_QUERY_PER_WARP: bool = false;
    const NEAREST_FIRST: bool = true;

    #[inline(always)]
    fn bound(&self) -> C {
        self.bound
    }

    #[inline(always)]
    unsafe fn worst_id(&self) -> u32 {
        self.best.id()
    }

    #[inline(always)]
    unsafe fn offer(&mut self, is_accepted: bool, distance: C, id: u32) {
        let item = C::Ranked::new(distance.key(), id);
        if is_accepted && item.is_before(self.best) {
            (self.best, self.bound) = (item, distance);
        }
    }
}

impl<C: Float> KeepBest<C> for One<C> {
    #[inline(always)]
    unsafe fn write(self, row: ResultRows<'_, C>) {
        row.set(0, self.best);
    }
}
