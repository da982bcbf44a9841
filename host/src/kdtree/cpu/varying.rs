//! The axes on which the points are not all equal, which levels split on in turn.

use kauri_kernels::query::axes::AxisCycle;
use kauri_kernels::thread::coord::Coord;

use crate::parallel::Ranges;

/// Number of points that one thread compares before all threads do: nearly always, two of them differ on every axis.
const FIRST_POINTS: usize = 4096;

/// Returns the axes on which the points are not all equal; all axes if the points are equal on every axis.
pub(crate) fn varying_axes<C: Coord, const D: usize>(points: &[[C; D]]) -> AxisCycle {
    let (first, rest) = points.split_at(points.len().min(FIRST_POINTS));
    let varies = |&axis: &usize| {
        let differs = |point: &[C; D]| point[axis] != points[0][axis];
        let rest_differs =
            || Ranges::new(rest.len(), FIRST_POINTS).any(&|range| rest[range].iter().any(differs));
        first.iter().any(differs) || rest_differs()
    };
    let mask = (0..D).filter(varies).fold(0, |mask, axis| mask | 1 << axis);
    AxisCycle::of_varying(mask, D as u32)
}
