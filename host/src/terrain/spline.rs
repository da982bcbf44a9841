//! Rasters by regularized splines with tension in the leaves of a quadtree; `kauri_kernels::terrain::spline` has the method.
#![allow(dead_code, reason = "the rasters of the module above call it")]

mod cpu;
mod gpu;
#[cfg(test)]
mod tests;

use crate::device::{Buffer, Stream, Workspace};
use crate::error::{Error, Result, check_count, check_len};
use crate::point::MAX_POINTS;
use crate::primitives::cpu::bounds::bounds;
use crate::quadtree::QuadtreeOptions;
use crate::terrain::Spline;
use kauri_kernels::terrain::cells::Cells;
use kauri_kernels::terrain::spline::{MAX_LEAF_POINTS, Shape};

/// Returns the height of each cell, on all threads. The points are at different positions. A cell is NaN if neither its leaf nor the leaves
/// adjacent to it have points.
///
/// The result depends on the order of the points only by rounding, and has the same bits on every device.
///
/// # Errors
/// [`Error::InvalidLength`] for a tension or a smoothing that is negative or not finite; [`Error::OutOfRange`] unless a leaf has 1 to
/// 100 points; [`Error::Shape`] unless there are as many heights as positions; [`Error::TooManyItems`]; [`Error::OutOfMemory`].
pub(crate) fn raster(
    positions: &[[i32; 2]],
    heights: &[i32],
    cells: &Cells,
    options: &Spline,
) -> Result<Vec<f32>> {
    options.check()?;
    check_len("heights of points", positions.len(), heights.len())?;
    check_count("points", positions.len() as u64, MAX_POINTS)?;
    let shape = Shape::new(options.tension, options.smoothing, bounds(positions), positions.len());
    cpu::raster(positions, heights, cells, &shape, options)
}

/// Writes the height of each cell, as [`raster`] does, in device memory. `positions` has x and y of each point. The call waits for counts.
///
/// # Errors
/// The errors of [`raster`]; [`Error::Shape`] unless there is a value for each cell; [`Error::WrongDevice`]; errors of the driver.
pub(crate) fn raster_on(
    stream: &Stream,
    workspace: &mut Workspace,
    positions: &Buffer<i32>,
    heights: &Buffer<i32>,
    cells: &Cells,
    options: &Spline,
    values: &mut Buffer<f32>,
) -> Result<()> {
    options.check()?;
    heights.check_device(stream)?;
    positions.check(stream, "coordinates of points", 2 * heights.len())?;
    values.check(stream, "values of a raster", cells.len())?;
    check_count("points", heights.len() as u64, MAX_POINTS)?;
    gpu::raster_on(stream, workspace, (positions, heights), cells, options, values, gpu::SCRATCH_BYTES)
}

impl Spline {
    /// Checks that the options are in their ranges.
    fn check(&self) -> Result<()> {
        for (what, value) in [("tension", self.tension), ("smoothing", self.smoothing)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::InvalidLength { what, value });
            }
        }
        crate::error::check_range("points of a leaf", self.leaf_points, 1, MAX_LEAF_POINTS.into())
    }

    /// Returns the options of the tree.
    fn tree(&self) -> QuadtreeOptions {
        QuadtreeOptions::default().leaf_points(self.leaf_points)
    }
}
