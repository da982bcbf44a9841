//! The cells of a raster on the lattice of positions.

use super::tree::Missing;
use cuda_std::prelude::*;

/// The greatest magnitude of a coordinate.
pub const MAX_COORDINATE: i32 = 1 << 29;

/// The bits of the value of a cell that depends on unknown points: a NaN.
pub const UNRESOLVED: u32 = u32::MAX;

/// The columns and rows of the cells of a warp.
const BLOCK: [u32; 2] = [8, 4];

/// A window of the cells of a raster, and the unit of heights.
#[derive(Clone, Copy, Debug, PartialEq, KernelArgs)]
pub struct Cells {
    /// x of the center of the raster's first column.
    pub x: f64,
    /// y of the center of the raster's first row, the northernmost.
    pub y: f64,
    /// The side of a cell.
    pub step: f64,
    /// The first column of the window.
    pub first_column: u32,
    /// The first row of the window.
    pub first_row: u32,
    /// Columns of the window.
    pub columns: u32,
    /// Rows of the window.
    pub rows: u32,
    /// The height of the integer 0.
    pub height_offset: f64,
    /// The distance of two integer heights.
    pub height_scale: f64,
}

impl Cells {
    /// Returns the number of cells of the window.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.columns as usize * self.rows as usize
    }

    /// Returns true if the window has no cell.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the position on the lattice that is nearest to the center of cell `i` of the window, in rows from the north-west corner.
    #[inline(always)]
    pub fn center(&self, i: usize) -> [i32; 2] {
        self.center_of([i as u32 % self.columns, i as u32 / self.columns])
    }

    /// Returns the position on the lattice that is nearest to the center of a cell, given by column and row of the window.
    #[inline(always)]
    pub fn center_of(&self, [column, row]: [u32; 2]) -> [i32; 2] {
        let (column, row) = (self.first_column + column, self.first_row + row);
        [nearest(self.x + f64::from(column) * self.step), nearest(self.y - f64::from(row) * self.step)]
    }

    /// Returns the number of threads that compute all cells in blocks.
    #[inline(always)]
    pub fn num_threads(&self) -> u64 {
        u64::from(self.columns.div_ceil(BLOCK[0])) * u64::from(self.rows.div_ceil(BLOCK[1])) * 32
    }

    /// Returns column and row of the cell of a thread. Each warp has a block of cells, so that its lanes take similar paths; cells of blocks at
    /// the border may be outside of the window.
    #[inline(always)]
    pub fn in_block(&self, thread: u64) -> [u32; 2] {
        let (block, lane) = ((thread / 32) as u32, thread as u32 % 32);
        let blocks = self.columns.div_ceil(BLOCK[0]);
        [block % blocks * BLOCK[0] + lane % BLOCK[0], block / blocks * BLOCK[1] + lane / BLOCK[0]]
    }

    /// Returns the number of a cell, given by column and row; `None` outside of the window.
    #[inline(always)]
    pub fn index(&self, [column, row]: [u32; 2]) -> Option<usize> {
        (column < self.columns && row < self.rows)
            .then(|| row as usize * self.columns as usize + column as usize)
    }

    /// Returns a height, given in steps, in the unit of the raster.
    #[inline(always)]
    pub fn height(&self, steps: f64) -> f32 {
        (self.height_offset + self.height_scale * steps) as f32
    }

    /// Returns the value of a cell; NaN or [`UNRESOLVED`] if there is none.
    #[inline(always)]
    pub fn value(&self, height: Result<f64, Missing>) -> f32 {
        match height {
            Ok(steps) => self.height(steps),
            Err(Missing::NoValue) => f32::NAN,
            Err(Missing::Unresolved) => f32::from_bits(UNRESOLVED),
        }
    }
}

/// Returns the nearest integer; halves are rounded up.
#[inline(always)]
fn nearest(value: f64) -> i32 {
    let shifted = value + 0.5;
    let whole = shifted as i32;
    if f64::from(whole) > shifted { whole - 1 } else { whole }
}
