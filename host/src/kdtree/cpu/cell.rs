//! The cell of a node: the bounding box of all points, cut by the split planes of its ancestors.

use kauri_kernels::thread::coord::Coord;

use crate::primitives::cpu::bounds::bounds;

/// A box, as its low and high corner.
#[derive(Clone, Copy)]
pub(crate) struct Cell<C, const D: usize> {
    low: [C; D],
    high: [C; D],
}

impl<C: Coord, const D: usize> Cell<C, D> {
    /// Returns the bounding box of points.
    pub(crate) fn of(points: &[[C; D]]) -> Self {
        let [low, high] = bounds(points);
        Self { low, high }
    }

    /// Returns the widest axis; a tie goes to the lower axis.
    pub(crate) fn widest(&self) -> usize {
        let width = |axis: usize| self.high[axis] - self.low[axis];
        (1..D).fold(0, |widest, axis| if width(axis) > width(widest) { axis } else { widest })
    }

    /// Returns the two parts of the cell beside a split plane.
    pub(crate) fn cut(self, axis: usize, at: C) -> [Self; 2] {
        let (mut left, mut right) = (self, self);
        (left.high[axis], right.low[axis]) = (at, at);
        [left, right]
    }
}
