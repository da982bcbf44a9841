//! The cell of a node: the box of all points, cut by the planes of its ancestors.

use kauri_kernels::thread::coord::Coord;

use crate::primitives::cpu::bounds::bounds;

/// Two corners.
#[derive(Clone, Copy)]
pub(crate) struct Cell<C, const D: usize> {
    low: [C; D],
    high: [C; D],
}

impl<C: Coord, const D: usize> Cell<C, D> {
    /// The box of points.
    pub(crate) fn of(points: &[[C; D]]) -> Self {
        let [low, high] = bounds(points);
        Self { low, high }
    }

    /// The widest axis, of equally wide ones the lower.
    pub(crate) fn widest(&self) -> usize {
        let width = |axis: usize| self.high[axis] - self.low[axis];
        (1..D).fold(0, |widest, axis| if width(axis) > width(widest) { axis } else { widest })
    }

    /// The parts on both sides of a plane.
    pub(crate) fn cut(self, axis: usize, at: C) -> [Self; 2] {
        let (mut left, mut right) = (self, self);
        (left.high[axis], right.low[axis]) = (at, at);
        [left, right]
    }
}
