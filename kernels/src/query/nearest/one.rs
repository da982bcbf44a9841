//! The nearest one.

use super::{Best, ResultRows, worst};
use crate::query::walk::Visit;
use crate::thread::coord::Coord;
use crate::thread::ranked::Ranked;

/// The best of a lane.
pub(super) struct One<C: Coord> {
    best: C::Ranked,
    bound: C,
}

impl<C: Coord> One<C> {
    #[inline(always)]
    pub(super) fn new(bound: C) -> Self {
        Self { best: worst(bound), bound }
    }
}

impl<C: Coord> Visit<C> for One<C> {
    const ONE_QUERY: bool = false;
    const NEAREST_FIRST: bool = true;

    #[inline(always)]
    fn bound(&self) -> C {
        self.bound
    }

    #[inline(always)]
    unsafe fn last_id(&self) -> u32 {
        self.best.id()
    }

    #[inline(always)]
    unsafe fn offer(&mut self, is_taken: bool, distance: C, id: u32) {
        let item = C::Ranked::new(distance.key(), id);
        if is_taken && item.is_before(self.best) {
            (self.best, self.bound) = (item, distance);
        }
    }
}

impl<C: Coord> Best<C> for One<C> {
    #[inline(always)]
    unsafe fn write(self, row: ResultRows<'_, C>) {
        row.set(0, self.best);
    }
}
