//! The boxes of a table: the columns that hold them, and their values.

use super::points::NO_BYTES;
use super::{Present, Rows, Table, finite, present};
use crate::error::{FileLocation, Result};

/// Names of columns: least x, least y, greatest x, greatest y; case is ignored.
const CORNERS: [&str; 4] = ["xmin", "ymin", "xmax", "ymax"];

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
    /// columns named `xmin`, `ymin`, `xmax` and `ymax`, else the bounding boxes of a GeoParquet file, else its geometries. After
    /// [`set_geometry`](Self::set_geometry) the geometries come before columns with these names.
    ///
    /// # Errors
    /// [`Error::InvalidFile`](crate::Error::InvalidFile) if there are none, for GeoParquet metadata without a geometry column that can be
    /// read, and for geometries whose edges are not straight lines of the plane.
    pub fn box_columns(&self, names: Option<[&str; 4]>) -> Result<BoxColumns> {
        if let Some([x0, y0, x1, y1]) = names {
            let columns = [self.column(x0)?, self.column(y0)?, self.column(x1)?, self.column(y1)?];
            return Ok(BoxColumns::Corners(columns));
        }
        if let [Some(x0), Some(y0), Some(x1), Some(y1)] = CORNERS.map(|name| self.find(&[name]))
            && !self.has_chosen_geometry()
        {
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

    /// Reads the boxes of these columns: for each row the least x and y, and the greatest x and y. Only the box of an empty geometry has a
    /// least x that exceeds the greatest, so that it has no partner in a [`BoxJoin`](crate::BoxJoin).
    ///
    /// # Errors
    /// [`Error::InvalidFile`](crate::Error::InvalidFile), with row and column, for missing values, values that are no finite number or no
    /// geometry, and for boxes in columns whose least x or y exceeds the greatest;
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn boxes(&self, columns: BoxColumns) -> Result<Vec<[[f64; 2]; 2]>> {
        self.all_boxes(columns, false)
    }

    /// Reads the boxes of the rows that have one: rows with an empty field or a null are left out. An empty geometry has a box without a
    /// partner, as in [`boxes`](Self::boxes).
    ///
    /// # Errors
    /// Errors of [`boxes`](Self::boxes) for values that are not missing.
    pub fn present_boxes(&self, columns: BoxColumns) -> Result<Present<[[f64; 2]; 2]>> {
        present(self.all_boxes(columns, true)?, |bounds| bounds.as_flattened().iter().any(|x| x.is_nan()))
    }

    /// Reads the boxes of all rows. A missing box has NaN.
    fn all_boxes(&self, columns: BoxColumns, may_be_missing: bool) -> Result<Vec<[[f64; 2]; 2]>> {
        match (columns, &self.rows) {
            (BoxColumns::Corners(columns) | BoxColumns::Covering(columns), _) => {
                self.boxes_of_corners(columns, may_be_missing)
            }
            (BoxColumns::Geometries(column), Rows::Csv(csv)) => {
                Err(self.source.invalid(csv.header(), Some(&self.columns()[column]), NO_BYTES))
            }
            #[cfg(feature = "parquet")]
            (BoxColumns::Geometries(column), Rows::Parquet(parquet)) => {
                let bounds = parquet.bounds(&self.source, column, may_be_missing)?;
                // Among the other boxes, because a join makes a grid of the space that boxes cover.
                let lows = bounds.iter().flatten().map(|&[low, _]| low);
                let [x, y] = lows.into_iter().find(|low| !low[0].is_nan()).unwrap_or([0.0; 2]);
                let empty = [[x, y], [x.next_down(), y]];
                Ok(bounds.into_iter().map(|bounds| bounds.unwrap_or(empty)).collect())
            }
        }
    }

    fn boxes_of_corners(&self, columns: [usize; 4], may_be_missing: bool) -> Result<Vec<[[f64; 2]; 2]>> {
        let corners = self.coordinates(columns, [finite; 4], may_be_missing)?;
        for (row, [x0, y0, x1, y1]) in corners.iter().enumerate() {
            for (axis, (least, greatest)) in [(x0, x1), (y0, y1)].into_iter().enumerate() {
                if least > greatest {
                    let name = &self.columns()[columns[axis]];
                    let hint = ["; split a box over the date line in two", ""][axis];
                    let what = format!("{greatest} is less than {least} in column '{name}'{hint}");
                    return Err(self.source.invalid_cell(self.location(row), columns[2 + axis], what));
                }
            }
        }
        // In place: both types have equal sizes.
        Ok(corners.into_iter().map(|[x0, y0, x1, y1]| [[x0, y0], [x1, y1]]).collect())
    }

    fn has_chosen_geometry(&self) -> bool {
        match &self.rows {
            Rows::Csv(_) => false,
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.has_chosen_geometry(),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        Table::read_stream(text.as_bytes(), "t.csv").unwrap()
    }

    fn refused(text: &str) -> String {
        let table = table(text);
        table.box_columns(None).and_then(|columns| table.boxes(columns)).unwrap_err().to_string()
    }

    #[test]
    fn boxes_in_columns() {
        let named = table("YMAX,xmin,id,Xmax,ymin,x2\n4,1,9,2,3,5\n-1.5,0,8,0, -1.5 ,6\n");
        let columns = named.box_columns(None).unwrap();
        assert_eq!(columns, BoxColumns::Corners([1, 4, 3, 0]));
        assert_eq!(named.boxes(columns).unwrap(), [[[1.0, 3.0], [2.0, 4.0]], [[0.0, -1.5], [0.0, -1.5]]]);
        let columns = named.box_columns(Some(["xmin", "ymin", "X2", "ymax"])).unwrap();
        assert_eq!(named.boxes(columns).unwrap()[1], [[0.0, -1.5], [6.0, -1.5]]);
        assert!(table("xmin,ymin,xmax,ymax\n").boxes(BoxColumns::Corners([0, 1, 2, 3])).unwrap().is_empty());
        let error = named.boxes(BoxColumns::Geometries(0)).unwrap_err().to_string();
        assert!(
            error.starts_with("t.csv:1: column 'YMAX': a CSV file has no geometries as bytes"),
            "{error}"
        );
    }

    #[test]
    fn errors_name_line_and_column() {
        assert_eq!(
            refused("xmin,ymin,xmax\n0,0,1\n"),
            "t.csv:1: no columns for boxes (xmin, ymin, xmax, ymax); the columns are: xmin, ymin, xmax"
        );
        assert_eq!(
            refused("xmin,ymin,xmax,ymax\n0,0,1,1\n170,0,-170,1\n"),
            "t.csv:3: column 'xmax': -170 is less than 170 in column 'xmin'; split a box over the date line in two"
        );
        assert_eq!(
            refused("xmin,ymin,xmax,ymax\n0,2,1,1\n"),
            "t.csv:2: column 'ymax': 1 is less than 2 in column 'ymin'"
        );
        for (value, reason) in [
            ("", "empty; expected a number"),
            ("nan", "NaN is not a finite number"),
            ("-inf", "-inf is not a finite number"),
            ("west", "'west' is not a number"),
        ] {
            let error = refused(&format!("xmin,ymin,xmax,ymax\n0,0,1,1\n{value},0,1,1\n"));
            assert_eq!(error, format!("t.csv:3: column 'xmin': {reason}"));
        }
        let error = table("a,b\n").box_columns(Some(["a", "b", "c", "d"])).unwrap_err().to_string();
        assert!(error.contains("no column 'c'"), "{error}");
    }
}
