//! Computes the grid of a join from the bounding boxes of its sets.

use super::params::JoinParams;
use kauri_kernels::join::grid::Grid;
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::measure::Norm;

/// A grid over the region where pairs are possible.
pub(super) struct GridOf<const D: usize> {
    pub(super) grid: Grid<D>,
    /// True if all points of both sets are in the grid.
    pub(super) has_all: bool,
}

/// Returns the grid for sets with these bounding boxes, or `None` if no pair is possible.
pub(super) fn grid_of<C: Float, const D: usize>(
    [left, right]: [[[C; D]; 2]; 2],
    params: &JoinParams<C>,
) -> Option<GridOf<D>> {
    let reach = reach(params);
    let (mut low, mut high, mut has_all) = ([0.0; D], [0.0; D], true);
    for axis in 0..D {
        let [lows, highs] = [0, 1].map(|corner| [left[corner][axis], right[corner][axis]].map(Coord::to_f64));
        // A little more than the distance, because of rounding.
        let beyond = reach * (1.0 + 1e-6);
        low[axis] = f64::max(lows[0], lows[1]) - beyond;
        high[axis] = f64::min(highs[0], highs[1]) + beyond;
        // The grid ends where the points end.
        low[axis] = low[axis].next_down().max(f64::min(lows[0], lows[1]));
        high[axis] = high[axis].next_up().min(f64::max(highs[0], highs[1]));
        if low[axis] > high[axis] {
            return None;
        }
        has_all &= low[axis] <= f64::min(lows[0], lows[1]) && high[axis] >= f64::max(highs[0], highs[1]);
    }
    Some(GridOf { grid: Grid::new(D, low, high, reach, params.curve), has_all })
}

/// Returns the largest difference of two near points along an axis.
pub(super) fn reach<C: Float>(params: &JoinParams<C>) -> f64 {
    reach_of(params.norm, params.bound)
}

/// Returns the largest difference along an axis of two coordinates whose distance is at most `bound`.
pub(super) fn reach_of<C: Float>(norm: Norm, bound: C) -> f64 {
    let bound = bound.to_f64();
    match norm {
        // Squares below the least normal number, 2^-126 or 2^-1022, lose precision or underflow to 0.
        Norm::Euclidean => {
            bound.sqrt().max(if size_of::<C>() == 4 { 2_f64.powi(-63) } else { 2_f64.powi(-511) })
        }
        _ => bound,
    }
}
