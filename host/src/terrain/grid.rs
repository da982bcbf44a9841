//! The geometry of a raster.

use crate::error::{Error, Result, check_count};

/// The most cells of a raster: their numbers have 32 bits.
pub(crate) const MAX_CELLS: u64 = (1 << 31) - 1;

/// The cells of a raster: squares in rows from the north-west corner.
///
/// ```
/// use kauri::terrain::RasterGrid;
/// // The cells of 2 m that cover the positions; their borders are at multiples of 2 m.
/// let grid = RasterGrid::covering([[451.0, 17.5], [458.2, 23.0]], 2.0)?;
/// assert_eq!((grid.columns(), grid.rows()), (5, 4));
/// assert_eq!(grid.corner(), [450.0, 24.0]);
/// assert_eq!(grid.center(0, 0), [451.0, 23.0]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RasterGrid {
    corner: [f64; 2],
    resolution: f64,
    columns: u32,
    rows: u32,
}

impl RasterGrid {
    /// Returns the cells with sides of `resolution` that cover the positions from `bounds[0]` to `bounds[1]`. The borders of cells are
    /// at multiples of the resolution, so that rasters of neighboring areas fit together. The units are those of the positions.
    ///
    /// # Errors
    /// [`Error::InvalidResolution`] unless the resolution is greater than 0 and finite; [`Error::NonFinite`] for bounds that are not finite;
    /// [`Error::TooManyItems`] for 2^31 cells or more.
    pub fn covering(bounds: [[f64; 2]; 2], resolution: f64) -> Result<Self> {
        if !(resolution > 0.0 && resolution.is_finite()) {
            return Err(Error::InvalidResolution { value: resolution });
        }
        for (index, corner) in bounds.iter().enumerate() {
            if let Some(axis) = corner.iter().position(|coordinate| !coordinate.is_finite()) {
                return Err(Error::NonFinite {
                    what: "corner",
                    index: index as u64,
                    axis,
                    value: corner[axis],
                });
            }
        }
        let first = bounds[0].map(|low| (low / resolution).floor());
        let last = bounds[1].map(|high| (high / resolution).ceil());
        let [columns, rows] = [0, 1].map(|axis| (last[axis] - first[axis]).max(1.0));
        check_count("cells of a raster", (columns * rows) as u64, MAX_CELLS)?;
        let corner = [first[0] * resolution, (first[1] + rows) * resolution];
        Ok(Self { corner, resolution, columns: columns as u32, rows: rows as u32 })
    }

    /// Returns the north-west corner: the least x and the greatest y.
    pub fn corner(&self) -> [f64; 2] {
        self.corner
    }

    /// Returns the side of a cell.
    pub fn resolution(&self) -> f64 {
        self.resolution
    }

    /// Returns the number of cells from west to east.
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// Returns the number of cells from north to south.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Returns the number of cells.
    pub fn len(&self) -> usize {
        self.columns as usize * self.rows as usize
    }

    /// Returns false: a raster has at least one cell.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns the center of a cell.
    pub fn center(&self, column: u32, row: u32) -> [f64; 2] {
        [
            self.corner[0] + (f64::from(column) + 0.5) * self.resolution,
            self.corner[1] - (f64::from(row) + 0.5) * self.resolution,
        ]
    }
}
