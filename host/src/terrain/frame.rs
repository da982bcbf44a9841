//! From positions in the units of a user to positions of kernels.
//!
//! A position of kernels is in half steps of the lattice of the points, from the least x and y on: the centers of cells whose sides are
//! whole steps are then on it.

use super::grid::RasterGrid;
use crate::error::{Error, Result};
use crate::point::Lattice;
use kauri_kernels::terrain::cells::{Cells, MAX_COORDINATE};
use kauri_kernels::terrain::known::Rectangle;
use kauri_kernels::terrain::order::Frame;

/// Positions of kernels in a step of a lattice.
const STEPS: i32 = 2;

/// The lattice of points with the same step along x and y, and its least point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TerrainFrame {
    pub(super) lattice: Lattice,
    low: [i32; 2],
}

impl TerrainFrame {
    /// Creates the frame of points from `low` to `high`.
    pub(super) fn new(lattice: Lattice, [low, high]: [[i32; 3]; 2]) -> Result<Self> {
        for axis in 0..2 {
            check_extent("point", axis, low[axis], high[axis], MAX_COORDINATE / STEPS)?;
        }
        Ok(Self { lattice, low: [low[0], low[1]] })
    }

    /// Creates the frame of points of which only one is known. The others are less than [`REACH`](Self::REACH) away on each axis.
    pub(super) fn around(lattice: Lattice, point: [i32; 3]) -> Self {
        Self { lattice, low: [0, 1].map(|axis| point[axis].saturating_sub(Self::REACH)) }
    }

    /// Steps of the lattice from the first point to others.
    pub(super) const REACH: i32 = MAX_COORDINATE / STEPS / 2;

    /// Checks points between two corners against the frame.
    pub(super) fn check(&self, [low, high]: [[i32; 3]; 2]) -> Result<()> {
        for axis in 0..2 {
            let (least, most) = (self.low[axis], MAX_COORDINATE / STEPS);
            check_extent("point", axis, least, high[axis], most)?;
            check_extent("point", axis, low[axis], least.saturating_add(most), most)?;
        }
        Ok(())
    }

    /// Returns how kernels make positions of points with heights.
    pub(super) fn of_points(&self) -> Frame {
        Frame { low_x: self.low[0], low_y: self.low[1], steps: STEPS }
    }

    /// Returns the corners of the blocks of `side` steps of the lattice around two positions, in steps of the lattice, and the positions
    /// between these corners.
    pub(super) fn outward(&self, [low, high]: [[i64; 2]; 2], side: i64) -> ([[i64; 2]; 2], Rectangle) {
        let steps = i64::from(STEPS);
        // Blocks begin at multiples of their side above the least integer.
        let block = |axis: usize, position: i64| {
            (position.div_euclid(steps) + i64::from(self.low[axis]) - i64::from(i32::MIN)).div_euclid(side)
        };
        let corner = |block: i64| block * side + i64::from(i32::MIN);
        let lows = [0, 1].map(|axis| corner(block(axis, low[axis])));
        let highs = [0, 1].map(|axis| corner(block(axis, high[axis] + steps - 1) + 1) - 1);
        let position = |axis: usize, corner: i64| ((corner - i64::from(self.low[axis])) * steps) as f64;
        let positions = [lows, highs].map(|[x, y]| [position(0, x), position(1, y)]);
        ([lows, highs], Rectangle::new(positions))
    }

    /// Returns the square of a length in steps of positions, rounded down; at most the greatest `i64`.
    pub(super) fn steps2(&self, what: &'static str, length: f64) -> Result<i64> {
        if length >= 0.0 {
            let steps = length / self.lattice.scale[0] * f64::from(STEPS);
            // The conversion saturates.
            Ok((steps * steps) as i64)
        } else {
            Err(Error::InvalidLength { what, value: length })
        }
    }

    /// Returns the cells of a raster.
    ///
    /// # Errors
    /// [`Error::CoordinateTooLarge`] for a raster too far away from the points.
    pub(super) fn cells(&self, grid: &RasterGrid) -> Result<Cells> {
        let Lattice { scale, offset } = self.lattice;
        let center = grid.center(0, 0);
        let [x, y] = [0, 1].map(|axis| {
            ((center[axis] - offset[axis]) / scale[axis] - f64::from(self.low[axis])) * f64::from(STEPS)
        });
        let step = grid.resolution() / scale[0] * f64::from(STEPS);
        let ends = [[x, x + f64::from(grid.columns()) * step], [y, y - f64::from(grid.rows()) * step]];
        for (axis, ends) in ends.into_iter().enumerate() {
            for (index, end) in (0..).zip(ends) {
                let limit = f64::from(MAX_COORDINATE - 1);
                if end.is_nan() || end.abs() > limit {
                    let in_units = scale[axis] / f64::from(STEPS);
                    let (value, limit) = (end * in_units, limit * in_units);
                    return Err(Error::CoordinateTooLarge {
                        what: "corner of the raster",
                        index,
                        axis,
                        value,
                        limit,
                    });
                }
            }
        }
        Ok(Cells {
            x,
            y,
            step,
            first_column: 0,
            first_row: 0,
            columns: grid.columns(),
            rows: grid.rows(),
            height_offset: offset[2],
            height_scale: scale[2],
        })
    }
}

/// Returns [`Error::CoordinateTooLarge`] if coordinates differ by more than `most`.
pub(super) fn check_extent(what: &'static str, axis: usize, low: i32, high: i32, most: i32) -> Result<()> {
    if high.abs_diff(low) <= most as u32 {
        return Ok(());
    }
    let (value, limit) = (f64::from(high), f64::from(low) + f64::from(most));
    Err(Error::CoordinateTooLarge { what, index: 0, axis, value, limit })
}
