//! Rasters by regularized splines with tension in the leaves of a quadtree; `kauri_kernels::terrain::spline` has the method.

mod cpu;
mod gpu;
#[cfg(test)]
mod tests;

use crate::device::{Buffer, Stream, Workspace};
use crate::error::{Error, Result, check_count, check_len};
use crate::point::MAX_POINTS;
use crate::quadtree::{QuadtreeOptions, frame_of_bounds};
use crate::terrain::Spline;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::terrain::cells::Cells;
use kauri_kernels::terrain::known::Known;
use kauri_kernels::terrain::spline::{Extent, MAX_LEAF_POINTS, Shape};

/// The cloud that the points are a part of, or all of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cloud {
    /// The least and the greatest x and y of all points.
    pub(crate) corners: [[i32; 2]; 2],
    /// The number of all points, which determines the unit of tension.
    pub(crate) num_points: usize,
    /// The part of the plane in which all points are there.
    pub(crate) known: Known,
}

/// The raster to compute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplineRaster {
    /// The cells.
    pub(crate) cells: Cells,
    /// The options.
    pub(crate) options: Spline,
    /// The cloud that the points are a part of.
    pub(crate) cloud: Cloud,
}

/// Returns the height of each cell, on all threads. The points are at different positions. A cell is NaN if neither its leaf nor the leaves
/// adjacent to it have points, and [`UNRESOLVED`](kauri_kernels::terrain::cells::UNRESOLVED) if one of them has unknown points.
///
/// The result has the same bits on every device, and for every part of a cloud that has the points. It depends on the order of the points by
/// rounding.
///
/// # Errors
/// [`Error::InvalidLength`] for a tension or a smoothing that is negative or not finite; [`Error::OutOfRange`] unless a leaf has 1 to
/// 100 points; [`Error::Shape`] unless there are as many heights as positions; [`Error::TooManyItems`]; [`Error::OutOfMemory`].
pub(crate) fn raster(positions: &[[i32; 2]], heights: &[i32], task: &SplineRaster) -> Result<Vec<f32>> {
    task.options.check()?;
    check_len("heights of points", positions.len(), heights.len())?;
    check_count("points", positions.len() as u64, MAX_POINTS)?;
    cpu::raster(positions, heights, task)
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
    task: &SplineRaster,
    values: &mut Buffer<f32>,
) -> Result<()> {
    task.options.check()?;
    heights.check_device(stream)?;
    positions.check(stream, "coordinates of points", 2 * heights.len())?;
    values.check(stream, "values of a raster", task.cells.len())?;
    check_count("points", heights.len() as u64, MAX_POINTS)?;
    gpu::raster_on(stream, workspace, (positions, heights), task, values, gpu::SCRATCH_BYTES)
}

impl Cloud {
    fn shape(&self, options: &Spline) -> Shape {
        Shape::new(options.tension, options.smoothing, self.corners, self.num_points)
    }

    fn extent(&self) -> Extent {
        let [[low_x, low_y], [high_x, high_y]] = self.corners;
        Extent { low_x, low_y, high_x, high_y, known: self.known }
    }

    /// Returns the frame of the tree of all points.
    fn frame(&self, options: &Spline) -> Result<Frame<2>> {
        frame_of_bounds(self.corners, self.num_points == 0, &options.tree())
    }
}

impl Spline {
    /// Checks that the options are in their ranges.
    pub(super) fn check(&self) -> Result<()> {
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
