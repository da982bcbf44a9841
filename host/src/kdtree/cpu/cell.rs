//! The cell of a node: the box of all points, cut by the planes of its ancestors.

use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;

/// Points that one task looks at.
const CHUNK: usize = 1 << 16;

/// Two corners.
#[derive(Clone, Copy)]
pub(super) struct Cell<C, const D: usize> {
    low: [C; D],
    high: [C; D],
}

impl<C: Coord, const D: usize> Cell<C, D> {
    /// The box of points.
    pub(super) fn of(points: &[[C; D]]) -> Self {
        let nothing = Self { low: [C::INFINITY; D], high: [C::ZERO - C::INFINITY; D] };
        let of_chunk = |chunk: &[[C; D]]| chunk.iter().fold(nothing, |cell, point| cell.with(point, point));
        if points.len() <= CHUNK {
            return of_chunk(points);
        }
        points.par_chunks(CHUNK).map(of_chunk).reduce(|| nothing, |a, b| a.with(&b.low, &b.high))
    }

    /// What has two more corners in it.
    fn with(self, low: &[C; D], high: &[C; D]) -> Self {
        Self {
            low: std::array::from_fn(|axis| self.low[axis].min(low[axis])),
            high: std::array::from_fn(|axis| self.high[axis].max(high[axis])),
        }
    }

    /// The widest axis, of equally wide ones the lower.
    pub(super) fn widest(&self) -> usize {
        let width = |axis: usize| self.high[axis] - self.low[axis];
        (1..D).fold(0, |widest, axis| if width(axis) > width(widest) { axis } else { widest })
    }

    /// The parts on both sides of a plane.
    pub(super) fn cut(self, axis: usize, at: C) -> [Self; 2] {
        let (mut left, mut right) = (self, self);
        (left.high[axis], right.low[axis]) = (at, at);
        [left, right]
    }
}
