//! The boxes of a table: the columns that hold them, and their values.

use super::{Rows, Table};
use crate::error::{FileLocation, Result};
use crate::memory;

/// Names of columns: least x, least y, greatest x, greatest y; case is ignored.
const CORNERS: [&str; 4] = ["xmin", "ymin", "xmax", "ymax"];
/// The box of an empty geometry. Its low corner is above its high corner, so that it has no partner in a join.
#[cfg(feature = "parquet")]
const EMPTY: [[f64; 2]; 2] = [[1.0; 2], [0.0; 2]];

/// The columns that hold the boxes of a table. [`Table::box_columns`] finds them.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("parcels.csv");
/// use kauri::io::{BoxColumns, Table};
///
/// std::fs::write(&path, "id,xmin,xmax,ymin,ymax\n7,0,2,0,1\n").unwrap();
/// let table = Table::read(&path)?;
/// let columns = table.box_columns(None)?;
/// assert_eq!(columns, BoxColumns::Corners([1, 3, 2, 4]));
/// assert_eq!(table.boxes(columns)?, [[[0.0, 0.0], [2.0, 1.0]]]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BoxColumns {
    /// Columns of the least x, the least y, the greatest x and the greatest y.
    Corners([usize; 4]),
    /// Such columns with bounding boxes of the geometries of a GeoParquet file, which its metadata name as their covering.
    Covering([usize; 4]),
    /// One column of geometries in well-known binary (OGC 06-103r4), whose bounding boxes are the boxes.
    Geometries(usize),
}

impl Table {
    /// Returns the columns of the boxes: the given names of the columns with the least x, least y, greatest x and greatest y, else the
    /// columns named `xmin`, `ymin`, `xmax` and `ymax`, else the bounding boxes of a GeoParquet file, else its geometries.
    ///
    /// # Errors
    /// [`Error::InvalidFile`](crate::Error::InvalidFile) if there are none, for GeoParquet metadata without a geometry column that can be
    /// read, and for geometries whose edges are not straight lines of the plane.
    pub fn box_columns(&self, names: Option<[&str; 4]>) -> Result<BoxColumns> {
        if let Some([x0, y0, x1, y1]) = names {
            let columns = [self.column(x0)?, self.column(y0)?, self.column(x1)?, self.column(y1)?];
            return Ok(BoxColumns::Corners(columns));
        }
        if let [Some(x0), Some(y0), Some(x1), Some(y1)] = CORNERS.map(|name| self.find(&[name])) {
            return Ok(BoxColumns::Corners([x0, y0, x1, y1]));
        }
        #[cfg(feature = "parquet")]
        if let Rows::Parquet(parquet) = &self.rows
            && let Some(columns) = parquet.boxes(&self.source)?
        {
            return Ok(columns);
        }
        Err(self.missing_column(&format!("no columns for boxes ({})", CORNERS.join(", "))))
    }

    /// Reads the boxes of these columns: for each row the least x and y, and the greatest x and y. The box of an empty geometry is
    /// `[[1.0, 1.0], [0.0, 0.0]]`, which has no partner in a [`BoxJoin`](crate::BoxJoin).
    ///
    /// # Errors
    /// [`Error::InvalidFile`](crate::Error::InvalidFile), with row and column, for missing values, values that are no finite number or no
    /// geometry, and for boxes in columns whose least x or y exceeds the greatest;
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn boxes(&self, columns: BoxColumns) -> Result<Vec<[[f64; 2]; 2]>> {
        match columns {
            BoxColumns::Corners(columns) | BoxColumns::Covering(columns) => self.boxes_of_corners(columns),
            BoxColumns::Geometries(column) => match &self.rows {
                Rows::Csv(csv) => {
                    Err(self.source.invalid(csv.header(), None, "no column has geometries as bytes"))
                }
                #[cfg(feature = "parquet")]
                Rows::Parquet(parquet) => {
                    let bounds = parquet.bounds(&self.source, column)?;
                    Ok(bounds.into_iter().map(|bounds| bounds.unwrap_or(EMPTY)).collect())
                }
            },
        }
    }

    fn boxes_of_corners(&self, columns: [usize; 4]) -> Result<Vec<[[f64; 2]; 2]>> {
        let mut boxes = memory::vec_with_capacity(self.len(), "boxes of a table")?;
        let numbers = |column: usize| Ok(self.numbers(columns[column])?.into_floats());
        let (low, high) = ([numbers(0)?, numbers(1)?], [numbers(2)?, numbers(3)?]);
        for row in 0..self.len() {
            for axis in 0..2 {
                let (least, greatest) = (low[axis][row], high[axis][row]);
                if least > greatest {
                    let name = &self.columns()[columns[axis]];
                    let hint = ["; split a box over the date line in two", ""][axis];
                    let what = format!("{greatest} is less than {least} in column '{name}'{hint}");
                    return Err(self.source.invalid_cell(self.location(row), columns[2 + axis], what));
                }
            }
            boxes.push([[low[0][row], low[1][row]], [high[0][row], high[1][row]]]);
        }
        Ok(boxes)
    }

    /// Returns the location of a row in the file.
    fn location(&self, row: usize) -> FileLocation {
        match &self.rows {
            Rows::Csv(csv) => csv.location(row),
            #[cfg(feature = "parquet")]
            Rows::Parquet(_) => FileLocation::Row(row as u64),
        }
    }
}
