//! The grid of two sets.

use super::Near;
use kauri_kernels::join::grid::Grid;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::Norm;

/// A grid over what is near both sets, and whether all points are in it.
pub(super) struct GridOf<const D: usize> {
    pub(super) grid: Grid<D>,
    pub(super) has_all: bool,
}

/// The grid of two sets in boxes of these corners; nothing if no point of one can be near one of the other.
pub(super) fn grid_of<C: Coord, const D: usize>(
    dims: usize,
    left: [[C; D]; 2],
    right: [[C; D]; 2],
    near: &Near<C>,
) -> Option<GridOf<D>> {
    let reach = reach(near);
    let (mut low, mut high, mut has_all) = ([0.0; D], [0.0; D], true);
    for axis in 0..dims {
        let [lows, highs] = [0, 1].map(|corner| [left[corner][axis], right[corner][axis]].map(Coord::to_f64));
        // A little more than the distance, for what is rounded.
        let beyond = reach * (1.0 + 1e-6);
        low[axis] = f64::max(lows[0], lows[1]) - beyond;
        high[axis] = f64::min(highs[0], highs[1]) + beyond;
        // No farther than there are points.
        low[axis] = low[axis].next_down().max(f64::min(lows[0], lows[1]));
        high[axis] = high[axis].next_up().min(f64::max(highs[0], highs[1]));
        if low[axis] > high[axis] {
            return None;
        }
        has_all &= low[axis] <= f64::min(lows[0], lows[1]) && high[axis] >= f64::max(highs[0], highs[1]);
    }
    Some(GridOf { grid: Grid::new(dims, low, high, reach, near.curve), has_all })
}

/// How far apart on an axis points may be that are near each other.
pub(super) fn reach<C: Coord>(near: &Near<C>) -> f64 {
    let bound = near.bound.to_f64();
    match near.norm {
        // Squares below the least normal number, 2^-126 and 2^-1022, are rounded much, or nothing.
        Norm::Euclidean => {
            bound.sqrt().max(if size_of::<C>() == 4 { 2_f64.powi(-63) } else { 2_f64.powi(-511) })
        }
        _ => bound,
    }
}
