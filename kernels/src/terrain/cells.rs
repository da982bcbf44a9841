//! The cells of a raster on the lattice of positions.

use cuda_std::prelude::*;

/// The greatest magnitude of a coordinate.
pub const MAX_COORDINATE: i32 = 1 << 29;

/// The cells of a raster, and the unit of heights.
#[derive(Clone, Copy, Debug, PartialEq, KernelArgs)]
pub struct Cells {
    /// x of the centers of the first column.
    pub x: f64,
    /// y of the centers of the first row, the northernmost.
    pub y: f64,
    /// The side of a cell.
    pub step: f64,
    /// Cells of a row.
    pub columns: u32,
    /// Number of rows.
    pub rows: u32,
    /// The height of the integer 0.
    pub height_offset: f64,
    /// The distance of two integer heights.
    pub height_scale: f64,
}

impl Cells {
    /// Returns the number of cells.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.columns as usize * self.rows as usize
    }

    /// Returns false: a raster has at least one cell.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns the position on the lattice that is nearest to the center of cell `i`, in rows from the north-west corner.
    #[inline(always)]
    pub fn center(&self, i: usize) -> [i32; 2] {
        let (column, row) = (i as u32 % self.columns, i as u32 / self.columns);
        [nearest(self.x + column as f64 * self.step), nearest(self.y - row as f64 * self.step)]
    }

    /// Returns a height, given in steps, in the unit of the raster.
    #[inline(always)]
    pub fn height(&self, steps: f64) -> f32 {
        (self.height_offset + self.height_scale * steps) as f32
    }
}

/// Returns the nearest integer; halves are rounded up.
#[inline(always)]
fn nearest(value: f64) -> i32 {
    let shifted = value + 0.5;
    let whole = shifted as i32;
    if (whole as f64) > shifted { whole - 1 } else { whole }
}
