//! Tables of places given by longitude and latitude.

use std::path::Path;

use super::table::Table;
use crate::error::Result;
use crate::point::LonLat;

/// Column names in order of preference; case is ignored.
const NAME: [&str; 1] = ["name"];
const CODE: [&str; 2] = ["iata", "code"];

/// Places read from a table, in row order. [`read_lonlat`] returns it.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("airports.csv");
/// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
///
/// std::fs::write(&path, "iata,lon,lat\nARN,17.92,59.65\nHEL,24.96,60.32\n").unwrap();
/// let airports = kauri::io::read_lonlat(&path)?;
/// let tree = KdTree::build(&Device::cpu(), &airports.points, &KdTreeOptions::default())?;
/// let nearest = tree.nearest(&[kauri::LonLat::new(24.94, 60.17)], 1)?;
/// assert_eq!(airports.codes.unwrap()[nearest.ids()[0] as usize], "HEL");
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LonLatTable {
    /// The coordinates of the places.
    pub points: Vec<LonLat>,
    /// The names, if there is a column `name`.
    pub names: Option<Vec<String>>,
    /// The codes, if there is a column `iata` or `code`.
    pub codes: Option<Vec<String>>,
}

/// Reads the places of a CSV, Parquet or GeoParquet file (see [`Table`]).
///
/// Columns are found by name, ignoring case: `lon`, `lng`, `long`, `longitude` or `x`, and `lat`, `latitude` or `y`, in
/// degrees; `name`, and `iata` or `code` are optional; other columns are ignored. A GeoParquet file gives its points.
/// The table may have no rows.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("kauri-places-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("cities.csv");
/// std::fs::write(&path, "name,lon,lat\nStockholm,18.07,59.33\nHelsinki,24.94,60.17\n").unwrap();
/// let table = kauri::io::read_lonlat(&path)?;
/// assert_eq!(table.points[1], kauri::LonLat::new(24.94, 60.17));
/// assert_eq!(table.names.unwrap(), ["Stockholm", "Helsinki"]);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// # Errors
/// Errors of [`Table::read`], [`Table::place_columns`] and [`Table::places`].
pub fn read_lonlat(path: impl AsRef<Path>) -> Result<LonLatTable> {
    from_table(&Table::read(path)?)
}

fn from_table(table: &Table) -> Result<LonLatTable> {
    let points = table.places(table.place_columns(None, None)?)?;
    let texts = |names: &[&str]| table.find(names).map(|column| table.texts(column)).transpose();
    Ok(LonLatTable { points, names: texts(&NAME)?, codes: texts(&CODE)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<LonLatTable> {
        from_table(&Table::read_stream(text.as_bytes(), "t.csv")?)
    }

    fn refused(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn columns_by_name() {
        let table =
            read("\u{feff}Name,LAT,\"Longitude\"\r\n\"a, \"\"b\"\"\",1,2\r\n\r\nc,-3, 4e0 \r\n").unwrap();
        assert_eq!(table.points, [LonLat::new(2.0, 1.0), LonLat::new(4.0, -3.0)]);
        assert_eq!(table.names.unwrap(), ["a, \"b\"", "c"]);
        assert!(table.codes.is_none());
        assert_eq!(read("x,lon,y\n9,1,2").unwrap().points, [LonLat::new(1.0, 2.0)]);
        assert!(read("lon,lat\n").unwrap().points.is_empty());
    }

    #[test]
    fn errors_name_line_and_column() {
        assert_eq!(refused(""), "t.csv:1: the file is empty; expected a header");
        assert!(refused("a,b\n1,2\n").contains("the columns are: a, b"));
        assert!(refused("lon,b\n1,2\n").contains("no column for the latitude (lat, latitude, y)"));
        assert_eq!(refused("lon,lat\n1,2\n1,north\n"), "t.csv:3: column 'lat': 'north' is not a number");
        assert_eq!(
            refused("lon,lat\r\n1,2\r\n1,91\r\n"),
            "t.csv:3: column 'lat': latitude 91 is not within ±90 degrees"
        );
        assert!(refused("lon,lat\n-360.5,0").starts_with("t.csv:2: column 'lon': longitude -360.5"));
        assert_eq!(refused("LON,lat\nnan,2\n"), "t.csv:2: column 'LON': NaN is not a finite number");
        assert!(refused("lon,lat\n1,-inf\n").contains("-inf is not a finite number"));
        assert_eq!(refused("lon,lat\n,2\n"), "t.csv:2: column 'lon': empty; expected a number");
        assert_eq!(
            refused("name,lon,lat\na,1\n"),
            "t.csv:2: column 'lat': missing: the row has 2 of 3 fields"
        );
        assert_eq!(refused("lon,lat\n1,2,3\n"), "t.csv:2: the row has 3 fields, the header 2");
    }

    #[test]
    fn lines_are_counted_right() {
        assert!(refused("name,lon,lat\n\"two\nlines\",1,2\nb,1,x\n").starts_with("t.csv:4:"));
        assert!(refused("name,lon,lat\r\n\"two\r\nlines\",1,2\r\n\r\n\r\nb,1,x\r\n").starts_with("t.csv:6:"));
        assert!(refused("lon,lat\r1,2\r1,x\r").starts_with("t.csv:3:"));
        assert!(refused("\n\nlon,lat\n\n1,x\n").starts_with("t.csv:5:"));
    }
}
