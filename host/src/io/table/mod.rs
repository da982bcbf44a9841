//! Tables in CSV and Parquet files.

mod boxes;
mod csv;
#[cfg(feature = "parquet")]
mod decode_error;
#[cfg(feature = "parquet")]
mod geo;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod values;
#[cfg(feature = "parquet")]
mod wkb;
#[cfg(feature = "parquet")]
mod write;

pub use boxes::BoxColumns;
#[cfg(feature = "parquet")]
pub(crate) use geo::metadata as geo_metadata;
#[cfg(feature = "parquet")]
pub(crate) use values::Values;
#[cfg(feature = "parquet")]
pub(crate) use write::{Column, ParquetWriter};

use ::csv::ByteRecord;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use self::csv::Csv;
use crate::error::{Error, FileLocation, Result};
use crate::point::LonLat;

/// Column names in order of preference; case is ignored.
const LON: [&str; 5] = ["lon", "lng", "long", "longitude", "x"];
const LAT: [&str; 3] = ["lat", "latitude", "y"];
/// The first bytes of Parquet files.
const PARQUET: [u8; 4] = *b"PAR1";

/// A table in a CSV or Parquet file, whose columns are read on demand as numbers, places or text.
///
/// | file | contents | memory |
/// |---|---|---|
/// | CSV | a header line, and fields separated by commas, semicolons or tabs: the separator that splits the header into the most fields; UTF-8 with or without a byte order mark, any line ends, fields in quotes where necessary, blank lines skipped | the file's bytes, and 8 per row |
/// | Parquet, with the feature `parquet` | all columns that are not within lists or maps, fields of structs by their paths, as `bbox.xmin`; uncompressed, or compressed by Snappy, zstd or gzip | the footer, and a column while it is read |
///
/// Places are in two columns of degrees, or in the points of a GeoParquet file. Boxes are in four columns, or in the geometries of a
/// GeoParquet file.
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

/// The columns that hold the places of a table. [`Table::place_columns`] finds them.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("cities.csv");
/// use kauri::io::{PlaceColumns, Table};
///
/// std::fs::write(&path, "lat,name,lon\n59.33,Stockholm,18.07\n").unwrap();
/// let columns = Table::read(&path)?.place_columns(None, None)?;
/// assert_eq!(columns, PlaceColumns::LonLat { lon: 2, lat: 0 });
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlaceColumns {
    /// Two columns of degrees.
    LonLat {
        /// The column of longitudes.
        lon: usize,
        /// The column of latitudes.
        lat: usize,
    },
    /// One column of points in well-known binary (OGC 06-103r4).
    Points(usize),
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
        let path = path.as_ref();
        let io_error = |source| Error::Io { path: path.into(), source };
        let mut file = File::open(path).map_err(io_error)?;
        let mut bytes = Vec::new();
        file.by_ref().take(PARQUET.len() as u64).read_to_end(&mut bytes).map_err(io_error)?;
        if bytes == PARQUET {
            return Self::from_parquet(path, file);
        }
        file.read_to_end(&mut bytes).map_err(io_error)?;
        Self::from_csv(path, bytes)
    }

    pub(super) fn from_csv(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        let (csv, source) = Csv::new(path, bytes)?;
        Ok(Self { source, rows: Rows::Csv(csv) })
    }

    #[cfg(feature = "parquet")]
    fn from_parquet(path: &Path, file: File) -> Result<Self> {
        let (parquet, source) = parquet::Parquet::new(path, file)?;
        Ok(Self { source, rows: Rows::Parquet(parquet) })
    }

    #[cfg(not(feature = "parquet"))]
    fn from_parquet(path: &Path, _: File) -> Result<Self> {
        let what = "a Parquet file, which kauri reads if it is built with the feature `parquet`".to_owned();
        Err(Error::InvalidFile { path: path.into(), location: FileLocation::Whole, column: None, what })
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

    /// Returns the columns of the places: the given names, else the points of a GeoParquet file, else columns with
    /// common names.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if there are none, and for geometries that are not points in longitudes and latitudes
    /// (OGC:CRS84, EPSG:4326).
    pub fn place_columns(&self, lon: Option<&str>, lat: Option<&str>) -> Result<PlaceColumns> {
        #[cfg(feature = "parquet")]
        if let (None, None, Rows::Parquet(parquet)) = (lon, lat, &self.rows)
            && let Some(columns) = parquet.points(&self.source)?
        {
            return Ok(columns);
        }
        let need = |given: Option<&str>, names: &[&str], what: &str| match given {
            Some(name) => self.column(name),
            None => self.find(names).ok_or_else(|| {
                self.missing_column(&format!("no column for the {what} ({})", names.join(", ")))
            }),
        };
        Ok(PlaceColumns::LonLat { lon: need(lon, &LON, "longitude")?, lat: need(lat, &LAT, "latitude")? })
    }

    /// Reads the places of these columns.
    ///
    /// # Errors
    /// [`Error::InvalidFile`], with row and column, for missing values, values that are no number or point, and values
    /// out of the range of [`LonLat`]; [`Error::OutOfMemory`].
    pub fn places(&self, columns: PlaceColumns) -> Result<Vec<LonLat>> {
        match &self.rows {
            Rows::Csv(csv) => csv.places(&self.source, columns),
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.places(&self.source, columns),
        }
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

    /// Returns the rows as text. For a Parquet file this reads all columns.
    ///
    /// # Errors
    /// Errors of [`texts`](Self::texts).
    pub fn rows(&self) -> Result<TableRows<'_>> {
        Ok(TableRows(match &self.rows {
            Rows::Csv(csv) => Texts::Csv(csv),
            #[cfg(feature = "parquet")]
            Rows::Parquet(_) => Texts::Values(self.values()?),
        }))
    }

    /// Calls `visit` with the fields of each row, in order. For a Parquet file this reads all columns.
    pub(super) fn each_row(&self, mut visit: impl FnMut(&ByteRecord) -> Result<()>) -> Result<()> {
        match &self.rows {
            Rows::Csv(csv) => csv.each(|_, record| visit(record)),
            #[cfg(feature = "parquet")]
            Rows::Parquet(_) => {
                let (columns, mut record) = (self.values()?, ByteRecord::new());
                (0..self.len()).try_for_each(|row| {
                    record.clear();
                    columns.iter().for_each(|values| record.push_field(values.text(row).as_bytes()));
                    visit(&record)
                })
            }
        }
    }

    /// Reads the values of all columns, with their types. A column of a CSV file has the type of all its fields.
    #[cfg(feature = "parquet")]
    pub(crate) fn values(&self) -> Result<Vec<Values>> {
        match &self.rows {
            Rows::Csv(csv) => (0..self.columns().len()).map(|column| csv.values(column)).collect(),
            Rows::Parquet(parquet) => {
                (0..self.columns().len()).map(|column| parquet.values(&self.source, column)).collect()
            }
        }
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

/// The rows of a [`Table`] as text, in any order. [`Table::rows`] returns it.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("cities.csv");
/// std::fs::write(&path, "name,lon\nStockholm,18.07\nHelsinki,24.94\n").unwrap();
/// let table = kauri::io::Table::read(&path)?;
/// assert_eq!(table.rows()?.row(1), ["Helsinki", "24.94"]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Debug)]
pub struct TableRows<'a>(Texts<'a>);

#[derive(Debug)]
enum Texts<'a> {
    Csv(&'a Csv),
    #[cfg(feature = "parquet")]
    Values(Vec<Values>),
}

impl TableRows<'_> {
    /// Returns the fields of a row.
    ///
    /// # Panics
    /// Panics if the row does not exist.
    pub fn row(&self, row: usize) -> Vec<String> {
        match &self.0 {
            Texts::Csv(csv) => csv.row(row),
            #[cfg(feature = "parquet")]
            Texts::Values(columns) => columns.iter().map(|values| values.text(row)).collect(),
        }
    }
}

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
