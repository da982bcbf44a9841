//! CSV tables with any columns, held as bytes: columns are read as numbers, rows as they are.

use csv::ByteRecord;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::point::LonLat;

/// Names of columns, best first; case does not matter.
const LON: [&str; 5] = ["lon", "lng", "long", "longitude", "x"];
const LAT: [&str; 3] = ["lat", "latitude", "y"];

/// A CSV file with a header line.
///
/// UTF-8 with or without a byte order mark, any line ends, fields in quotes where they need them, blank lines skipped. Memory: the
/// file's bytes, and 8 a row.
#[derive(Clone, Debug)]
pub struct Table {
    path: PathBuf,
    bytes: Vec<u8>,
    columns: Vec<String>,
    /// Line of the header.
    header: u64,
    /// Where the record before each row ends.
    starts: Vec<u64>,
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
    /// All of them as floats, integers rounded.
    pub fn into_floats(self) -> Vec<f64> {
        match self {
            Self::Integers(integers) => integers.into_iter().map(|integer| integer as f64).collect(),
            Self::Floats(floats) => floats,
        }
    }
}

impl Table {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read; [`Error::Table`] for an empty file, and with its line for a row with too few or too many
    /// fields.
    pub fn read_csv(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|source| Error::Io { path: path.into(), source })?;
        Self::of(path, bytes)
    }

    pub(super) fn of(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        let mut table = Self { path: path.into(), bytes, columns: Vec::new(), header: 1, starts: Vec::new() };
        let mut starts = Vec::new();
        let mut reader = table.reader(0);
        let mut record = ByteRecord::new();
        if !table.next(&mut reader, &mut record)? {
            return Err(table.error(1, None, "the file is empty; expected a header".into()));
        }
        let name =
            |name: &[u8]| String::from_utf8_lossy(name).trim_start_matches('\u{feff}').trim().to_owned();
        let columns: Vec<String> = record.iter().map(name).collect();
        let header = table.line(record.position().map_or(0, csv::Position::byte));
        while table.next(&mut reader, &mut record)? {
            let start = record.position().map_or(0, csv::Position::byte);
            if record.len() != columns.len() {
                let (expected, got) = (columns.len(), record.len());
                let what = if got < expected {
                    format!("missing: the row has {got} of {expected} fields")
                } else {
                    format!("the row has {got} fields, the header {expected}")
                };
                return Err(table.error(table.line(start), columns.get(got).map(String::as_str), what));
            }
            starts.push(start);
        }
        drop(reader);
        (table.columns, table.header, table.starts) = (columns, header, starts);
        Ok(table)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The column of a name, in any case.
    ///
    /// # Errors
    /// [`Error::Table`], with the names that there are.
    pub fn column(&self, name: &str) -> Result<usize> {
        self.find(&[name]).ok_or_else(|| {
            let text = format!("no column '{name}'; the columns are: {}", self.columns.join(", "));
            self.error(self.header, None, text)
        })
    }

    /// The columns of longitudes and latitudes: those of the given names, or of names that say so.
    ///
    /// # Errors
    /// [`Error::Table`] if there is none.
    pub fn lon_lat_columns(&self, lon: Option<&str>, lat: Option<&str>) -> Result<[usize; 2]> {
        let need = |given: Option<&str>, names: &[&str], what: &str| match given {
            Some(name) => self.column(name),
            None => self.find(names).ok_or_else(|| {
                let (names, found) = (names.join(", "), self.columns.join(", "));
                let text = format!("no column for the {what} ({names}); the columns are: {found}");
                self.error(self.header, None, text)
            }),
        };
        Ok([need(lon, &LON, "longitude")?, need(lat, &LAT, "latitude")?])
    }

    /// The places of these columns.
    ///
    /// # Errors
    /// [`Error::Table`] with line and column for what is no number, or out of the range of [`LonLat`].
    pub fn places(&self, [lon, lat]: [usize; 2]) -> Result<Vec<LonLat>> {
        let mut places = crate::memory::vec_with_capacity(self.len(), "places of a table")?;
        self.each(|start, record| {
            let degrees = |column, what, limit| self.degrees(start, record, column, what, limit);
            let lon = degrees(lon, "longitude", LonLat::MAX_LON)?;
            places.push(LonLat::new(lon, degrees(lat, "latitude", LonLat::MAX_LAT)?));
            Ok(())
        })?;
        Ok(places)
    }

    /// The numbers of a column.
    ///
    /// # Errors
    /// [`Error::Table`] with line and column for what is no finite number.
    pub fn numbers(&self, column: usize) -> Result<Numbers> {
        let mut integers = Some(Vec::with_capacity(self.len()));
        let mut floats = Vec::with_capacity(self.len());
        self.each(|start, record| {
            let text = String::from_utf8_lossy(&record[column]);
            floats.push(self.number(start, column, text.trim())?);
            match (&mut integers, text.trim().parse()) {
                (Some(integers), Ok(integer)) => integers.push(integer),
                _ => integers = None,
            }
            Ok(())
        })?;
        Ok(integers.map_or(Numbers::Floats(floats), Numbers::Integers))
    }

    /// The texts of a column, without blanks around them.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn texts(&self, column: usize) -> Result<Vec<String>> {
        let mut texts = crate::memory::vec_with_capacity(self.len(), "texts of a table")?;
        self.each(|_, record| {
            texts.push(String::from_utf8_lossy(&record[column]).trim().to_owned());
            Ok(())
        })?;
        Ok(texts)
    }

    /// The fields of a row, as text.
    ///
    /// # Panics
    /// If there are not that many rows.
    pub fn row(&self, row: usize) -> Vec<String> {
        let mut record = ByteRecord::new();
        // It has been read before.
        let _ = self.reader(self.starts[row]).read_byte_record(&mut record);
        record.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect()
    }

    /// The first column of one of these names, the best first, in any case.
    pub fn find(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|wanted| self.columns.iter().position(|name| name.eq_ignore_ascii_case(wanted)))
    }

    fn reader(&self, start: u64) -> csv::Reader<&[u8]> {
        let bytes = &self.bytes[start as usize..];
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes)
    }

    /// Reads the next record; false at the end.
    fn next(&self, reader: &mut csv::Reader<&[u8]>, record: &mut ByteRecord) -> Result<bool> {
        // Bytes in memory, any number of fields, no UTF-8 asked for: nothing is left that could fail.
        reader.read_byte_record(record).map_err(|error| self.error(1, None, error.to_string()))
    }

    /// Calls `look` with each row and where the record before it ends.
    fn each(&self, mut look: impl FnMut(u64, &ByteRecord) -> Result<()>) -> Result<()> {
        let Some(&first) = self.starts.first() else { return Ok(()) };
        let (mut reader, mut record) = (self.reader(first), ByteRecord::new());
        for &start in &self.starts {
            self.next(&mut reader, &mut record)?;
            look(start, &record)?;
        }
        Ok(())
    }

    fn number(&self, start: u64, column: usize, text: &str) -> Result<f64> {
        let wrong = |what: String| self.error(self.line(start), Some(&self.columns[column]), what);
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            Ok(value) => Err(wrong(format!("{value} is not a finite number"))),
            Err(_) if text.is_empty() => Err(wrong("empty; expected a number".into())),
            Err(_) => Err(wrong(format!("'{text}' is not a number"))),
        }
    }

    /// The value of one field, at most `limit` degrees from 0.
    fn degrees(&self, start: u64, record: &ByteRecord, column: usize, what: &str, limit: f64) -> Result<f64> {
        let value = self.number(start, column, String::from_utf8_lossy(&record[column]).trim())?;
        if value.abs() > limit {
            let text = format!("{what} {value} is not within ±{limit} degrees");
            return Err(self.error(self.line(start), Some(&self.columns[column]), text));
        }
        Ok(value)
    }

    /// Line of the record that begins behind a byte, from 1. Counted only for errors, and from the bytes: the reader's own count is
    /// that of the end of the record before, which blank lines and CRLF separate from the start of this one.
    fn line(&self, end_of_last: u64) -> u64 {
        let end_of_last = (end_of_last as usize).min(self.bytes.len());
        let skipped =
            self.bytes[end_of_last..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let before = &self.bytes[..end_of_last + skipped];
        let is_end =
            |(i, &byte): (usize, &u8)| byte == b'\n' || byte == b'\r' && before.get(i + 1) != Some(&b'\n');
        1 + before.iter().enumerate().filter(|&at| is_end(at)).count() as u64
    }

    fn error(&self, line: u64, column: Option<&str>, what: String) -> Error {
        Error::Table { path: self.path.clone(), line, column: column.map(str::to_owned), what }
    }
}
