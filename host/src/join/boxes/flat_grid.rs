//! Chooses the grid of a multi-layered grid, and the axis of a sort, from the bounding boxes of both sets and a sample of their boxes.

use super::grid::grid_of;
use super::params::BoxParams;
use kauri_kernels::join::boxes::flat_grid::{FlatGrid, MAX_CELLS};
use kauri_kernels::join::boxes::levels::LevelGrid;
use kauri_kernels::thread::coord::Float;

/// Growth of the cells of a grid that would have too many.
const COARSER: f64 = 1.25;

/// Returns the most cells of a grid whose cells take `cell_bytes` bytes.
pub(super) fn max_cells<C: Float>(params: &BoxParams<C>, lens: [usize; 2], cell_bytes: u64) -> u64 {
    // 16 cells per box: enough for cells as long as the boxes at densities from 1/16 on.
    let default = 1024 + 16 * (lens[0] as u64 + lens[1] as u64);
    let wanted = if params.options.cell_length.is_some() { MAX_CELLS } else { default.min(MAX_CELLS) };
    wanted.min(params.options.grid_bytes / cell_bytes).max(1)
}

/// Returns a grid of up to `max_cells` cells for two sets, given as [right, left] with their bounding boxes and samples, or `None` if no
/// pair is possible.
pub(super) fn flat_grid_of<C: Float, const D: usize>(
    bounds: [[[C; D]; 2]; 2],
    samples: [&[[[C; D]; 2]]; 2],
    params: &BoxParams<C>,
    max_cells: u64,
) -> Option<FlatGrid<D>> {
    let reach = params.reach();
    let LevelGrid { low, high, .. } =
        grid_of(bounds, samples.into_iter().flatten(), samples.map(<[_]>::len), params)?;
    let mean_side = (0..D).map(|axis| mean_side(samples[1], axis)).sum::<f64>() / D as f64;
    let extent = (0..D).map(|axis| high[axis] - low[axis]).fold(0.0, f64::max);
    let mut length = params.options.cell_length.unwrap_or(mean_side + reach).max(extent / MAX_CELLS as f64);
    loop {
        let grid = FlatGrid::new(LevelGrid::new(D, low, high, length, reach));
        if grid.num_cells().is_some_and(|num| num as u64 <= max_cells) {
            return Some(grid);
        }
        length *= COARSER;
    }
}

/// Returns the axis along which boxes are shortest compared with the extent of both sets.
pub(super) fn least_overlap<C: Float, const D: usize>(
    bounds: [[[C; D]; 2]; 2],
    samples: [&[[[C; D]; 2]]; 2],
    reach: f64,
) -> usize {
    let overlap = |axis: usize| {
        let [low, high] = [0, 1].map(|corner| bounds.map(|of: [[C; D]; 2]| of[corner][axis].to_f64()));
        let extent = f64::max(high[0], high[1]) - f64::min(low[0], low[1]);
        let sides: f64 = samples.iter().map(|sample| mean_side(sample, axis)).sum();
        // An axis without extent does not separate boxes.
        if extent > 0.0 { (sides + reach) / extent } else { f64::INFINITY }
    };
    (0..D).min_by(|&a, &b| overlap(a).total_cmp(&overlap(b))).unwrap_or(0)
}

/// Returns the mean side of boxes along an axis, without inverted boxes.
fn mean_side<C: Float, const D: usize>(boxes: &[[[C; D]; 2]], axis: usize) -> f64 {
    let sides = boxes.iter().map(|[low, high]| high[axis].to_f64() - low[axis].to_f64());
    let (sum, num) =
        sides.filter(|side| *side >= 0.0).fold((0.0, 0), |(sum, num), side| (sum + side, num + 1));
    sum / f64::from(num.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::boxes::BoxMethodOptions;
    use kauri_kernels::join::boxes::geometry::{PairTest, Predicate};
    use kauri_kernels::join::cells::Pairing;
    use kauri_kernels::thread::measure::Norm;

    fn params(options: BoxMethodOptions) -> BoxParams<f64> {
        let test = PairTest { predicate: Predicate::Intersects, norm: Norm::Euclidean, bound: 0.0, dims: 2 };
        BoxParams { test, pairing: Pairing::All, method: super::super::BoxMethod::MultiLayerGrid, options }
    }

    const UNIT: [[f64; 2]; 2] = [[0.0; 2], [1.0; 2]];

    #[test]
    fn cells_are_as_long_as_boxes_unless_there_are_too_many() {
        let sample = [[[0.1, 0.1], [0.2, 0.2]], [[0.5, 0.5], [0.4, 0.9]]];
        let grid = |options, max_cells| {
            flat_grid_of([UNIT; 2], [&sample[..]; 2], &params(options), max_cells).unwrap()
        };
        let default = grid(BoxMethodOptions::default(), MAX_CELLS);
        // The mean of 0.1 on the first axis, without the inverted box, and 0.25 on the second.
        assert_eq!(default.nums, [6, 6]);
        let fine = BoxMethodOptions::default().cell_length(1e-9);
        let num = |most| grid(fine, most).num_cells().unwrap() as u64;
        assert!(num(10_000) <= 10_000 && num(10_000) > 5000 && num(1) == 1);
        assert_eq!(grid(BoxMethodOptions::default().cell_length(f64::INFINITY), 100).num_cells(), Some(1));
    }

    #[test]
    fn the_axis_of_short_boxes_overlaps_least() {
        let sample = [[[0.1, 0.1], [0.9, 0.2]]];
        assert_eq!(least_overlap([UNIT; 2], [&sample[..]; 2], 0.0), 1);
        let flat = [[0.0, 0.5], [1.0, 0.5]];
        assert_eq!(least_overlap([flat; 2], [&sample[..]; 2], 0.0), 0);
    }
}
