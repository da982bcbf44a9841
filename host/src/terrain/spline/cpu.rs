//! Splines on the CPU.

use crate::error::Result;
use crate::memory::{self, Parts};
use crate::parallel::Ranges;
use crate::quadtree::build_on_cpu;
use crate::stats::Stats;
use crate::terrain::spline::SplineRaster;
use kauri_kernels::terrain::cells::Cells;
use kauri_kernels::terrain::spline::areas::Area;
use kauri_kernels::terrain::spline::{
    PANEL, Shape, capacity, column_begin, distance_from_cell, inverse_of_pivot, matrix_len,
};
use kauri_kernels::terrain::tree::Missing;

/// The most leaves of a task.
const TASK_LEAVES: usize = 64;

/// The most cells that a task evaluates.
const TASK_CELLS: usize = 1024;

/// Returns the height of each cell.
pub(super) fn raster(
    positions: &[[i32; 2]],
    heights: &[i32],
    SplineRaster { cells, options, cloud }: &SplineRaster,
) -> Result<Vec<f32>> {
    let (frame, shape, extent) = (cloud.frame(options)?, cloud.shape(options), cloud.extent());
    let tree = build_on_cpu(positions, &frame, &options.tree(), &mut Stats::default())?;
    let (nodes, first_units) = (&tree.nodes[..], tree.cells.as_chunks::<2>().0);
    let points = tree.coords.as_chunks::<2>().0;
    let capacity = capacity(options.leaf_points) as usize;
    let mut values = memory::filled(cells.len(), f32::NAN, "values of a raster")?;
    let to = Parts::of_initialized(&mut values);
    Ranges::even(nodes.len(), TASK_LEAVES).for_each(&|range| {
        let mut system = System::new(shape);
        for number in range {
            let (node, first) = (nodes[number], first_units[number]);
            let area =
                if node.is_leaf() { Area::of_leaf(&frame, cells, first, node.level) } else { continue };
            if area.is_empty() {
                continue;
            }
            let adjacent = tree.leaves_adjacent_to::<2>(frame.levels, number as u32);
            let leaves = || std::iter::once(number as u32).chain(adjacent.iter().copied());
            let is_known = |leaf: u32| {
                extent.has_points_of(&frame, first_units[leaf as usize], nodes[leaf as usize].level)
            };
            if !leaves().all(is_known) {
                (0..area.len() as usize).for_each(|i| write(cells, &area, i, &to, Err(Missing::Unresolved)));
                continue;
            }
            let indices = leaves().map(|leaf| nodes[leaf as usize]).flat_map(|leaf| leaf.start..leaf.end);
            let distance = |&point: &u32| {
                distance_from_cell(&frame, points[point as usize], first, 1 << (frame.levels - node.level))
            };
            let indices = nearest(indices.collect(), capacity, distance);
            let height = |point: usize| heights[tree.ids[point] as usize];
            system.solve(indices.into_iter().map(|i| (points[i as usize], height(i as usize))));
            system.evaluate(cells, &area, &to);
        }
    });
    Ok(values)
}

/// Returns the first `capacity` points in the order of their distances, in their old order.
fn nearest(points: Vec<u32>, capacity: usize, distance: impl Fn(&u32) -> u32) -> Vec<u32> {
    if points.len() <= capacity {
        return points;
    }
    let mut order: Vec<(u32, usize)> = points.iter().map(distance).zip(0..).collect();
    order.select_nth_unstable(capacity - 1);
    order.truncate(capacity);
    order.sort_unstable_by_key(|&(_, i)| i);
    order.into_iter().map(|(_, i)| points[i]).collect()
}

/// A system of equations, and its solution.
struct System {
    shape: Shape,
    positions: Vec<[i32; 2]>,
    /// First the heights, then the weights.
    weights: Vec<f64>,
    /// The height of the anchor, and what is added to it.
    base: f64,
    shift: f64,
    /// Radial functions of the distances from the anchor.
    to_anchor: Vec<f64>,
    inverses: Vec<f64>,
    matrix: Vec<f64>,
    /// The columns of a panel times the inverse pivots.
    scaled: [Vec<f64>; PANEL],
}

impl System {
    fn new(shape: Shape) -> Self {
        Self {
            shape,
            positions: Vec::new(),
            weights: Vec::new(),
            base: 0.0,
            shift: 0.0,
            to_anchor: Vec::new(),
            inverses: Vec::new(),
            matrix: Vec::new(),
            scaled: Default::default(),
        }
    }

    /// Computes the weights of points.
    fn solve(&mut self, points: impl Iterator<Item = ([i32; 2], i32)>) {
        self.positions.clear();
        self.weights.clear();
        for (position, height) in points {
            self.positions.push(position);
            self.weights.push(height.into());
        }
        if !self.positions.is_empty() {
            self.base = self.weights[0];
            let least_pivot = self.fill();
            self.factor(least_pivot);
            self.substitute();
        }
    }

    /// Fills the matrix, and returns the threshold of pivots.
    fn fill(&mut self) -> f64 {
        let (shape, num_points) = (self.shape, self.positions.len());
        let (anchor, others) = (self.positions[0], &self.positions[1..]);
        self.to_anchor.clear();
        self.to_anchor.extend(others.iter().map(|&position| shape.radial(anchor, position)));
        self.matrix.clear();
        self.matrix.reserve(matrix_len(num_points));
        for (column, &position) in others.iter().enumerate() {
            let to_anchor = &self.to_anchor[column..];
            self.matrix.push(shape.diagonal(to_anchor[0]));
            for (&other, &other_to_anchor) in others[column..].iter().zip(to_anchor).skip(1) {
                let between = shape.radial(other, position);
                self.matrix.push(shape.element([other_to_anchor, to_anchor[0]], between));
            }
            self.matrix.push(self.weights[column + 1] - self.base);
        }
        let greatest = self.to_anchor.iter().fold(0.0, |greatest, &value| f64::max(greatest, value));
        shape.least_pivot(greatest)
    }

    /// Factors the matrix, right-hand side included, panel by panel.
    fn factor(&mut self, least_pivot: f64) {
        let num_points = self.positions.len();
        let unknowns = num_points - 1;
        self.inverses.clear();
        for first in (0..unknowns).step_by(PANEL) {
            let end = unknowns.min(first + PANEL);
            for column in first..end {
                let (earlier, this) = self.matrix.split_at_mut(column_begin(column, num_points) + column);
                let this = &mut this[..num_points - column];
                for before in first..column {
                    let factors = &earlier[column_begin(before, num_points) + column..][..this.len()];
                    let scaled = self.scaled[before - first][column];
                    for (value, factor) in this.iter_mut().zip(factors) {
                        *value -= factor * scaled;
                    }
                }
                let inverse = inverse_of_pivot(this[0], least_pivot);
                let scaled = &mut self.scaled[column - first];
                scaled.resize(scaled.len().max(num_points), 0.0);
                for (scaled, value) in scaled[column..].iter_mut().zip(this.iter()) {
                    *scaled = value * inverse;
                }
                self.inverses.push(inverse);
            }
            for column in end..unknowns {
                let (panel, this) = self.matrix.split_at_mut(column_begin(column, num_points) + column);
                let this = &mut this[..num_points - column];
                let factors: [&[f64]; PANEL] = std::array::from_fn(|p| {
                    &panel[column_begin(first + p, num_points) + column..][..this.len()]
                });
                let scaled: [f64; PANEL] = std::array::from_fn(|p| self.scaled[p][column]);
                for (row, value) in this.iter_mut().enumerate() {
                    for p in 0..PANEL {
                        *value -= factors[p][row] * scaled[p];
                    }
                }
            }
        }
    }

    /// Computes the weights by back substitution.
    fn substitute(&mut self) {
        let num_points = self.positions.len();
        let unknowns = num_points - 1;
        for column in 0..unknowns {
            self.weights[column + 1] = self.matrix[column_begin(column, num_points) + unknowns];
        }
        let (mut sum, mut shift) = (0.0, 0.0);
        for row in (0..unknowns).rev() {
            let weight = self.weights[row + 1] * self.inverses[row];
            for column in 0..row {
                self.weights[column + 1] -= self.matrix[column_begin(column, num_points) + row] * weight;
            }
            self.weights[row + 1] = weight;
            sum += weight;
            shift += weight * self.to_anchor[row];
        }
        self.weights[0] = -sum;
        self.shift = shift + self.shape.smoothing * sum;
    }

    /// Writes the heights of an area of cells, on several threads if it is large.
    fn evaluate(&self, cells: &Cells, area: &Area, to: &Parts<'_, f32>) {
        if self.positions.is_empty() {
            return;
        }
        Ranges::new(area.len() as usize, TASK_CELLS).for_each(&|range| {
            for i in range {
                let center = cells.center_of(area.cell(i as u32));
                let points = self.positions.iter().zip(&self.weights);
                let sum = points
                    .fold(0.0, |sum, (&position, weight)| sum + weight * self.shape.radial(center, position));
                write(cells, area, i, to, Ok(self.base + (self.shift - sum)));
            }
        });
    }
}

/// Writes the value of cell `i` of an area.
fn write(cells: &Cells, area: &Area, i: usize, to: &Parts<'_, f32>, height: Result<f64, Missing>) {
    let slot = cells.index(area.cell(i as u32)).expect("a cell of the window");
    // SAFETY: a cell belongs to one area.
    unsafe { to.write(slot, cells.value(height)) };
}
