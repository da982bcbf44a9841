//! Ground points of clouds without classes.

mod cpu;
mod gpu;
#[cfg(test)]
mod tests;

use crate::device::{Device, gpu_of};
use crate::error::{Error, Result, check_count};
use crate::point::{Lattice, MAX_POINTS};
use crate::primitives::cpu::bounds::bounds;
use crate::terrain::grid::MAX_CELLS;
use kauri_kernels::terrain::ground::GroundCells;

/// The progressive morphological filter (Zhang et al. 2003), which finds the ground points of a cloud. Names and defaults of the options
/// are those of `filters.pmf` of PDAL; lengths are in the units of positions.
///
/// The filter takes the least height of each cell of a raster, and opens this surface with square windows of growing size: buildings and
/// trees that are narrower than a window disappear, terrain remains. A point that is higher above an opened surface than the threshold of the
/// window is not ground. The first window has 3 cells on a side and the threshold `initial_distance`. The threshold of a
/// later window is `initial_distance` plus `slope` times the difference to the side of the window before, and at most `max_distance`.
///
/// - `max_window_size` must exceed the width of the largest building.
/// - `initial_distance` must exceed the relief of the ground within a cell, or the higher points of the cell are lost.
/// - `slope` is the greatest slope of the terrain. With a greater slope more of the lower parts of buildings and trees remain.
/// - Single points below the ground lower the surface around them: remove them first.
/// - At the border of the points, a window is a part of a square. Ground that rises to the border by more than `slope` is lost there.
///
/// The result is the same on every device. An empty cell has the least height of the nearest cells with points, up to the reach of the
/// largest window.
///
/// On [generated scans](crate::lidar) with 4 points per square meter, the default options miss 1.4 to 2.7 % of the ground points (omission),
/// and 2.6 to 2.8 % of the points that they call ground are none (commission): nearly all are vegetation below 0.5 m.
///
/// ```
/// use kauri::terrain::GroundFilter;
/// use kauri::{Device, Lattice};
/// // Flat ground of 20 m x 20 m, and a box of 5 m height on it.
/// let lattice = Lattice { scale: [0.01; 3], offset: [0.0; 3] };
/// let height = |x, y| if (500..1100).contains(&x) && (500..1100).contains(&y) { 500 } else { 0 };
/// let points: Vec<[i32; 3]> =
///     (0..400).map(|i| [i % 20 * 100, i / 20 * 100]).map(|[x, y]| [x, y, height(x, y)]).collect();
/// let is_ground = GroundFilter::default().run(&Device::cpu(), &points, &lattice)?;
/// assert!(points.iter().zip(is_ground).all(|(point, is_ground)| is_ground == (point[2] == 0)));
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GroundFilter {
    /// The side of a cell of the raster, rounded to steps of the lattice.
    pub cell_size: f64,
    /// The side of the largest window.
    pub max_window_size: f64,
    /// The slope of the terrain: height by length.
    pub slope: f64,
    /// The threshold of the first window.
    pub initial_distance: f64,
    /// The greatest threshold.
    pub max_distance: f64,
    /// True for windows of 3, 5, 9, 17, 33, … cells; false for 3, 5, 7, 9, … cells, which take longer.
    pub exponential: bool,
}

impl Default for GroundFilter {
    fn default() -> Self {
        Self {
            cell_size: 1.0,
            max_window_size: 33.0,
            slope: 1.0,
            initial_distance: 0.15,
            max_distance: 2.5,
            exponential: true,
        }
    }
}

/// A window: the cells from its center to its border, and its threshold in steps of height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    radius: u32,
    threshold: i32,
}

impl GroundFilter {
    setters! {
        /// Sets the side of a cell.
        cell_size: f64;

        /// Sets the side of the largest window.
        max_window_size: f64;

        /// Sets the slope of the terrain.
        slope: f64;

        /// Sets the threshold of the first window.
        initial_distance: f64;

        /// Sets the greatest threshold.
        max_distance: f64;

        /// Sets how windows grow.
        exponential: bool;
    }

    /// Returns true for each point that is ground. Points are given as integers on a lattice.
    ///
    /// Memory: 12 bytes for each cell, and on a GPU 13 bytes for each point.
    ///
    /// # Errors
    /// [`Error::InvalidResolution`] unless the side of a cell is greater than 0 and finite; [`Error::InvalidLength`] for another length that
    /// is negative or NaN; [`Error::TooManyItems`] beyond [`MAX_POINTS`] or for 2^31 cells; [`Error::OutOfMemory`]; errors of the device.
    pub fn run(&self, device: &Device, points: &[[i32; 3]], lattice: &Lattice) -> Result<Vec<bool>> {
        self.check()?;
        check_count("points", points.len() as u64, MAX_POINTS)?;
        if points.is_empty() {
            return Ok(Vec::new());
        }
        let cells = self.cells(bounds(points), lattice)?;
        let windows = self.windows(&cells, lattice.scale[2]);
        match gpu_of!(device) {
            None => cpu::run(points, &cells, &windows),
            Some(gpu) => gpu::run(gpu, points, &cells, &windows),
        }
    }

    fn check(&self) -> Result<()> {
        let value = self.cell_size;
        if !(value > 0.0 && value.is_finite()) {
            return Err(Error::InvalidResolution { value });
        }
        for (what, value) in [
            ("size of windows", self.max_window_size),
            ("slope", self.slope),
            ("initial distance", self.initial_distance),
            ("greatest distance", self.max_distance),
        ] {
            if value.is_nan() || value < 0.0 {
                return Err(Error::InvalidLength { what, value });
            }
        }
        Ok(())
    }

    /// Returns the cells over points.
    fn cells(&self, [low, high]: [[i32; 3]; 2], lattice: &Lattice) -> Result<GroundCells> {
        // The conversion saturates.
        let sides = [0, 1].map(|axis| (self.cell_size / lattice.scale[axis]).round().max(1.0) as u32);
        let [columns, rows] = [0, 1].map(|axis| u64::from(high[axis].abs_diff(low[axis]) / sides[axis]) + 1);
        check_count("cells of a raster", columns.saturating_mul(rows), MAX_CELLS)?;
        Ok(GroundCells {
            low_x: low[0],
            low_y: low[1],
            side_x: sides[0],
            side_y: sides[1],
            columns: columns as u32,
            rows: rows as u32,
        })
    }

    /// Returns the windows. There are none after the first one that covers the raster from any cell.
    fn windows(&self, cells: &GroundCells, height_scale: f64) -> Vec<Window> {
        let (mut windows, mut radius, mut before) = (Vec::new(), 1_u32, 1_u32);
        while (2.0 * f64::from(radius) + 1.0) * self.cell_size <= self.max_window_size {
            let grown = 2.0 * f64::from(radius - before) * self.cell_size;
            let threshold = (self.initial_distance + self.slope * grown).min(self.max_distance);
            // The conversion saturates.
            windows.push(Window { radius, threshold: (threshold / height_scale) as i32 });
            if radius >= cells.columns.max(cells.rows) {
                break;
            }
            before = radius;
            radius = if self.exponential { 2 * radius } else { radius + 1 };
        }
        windows
    }
}

/// Returns the steps that widen windows of one cell to windows of a radius.
fn steps(radius: u32) -> impl Iterator<Item = u32> {
    let mut reached = 0;
    std::iter::from_fn(move || {
        let step = (2 * reached + 1).min(radius - reached);
        reached += step;
        (step > 0).then_some(step)
    })
}

/// Returns the number of cells that the largest window reaches from a cell: twice its radius.
fn reach(windows: &[Window], cells: &GroundCells) -> u32 {
    let radius = windows.last().map_or(0, |window| window.radius);
    radius.saturating_mul(2).min(cells.columns.max(cells.rows))
}
