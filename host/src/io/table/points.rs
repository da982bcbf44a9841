//! The points of a table: the columns that hold them, and their values.

use super::{Check, Present, Rows, Table, finite, latitude, longitude, present};
use crate::error::Result;
use crate::point::LonLat;

/// Column names in order of preference; case is ignored.
const LON: [&str; 5] = ["lon", "lng", "long", "longitude", "x"];
const LAT: [&str; 3] = ["lat", "latitude", "y"];
const X: [&str; 1] = ["x"];
const Y: [&str; 1] = ["y"];

/// Checks of longitudes and latitudes.
const DEGREES: [Check; 2] = [longitude, latitude];

/// The columns that hold the points of a table. [`Table::place_columns`] and [`Table::point_columns`] find them.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("cities.csv");
/// use kauri::io::{PointColumns, Table};
///
/// std::fs::write(&path, "lat,name,lon\n59.33,Stockholm,18.07\n").unwrap();
/// let columns = Table::read(&path)?.place_columns(None, None)?;
/// assert_eq!(columns, PointColumns::Coordinates([2, 0]));
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PointColumns {
    /// The column of x coordinates or longitudes, and the column of y coordinates or latitudes.
    Coordinates([usize; 2]),
    /// One column of points in well-known binary (OGC 06-103r4).
    Geometries(usize),
}

impl Table {
    /// Returns the columns of the places: the given names, else the points of a GeoParquet file, else columns with
    /// common names.
    ///
    /// # Errors
    /// [`Error::InvalidFile`](crate::Error::InvalidFile) if there are none, and for geometries that are not points in longitudes and
    /// latitudes (OGC:CRS84, EPSG:4326).
    pub fn place_columns(&self, lon: Option<&str>, lat: Option<&str>) -> Result<PointColumns> {
        #[cfg(feature = "parquet")]
        if let (None, None, Rows::Parquet(parquet)) = (lon, lat, &self.rows)
            && let Some(columns) = parquet.place_columns(&self.source)?
        {
            return Ok(columns);
        }
        let lon = self.named(lon, &LON, "longitude")?;
        Ok(PointColumns::Coordinates([lon, self.named(lat, &LAT, "latitude")?]))
    }

    /// Returns the columns of points of the plane: the given names, else the points of a GeoParquet file in any reference system, else the
    /// columns named `x` and `y`.
    ///
    /// # Errors
    /// [`Error::InvalidFile`](crate::Error::InvalidFile) if there are none, and for geometries that are not points.
    pub fn point_columns(&self, x: Option<&str>, y: Option<&str>) -> Result<PointColumns> {
        #[cfg(feature = "parquet")]
        if let (None, None, Rows::Parquet(parquet)) = (x, y, &self.rows)
            && let Some(columns) = parquet.point_columns(&self.source)?
        {
            return Ok(columns);
        }
        let x = self.named(x, &X, "x coordinates")?;
        Ok(PointColumns::Coordinates([x, self.named(y, &Y, "y coordinates")?]))
    }

    /// Returns the column with the given name, or else with one of these names.
    fn named(&self, given: Option<&str>, names: &[&str], what: &str) -> Result<usize> {
        match given {
            Some(name) => self.column(name),
            None => self.find(names).ok_or_else(|| {
                self.missing_column(&format!("no column for the {what} ({})", names.join(", ")))
            }),
        }
    }

    /// Reads the places of these columns.
    ///
    /// # Errors
    /// [`Error::InvalidFile`](crate::Error::InvalidFile), with row and column, for missing values, values that are no number or point, and
    /// values out of the range of [`LonLat`]; [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn places(&self, columns: PointColumns) -> Result<Vec<LonLat>> {
        Ok(places(self.all_points(columns, DEGREES, false)?))
    }

    /// Reads the places of the rows that have one: rows with an empty field, a null or an empty point are left out.
    ///
    /// # Errors
    /// Errors of [`places`](Self::places) for values that are not missing.
    pub fn present_places(&self, columns: PointColumns) -> Result<Present<LonLat>> {
        let Present { items, rows } = present(self.all_points(columns, DEGREES, true)?, is_missing)?;
        Ok(Present { items: places(items), rows })
    }

    /// Reads the points of these columns, in any units.
    ///
    /// # Errors
    /// [`Error::InvalidFile`](crate::Error::InvalidFile), with row and column, for missing values and values that are no finite number or
    /// point; [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn points(&self, columns: PointColumns) -> Result<Vec<[f64; 2]>> {
        self.all_points(columns, [finite; 2], false)
    }

    /// Reads the points of the rows that have one, as [`present_places`](Self::present_places).
    ///
    /// # Errors
    /// Errors of [`points`](Self::points) for values that are not missing.
    pub fn present_points(&self, columns: PointColumns) -> Result<Present<[f64; 2]>> {
        present(self.all_points(columns, [finite; 2], true)?, is_missing)
    }

    /// Reads the points of all rows. A missing point has NaN.
    fn all_points(
        &self,
        columns: PointColumns,
        checks: [Check; 2],
        may_be_missing: bool,
    ) -> Result<Vec<[f64; 2]>> {
        match (columns, &self.rows) {
            (PointColumns::Coordinates(columns), _) => self.coordinates(columns, checks, may_be_missing),
            (PointColumns::Geometries(column), Rows::Csv(csv)) => {
                Err(self.source.invalid(csv.header(), Some(&self.columns()[column]), NO_BYTES))
            }
            #[cfg(feature = "parquet")]
            (PointColumns::Geometries(column), Rows::Parquet(parquet)) => {
                parquet.points(&self.source, column, checks, may_be_missing)
            }
        }
    }
}

/// The reason why a column of a CSV file has no geometries.
pub(super) const NO_BYTES: &str =
    "a CSV file has no geometries as bytes; give columns of coordinates, or a Parquet file";

fn is_missing(point: &[f64; 2]) -> bool {
    point.iter().any(|x| x.is_nan())
}

fn places(points: Vec<[f64; 2]>) -> Vec<LonLat> {
    // In place: both types have equal sizes.
    points.into_iter().map(|[lon, lat]| LonLat::new(lon, lat)).collect()
}
