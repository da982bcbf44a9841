//! A raster of heights.

use super::grid::RasterGrid;

/// A raster of heights or of other values, one for each cell. A cell without a value has NaN.
#[derive(Clone, Debug)]
pub struct Raster {
    grid: RasterGrid,
    values: Vec<f32>,
}

impl Raster {
    /// Creates a raster of values in rows from the north-west corner.
    ///
    /// # Panics
    /// If there are more or fewer values than cells.
    pub fn new(grid: RasterGrid, values: Vec<f32>) -> Self {
        assert_eq!(values.len(), grid.len(), "a raster has a value for each cell");
        Self { grid, values }
    }

    /// Returns the cells.
    pub fn grid(&self) -> &RasterGrid {
        &self.grid
    }

    /// Returns the values in rows from the north-west corner. A cell without a value has NaN.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Returns the value of a cell, or NaN if it has none.
    ///
    /// # Panics
    /// If there is no such cell.
    pub fn value(&self, column: u32, row: u32) -> f32 {
        assert!(column < self.grid.columns(), "column {column} of {}", self.grid.columns());
        self.values[row as usize * self.grid.columns() as usize + column as usize]
    }

    /// Returns the difference of two rasters with the same cells, such as a canopy height model (CHM): a surface model (DSM) minus a
    /// terrain model (DTM). A cell without a value in one of them has none in the difference.
    ///
    /// # Panics
    /// If the cells differ.
    pub fn minus(&self, other: &Self) -> Self {
        assert_eq!(self.grid, other.grid, "the cells of both rasters");
        let values = self.values.iter().zip(&other.values).map(|(a, b)| a - b).collect();
        Self { grid: self.grid, values }
    }
}
