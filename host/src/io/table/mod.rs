//! Tables in CSV and Parquet files.

mod boxes;
mod csv;
#[cfg(feature = "parquet")]
mod geo;
mod input;
#[cfg(feature = "parquet")]
mod parquet;
mod points;
mod rows;
#[cfg(feature = "parquet")]
mod values;
#[cfg(feature = "parquet")]
mod wkb;
#[cfg(feature = "parquet")]
mod write;

pub use boxes::BoxColumns;
#[cfg(feature = "parquet")]
pub(crate) use geo::metadata as geo_metadata;
pub use points::PointColumns;
#[cfg(feature = "parquet")]
pub(crate) use rows::TypedRows;
#[cfg(feature = "parquet")]
pub(crate) use values::Values;
#[cfg(feature = "parquet")]
pub(crate) use write::{Column, ParquetWriter};

use std::io::Read;
use std::path::{Path, PathBuf};

use self::csv::Csv;
use self::input::Input;
use crate::error::{Error, FileLocation, Result};
use crate::memory;
use crate::point::LonLat;

/// No row: the right row in a pair of a left row that has no match.
pub const NO_ROW: u32 = u32::MAX;
/// The first bytes of Parquet files.
const PARQUET: [u8; 4] = *b"PAR1";

/// A table in a CSV or Parquet file, whose columns are read on demand as numbers, places or text.
///
/// | file | contents | memory |
/// |---|---|---|
/// | CSV | a header line, and fields separated by commas, semicolons or tabs: the separator that splits the header into the most fields; UTF-8 with or without a byte order mark, any line ends, fields in quotes where necessary, blank lines skipped | 8 bytes per row |
/// | Parquet, with the feature `parquet` | all columns that are not within lists or maps, fields of structs by their paths, as `bbox.xmin`; uncompressed, or compressed by Snappy, zstd or gzip | the footer, and a column while it is read |
///
/// The file stays open, and is read again for each column and for the rows of [pairs](super::PairTable); if its length or its time of
/// change differs then, that is an error. A pipe is first copied to a temporary file.
///
/// Places and points are in two columns of coordinates, or in the points of a GeoParquet file. Boxes are in four columns, or in the
/// geometries of a GeoParquet file.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("kauri-table-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("cities.csv");
/// use kauri::io::{Numbers, Table};
///
/// std::fs::write(&path, "name,lon,lat,inhabitants\nStockholm,18.07,59.33,990000\n").unwrap();
/// let table = Table::read(&path)?;
/// let inhabitants = table.numbers(table.column("inhabitants")?)?;
/// assert_eq!(inhabitants, Numbers::Integers(vec![990_000]));
/// let places = table.places(table.place_columns(None, None)?)?;
/// assert_eq!(places[0].lat, 59.33);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// Invalid bytes give an error. Lengths in a Parquet file are checked before the decoder or an allocation uses them. If
/// the decoder panics nevertheless, that is an [`Error::InvalidFile`] too, and nothing is printed: the first Parquet
/// file that is read installs a panic hook in front of the process's own hook, which still gets all other panics. With
/// `panic = "abort"` such a panic ends the process.
#[derive(Clone, Debug)]
pub struct Table {
    source: Source,
    rows: Rows,
}

/// The file of a table and the names of its columns, which errors name.
#[derive(Clone, Debug)]
struct Source {
    path: PathBuf,
    columns: Vec<String>,
}

impl Source {
    /// Returns the error of invalid content.
    fn invalid(&self, location: FileLocation, column: Option<&str>, what: impl Into<String>) -> Error {
        let (path, column) = (self.path.clone(), column.map(str::to_owned));
        Error::InvalidFile { path, location, column, what: what.into() }
    }

    /// Returns the error of invalid content in a column.
    fn invalid_cell(&self, location: FileLocation, column: usize, what: impl Into<String>) -> Error {
        self.invalid(location, Some(&self.columns[column]), what)
    }
}

#[derive(Clone, Debug)]
enum Rows {
    Csv(Csv),
    #[cfg(feature = "parquet")]
    Parquet(parquet::Parquet),
}

/// The items in the rows of a table that have one, in row order.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("wells.csv");
/// std::fs::write(&path, "x,y\n1,2\n,\n5,6\n").unwrap();
/// let table = kauri::io::Table::read(&path)?;
/// let columns = table.point_columns(None, None)?;
/// assert!(table.points(columns).is_err());
/// let points = table.present_points(columns)?;
/// assert_eq!((points.items, points.rows), (vec![[1.0, 2.0], [5.0, 6.0]], vec![0, 2]));
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Present<T> {
    /// The items.
    pub items: Vec<T>,
    /// The row of each item.
    pub rows: Vec<u32>,
}

/// The numbers of a column: integers if all values are integers, else floats.
///
/// ```
/// use kauri::io::Numbers;
///
/// let scores = Numbers::Integers(vec![984_000, 675_000]);
/// assert_eq!(scores.len(), 2);
/// assert_eq!(scores.into_floats(), [984_000.0, 675_000.0]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// Integers.
    Integers(Vec<i64>),
    /// Floats: at least one value is not an integer.
    Floats(Vec<f64>),
}

impl Numbers {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(integers) => integers.len(),
            Self::Floats(floats) => floats.len(),
        }
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Converts to floats, rounding integers.
    pub fn into_floats(self) -> Vec<f64> {
        match self {
            Self::Integers(integers) => integers.into_iter().map(|integer| integer as f64).collect(),
            Self::Floats(floats) => floats,
        }
    }
}

impl Table {
    /// Opens a table. A file that begins with `PAR1` is read as Parquet, any other file as CSV.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read; [`Error::InvalidFile`] for an empty file, for a row of a CSV file with too
    /// few or too many fields, for a Parquet file with a broken footer, and for any Parquet file without the feature
    /// `parquet`.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::new(path.as_ref(), Input::open(path.as_ref())?)
    }

    /// Reads a table from a stream, such as standard input, until its end. The bytes are copied to a temporary file. Messages have `name` in
    /// place of a path.
    ///
    /// # Errors
    /// Errors of [`read`](Self::read).
    pub fn read_stream(mut stream: impl Read, name: impl AsRef<Path>) -> Result<Self> {
        Self::new(name.as_ref(), Input::copied(name.as_ref(), &mut stream)?)
    }

    fn new(path: &Path, input: Input) -> Result<Self> {
        let mut source = Source { path: path.into(), columns: Vec::new() };
        let mut begin = Vec::new();
        let read = input.reader(0).take(PARQUET.len() as u64).read_to_end(&mut begin);
        read.map_err(|error| input.error(error))?;
        let rows = match begin == PARQUET {
            true => parquet_rows(&mut source, &input)?,
            false => Rows::Csv(Csv::new(&mut source, input)?),
        };
        Ok(Self { source, rows })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match &self.rows {
            Rows::Csv(csv) => csv.len(),
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.len(),
        }
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.source.columns
    }

    /// Returns the names of the columns of a Parquet file that are inside lists or maps. These columns cannot be read and
    /// are not in [`columns`](Self::columns).
    pub fn nested_columns(&self) -> &[String] {
        match &self.rows {
            Rows::Csv(_) => &[],
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.nested(),
        }
    }

    /// Returns the reference system (CRS) of the geometries of a GeoParquet file by authority and code, such as `EPSG:25833`, or by its name;
    /// `OGC:CRS84` for all systems of longitudes and latitudes on WGS84. `None` for other files, and if the file does not tell it.
    pub fn reference_system(&self) -> Option<String> {
        match &self.rows {
            Rows::Csv(_) => None,
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.reference_system(&self.source),
        }
    }

    /// Returns true if the geometries of a GeoParquet file are in a projected reference system: one that is neither unknown nor of longitudes
    /// and latitudes in degrees. Such points are read by [`points`](Self::points).
    pub fn is_planar(&self) -> bool {
        match &self.rows {
            Rows::Csv(_) => false,
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.is_planar(&self.source),
        }
    }

    /// Chooses the column of a Parquet file whose geometries are read as places, points or boxes. GeoParquet metadata need not describe it: it
    /// is then in well-known binary, and in an unknown reference system.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if there is no column with this name, and for a CSV file, which has no geometries as bytes.
    pub fn set_geometry(&mut self, name: &str) -> Result<()> {
        let column = self.column(name)?;
        match &mut self.rows {
            Rows::Csv(csv) => Err(self.source.invalid_cell(csv.header(), column, points::NO_BYTES)),
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => {
                parquet.set_geometry(column);
                Ok(())
            }
        }
    }

    /// Returns the column with a name, ignoring case.
    ///
    /// # Errors
    /// [`Error::InvalidFile`], with the names of all columns.
    pub fn column(&self, name: &str) -> Result<usize> {
        self.find(&[name]).ok_or_else(|| self.missing_column(&format!("no column '{name}'")))
    }

    /// Returns the first column with one of these names, in order of preference, ignoring case.
    pub fn find(&self, names: &[&str]) -> Option<usize> {
        let position =
            |preferred: &&str| self.columns().iter().position(|name| name.eq_ignore_ascii_case(preferred));
        names.iter().find_map(position)
    }

    /// Reads the numbers of a column.
    ///
    /// # Errors
    /// [`Error::InvalidFile`], with row and column, for values that are not finite numbers; [`Error::OutOfMemory`].
    pub fn numbers(&self, column: usize) -> Result<Numbers> {
        match &self.rows {
            Rows::Csv(csv) => csv.numbers(&self.source, column),
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.numbers(&self.source, column),
        }
    }

    /// Reads a column as text, without surrounding blanks. A null becomes an empty text, and bytes become hexadecimal
    /// digits.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] for a broken Parquet file; [`Error::OutOfMemory`].
    pub fn texts(&self, column: usize) -> Result<Vec<String>> {
        let mut texts = crate::memory::vec_with_capacity(self.len(), "texts of a table")?;
        match &self.rows {
            Rows::Csv(csv) => csv.each(|_, record| {
                let text = String::from_utf8_lossy(&record[column]);
                texts.push(crate::memory::copy_text(text.trim(), "texts of a table")?);
                Ok(())
            })?,
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => {
                let values = parquet.values(&self.source, column)?;
                crate::memory::check(values.bytes_of_texts(), "texts of a table")?;
                texts.extend((0..self.len()).map(|row| values.text(row).trim().to_owned()));
            }
        }
        Ok(texts)
    }

    /// Reads coordinates. A row without one of its coordinates has NaN.
    fn coordinates<const N: usize>(
        &self,
        columns: [usize; N],
        checks: [Check; N],
        may_be_missing: bool,
    ) -> Result<Vec<[f64; N]>> {
        let mut all = memory::filled(self.len(), [f64::NAN; N], "coordinates of a table")?;
        match &self.rows {
            Rows::Csv(csv) => {
                let mut row = 0;
                csv.each(|start, record| {
                    for ((&column, check), value) in columns.iter().zip(checks).zip(&mut all[row]) {
                        let field = (start, record, column);
                        *value = csv.coordinate(&self.source, field, check, may_be_missing)?;
                    }
                    row += 1;
                    Ok(())
                })?;
            }
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => {
                for (axis, (column, check)) in columns.into_iter().zip(checks).enumerate() {
                    let values = parquet.coordinates(&self.source, column, check, may_be_missing)?;
                    all.iter_mut().zip(values).for_each(|(row, value)| row[axis] = value);
                }
            }
        }
        Ok(all)
    }

    /// Returns the column of geometries in well-known binary that a GeoParquet file has, and the reference system of a GeoParquet file;
    /// `None` is longitudes and latitudes.
    #[cfg(feature = "parquet")]
    pub(crate) fn geometry_column(&self) -> (Option<usize>, Option<serde_json::Value>) {
        match &self.rows {
            Rows::Csv(_) => (None, Some(serde_json::Value::Null)),
            Rows::Parquet(parquet) => parquet.geometry_column(&self.source),
        }
    }

    /// Returns the error of a missing column, with the names of all columns.
    fn missing_column(&self, what: &str) -> Error {
        let location = match &self.rows {
            Rows::Csv(csv) => csv.header(),
            #[cfg(feature = "parquet")]
            Rows::Parquet(_) => FileLocation::Whole,
        };
        let what = format!("{what}; the columns are: {}", self.columns().join(", "));
        self.source.invalid(location, None, what)
    }
}

#[cfg(feature = "parquet")]
fn parquet_rows(source: &mut Source, input: &Input) -> Result<Rows> {
    parquet::Parquet::new(source, input).map(Rows::Parquet)
}

#[cfg(not(feature = "parquet"))]
fn parquet_rows(source: &mut Source, _: &Input) -> Result<Rows> {
    let what = "a Parquet file, which kauri reads if it is built with the feature `parquet`";
    Err(source.invalid(FileLocation::Whole, None, what))
}

/// Leaves out the missing items.
fn present<T: Copy>(mut items: Vec<T>, is_missing: impl Fn(&T) -> bool) -> Result<Present<T>> {
    let mut rows = memory::vec_with_capacity(items.len(), "rows of a table")?;
    rows.extend((0..).zip(&items).filter(|(_, item)| !is_missing(item)).map(|(row, _)| row));
    items.retain(|item| !is_missing(item));
    Ok(Present { items, rows })
}

/// Checks a coordinate, and returns it; the error is the reason why it is refused.
type Check = fn(f64) -> Result<f64, String>;

/// Checks that a number is finite; the error is the reason.
fn finite(value: f64) -> Result<f64, String> {
    if value.is_finite() { Ok(value) } else { Err(format!("{value} is not a finite number")) }
}

/// Checks that a longitude is in range; the error is the reason.
fn longitude(value: f64) -> Result<f64, String> {
    degrees(value, "longitude", LonLat::MAX_LON)
}

/// Checks that a latitude is in range; the error is the reason.
fn latitude(value: f64) -> Result<f64, String> {
    degrees(value, "latitude", LonLat::MAX_LAT)
}

fn degrees(value: f64, what: &str, limit: f64) -> Result<f64, String> {
    match finite(value)? {
        value if value.abs() <= limit => Ok(value),
        value => Err(format!("{what} {value} is not within ±{limit} degrees")),
    }
}
