//! Tables with any columns: CSV and Parquet files.

mod csv;
#[cfg(feature = "parquet")]
mod geo;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod values;
#[cfg(feature = "parquet")]
mod write;

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
use crate::error::{Error, Result, TablePlace};
use crate::point::LonLat;

/// Names of columns, best first; case does not matter.
const LON: [&str; 5] = ["lon", "lng", "long", "longitude", "x"];
const LAT: [&str; 3] = ["lat", "latitude", "y"];
/// What Parquet files begin with.
const PARQUET: [u8; 4] = *b"PAR1";

/// A table of a file, whose columns are read as numbers, places or text when they are asked for.
///
/// | file | what it is | memory |
/// |---|---|---|
/// | CSV | a header line; UTF-8 with or without a byte order mark, any line ends, fields in quotes where they need them, blank lines skipped | the file's bytes, and 8 a row |
/// | Parquet, with the feature `parquet` | all columns that are not within lists or maps, those within structs by their paths, as `bbox.xmin`; plain, or compressed by Snappy, zstd or gzip | its footer, and the columns that are read while they are |
///
/// Places are in two columns of degrees, or in the points of a GeoParquet file.
///
/// Any bytes are read or refused. Lengths in a Parquet file are checked before the decoder or an allocation relies on them. Should the
/// decoder panic in spite of that, it is an [`Error::Table`] too and prints nothing: for this the first Parquet file that is read puts a panic
/// hook before the one that the process has, which leaves all other panics to that one. Where panics abort (`panic = "abort"`), that is
/// the end of the process.
#[derive(Clone, Debug)]
pub struct Table {
    path: PathBuf,
    columns: Vec<String>,
    rows: Rows,
}

#[derive(Clone, Debug)]
enum Rows {
    Csv(Csv),
    #[cfg(feature = "parquet")]
    Parquet(parquet::Parquet),
}

/// The columns that have the places of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlaceColumns {
    /// Degrees.
    LonLat {
        /// The column of longitudes.
        lon: usize,
        /// The column of latitudes.
        lat: usize,
    },
    /// Points as well-known binary.
    Points(usize),
}

/// The numbers of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// All of them are integers.
    Integers(Vec<i64>),
    /// Some are not.
    Floats(Vec<f64>),
}

impl Numbers {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(integers) => integers.len(),
            Self::Floats(floats) => floats.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them as floats, integers rounded.
    pub fn into_floats(self) -> Vec<f64> {
        match self {
            Self::Integers(integers) => integers.into_iter().map(|integer| integer as f64).collect(),
            Self::Floats(floats) => floats,
        }
    }
}

impl Table {
    /// Opens a file, of whichever form its first bytes are.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read; [`Error::Table`] for an empty file, for a row of a CSV file with too few or too many fields, with
    /// its line, for a Parquet file whose footer is broken, and for any Parquet file without the feature `parquet`.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let of_path = |source| Error::Io { path: path.into(), source };
        let mut file = File::open(path).map_err(of_path)?;
        let mut bytes = Vec::new();
        file.by_ref().take(PARQUET.len() as u64).read_to_end(&mut bytes).map_err(of_path)?;
        if bytes == PARQUET {
            return Self::of_parquet(path, file);
        }
        file.read_to_end(&mut bytes).map_err(of_path)?;
        Self::of_csv(path, bytes)
    }

    pub(super) fn of_csv(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        let (csv, columns) = Csv::new(path, bytes)?;
        Ok(Self { path: path.into(), columns, rows: Rows::Csv(csv) })
    }

    #[cfg(feature = "parquet")]
    fn of_parquet(path: &Path, file: File) -> Result<Self> {
        let (parquet, columns) = parquet::Parquet::new(path, file)?;
        Ok(Self { path: path.into(), columns, rows: Rows::Parquet(parquet) })
    }

    #[cfg(not(feature = "parquet"))]
    fn of_parquet(path: &Path, _: File) -> Result<Self> {
        let what = "a Parquet file, which kauri reads if it is built with the feature `parquet`".to_owned();
        Err(Error::Table { path: path.into(), place: TablePlace::Whole, column: None, what })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match &self.rows {
            Rows::Csv(csv) => csv.len(),
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.len(),
        }
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The columns of a Parquet file that are within lists or maps: they are not read, and not among [`columns`](Self::columns).
    pub fn nested_columns(&self) -> &[String] {
        match &self.rows {
            Rows::Csv(_) => &[],
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.nested(),
        }
    }

    /// The column of a name, in any case.
    ///
    /// # Errors
    /// [`Error::Table`], with the names that there are.
    pub fn column(&self, name: &str) -> Result<usize> {
        self.find(&[name]).ok_or_else(|| self.without(&format!("no column '{name}'")))
    }

    /// The first column of one of these names, the best first, in any case.
    pub fn find(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|wanted| self.columns.iter().position(|name| name.eq_ignore_ascii_case(wanted)))
    }

    /// The columns of places: those of the given names, else the points of a GeoParquet file, else columns of names that say so.
    ///
    /// # Errors
    /// [`Error::Table`] if there are none, and for geometries that are no points or not in longitudes and latitudes (OGC:CRS84, EPSG:4326).
    pub fn place_columns(&self, lon: Option<&str>, lat: Option<&str>) -> Result<PlaceColumns> {
        #[cfg(feature = "parquet")]
        if let (None, None, Rows::Parquet(parquet)) = (lon, lat, &self.rows)
            && let Some(columns) = parquet.points(&self.path, &self.columns)?
        {
            return Ok(columns);
        }
        let need = |given: Option<&str>, names: &[&str], what: &str| match given {
            Some(name) => self.column(name),
            None => self
                .find(names)
                .ok_or_else(|| self.without(&format!("no column for the {what} ({})", names.join(", ")))),
        };
        Ok(PlaceColumns::LonLat { lon: need(lon, &LON, "longitude")?, lat: need(lat, &LAT, "latitude")? })
    }

    /// The places of these columns.
    ///
    /// # Errors
    /// [`Error::Table`] with place and column for what is missing, no number, no point, or out of the range of [`LonLat`];
    /// [`Error::OutOfMemory`].
    pub fn places(&self, columns: PlaceColumns) -> Result<Vec<LonLat>> {
        match &self.rows {
            Rows::Csv(csv) => csv.places(&self.path, &self.columns, columns),
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.places(&self.path, &self.columns, columns),
        }
    }

    /// The numbers of a column.
    ///
    /// # Errors
    /// [`Error::Table`] with place and column for what is no finite number; [`Error::OutOfMemory`].
    pub fn numbers(&self, column: usize) -> Result<Numbers> {
        match &self.rows {
            Rows::Csv(csv) => csv.numbers(&self.path, &self.columns, column),
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => {
                let values = parquet.values(&self.path, &self.columns, column)?;
                values.numbers().map_err(|refused| refused.of(&self.path, &self.columns[column]))
            }
        }
    }

    /// The texts of a column, without blanks around them; a null is an empty one, bytes are in hexadecimal digits.
    ///
    /// # Errors
    /// [`Error::Table`] for a Parquet file that is broken; [`Error::OutOfMemory`].
    pub fn texts(&self, column: usize) -> Result<Vec<String>> {
        let mut texts = crate::memory::vec_with_capacity(self.len(), "texts of a table")?;
        match &self.rows {
            Rows::Csv(csv) => csv.each(|_, record| {
                let text = String::from_utf8_lossy(&record[column]);
                texts.push(crate::memory::copy_of_text(text.trim(), "texts of a table")?);
                Ok(())
            })?,
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => {
                let values = parquet.values(&self.path, &self.columns, column)?;
                crate::memory::check(values.bytes_of_texts(), "texts of a table")?;
                texts.extend((0..self.len()).map(|row| values.text(row).trim().to_owned()));
            }
        }
        Ok(texts)
    }

    /// The rows as text, in any order. Of a Parquet file all columns are read.
    ///
    /// # Errors
    /// Those of [`texts`](Self::texts).
    pub fn rows(&self) -> Result<TableRows<'_>> {
        Ok(TableRows(match &self.rows {
            Rows::Csv(csv) => Texts::Csv(csv),
            #[cfg(feature = "parquet")]
            Rows::Parquet(_) => Texts::Values(self.values()?),
        }))
    }

    /// Calls `look` with the fields of each row, in order. Of a Parquet file all columns are read.
    pub(super) fn each_row(&self, mut look: impl FnMut(&ByteRecord) -> Result<()>) -> Result<()> {
        match &self.rows {
            Rows::Csv(csv) => csv.each(|_, record| look(record)),
            #[cfg(feature = "parquet")]
            Rows::Parquet(_) => {
                let (columns, mut record) = (self.values()?, ByteRecord::new());
                (0..self.len()).try_for_each(|row| {
                    record.clear();
                    columns.iter().for_each(|values| record.push_field(values.text(row).as_bytes()));
                    look(&record)
                })
            }
        }
    }

    /// The values of all columns, of the types that they have; of a CSV file those that all their fields are of.
    #[cfg(feature = "parquet")]
    pub(crate) fn values(&self) -> Result<Vec<Values>> {
        match &self.rows {
            Rows::Csv(csv) => csv.values(self.columns.len()),
            Rows::Parquet(parquet) => (0..self.columns.len())
                .map(|column| parquet.values(&self.path, &self.columns, column))
                .collect(),
        }
    }

    /// An error of a table without a column that is asked for.
    fn without(&self, what: &str) -> Error {
        let place = match &self.rows {
            Rows::Csv(csv) => TablePlace::Line(csv.header()),
            #[cfg(feature = "parquet")]
            Rows::Parquet(_) => TablePlace::Whole,
        };
        let what = format!("{what}; the columns are: {}", self.columns.join(", "));
        Error::Table { path: self.path.clone(), place, column: None, what }
    }
}

/// The rows of a [`Table`] as text.
#[derive(Debug)]
pub struct TableRows<'a>(Texts<'a>);

#[derive(Debug)]
enum Texts<'a> {
    Csv(&'a Csv),
    #[cfg(feature = "parquet")]
    Values(Vec<Values>),
}

impl TableRows<'_> {
    /// The fields of a row.
    ///
    /// # Panics
    /// If there are not that many rows.
    pub fn row(&self, row: usize) -> Vec<String> {
        match &self.0 {
            Texts::Csv(csv) => csv.row(row),
            #[cfg(feature = "parquet")]
            Texts::Values(columns) => columns.iter().map(|values| values.text(row)).collect(),
        }
    }
}

/// A finite number, or why it is refused.
fn finite(value: f64) -> Result<f64, String> {
    if value.is_finite() { Ok(value) } else { Err(format!("{value} is not a finite number")) }
}

/// Degrees within the range of places, or why they are refused.
fn longitude(value: f64) -> Result<f64, String> {
    degrees(value, "longitude", LonLat::MAX_LON)
}

/// The same.
fn latitude(value: f64) -> Result<f64, String> {
    degrees(value, "latitude", LonLat::MAX_LAT)
}

fn degrees(value: f64, what: &str, limit: f64) -> Result<f64, String> {
    match finite(value)? {
        value if value.abs() <= limit => Ok(value),
        value => Err(format!("{what} {value} is not within ±{limit} degrees")),
    }
}
