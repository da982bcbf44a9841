//! Tables of places: CSV with longitudes and latitudes.

use std::fs;
use std::path::Path;

use csv::ByteRecord;

use crate::error::{Error, Result};
use crate::point::LonLat;

/// Names of columns, best first; case does not matter.
const LON: [&str; 5] = ["lon", "lng", "long", "longitude", "x"];
const LAT: [&str; 3] = ["lat", "latitude", "y"];
const NAME: [&str; 1] = ["name"];
const CODE: [&str; 2] = ["iata", "code"];

/// Places read from a table, in the order of its rows.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LonLatTable {
    /// The places.
    pub points: Vec<LonLat>,
    /// Their names, if there is a column `name`.
    pub names: Option<Vec<String>>,
    /// Short codes, if there is a column `iata` or `code`.
    pub codes: Option<Vec<String>>,
}

/// Reads a CSV file with a header line.
///
/// Columns are found by name, in any case: `lon`, `lng`, `long`, `longitude` or `x`, and `lat`, `latitude` or `y`, in
/// degrees; `name` and `iata` or `code` are taken along; others are ignored. UTF-8 with or without a byte order mark, any
/// line ends, fields in quotes where they need them, blank lines skipped. A table without rows is fine. The file is held
/// in memory while it is read.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; [`Error::Table`] with line and column for an empty file, a missing column, a
/// row with too few or too many fields, a value that is not a number, and coordinates out of the range of [`LonLat`].
pub fn read_lonlat_csv(path: impl AsRef<Path>) -> Result<LonLatTable> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(|source| Error::Io { path: path.into(), source })?;
    Reading { path, bytes: &bytes }.table()
}

/// A file that is being read.
struct Reading<'a> {
    path: &'a Path,
    bytes: &'a [u8],
}

/// The columns that matter, by position.
struct Columns {
    names: Vec<String>,
    lon: usize,
    lat: usize,
    name: Option<usize>,
    code: Option<usize>,
}

impl Reading<'_> {
    fn table(&self) -> Result<LonLatTable> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(self.bytes);
        let mut record = ByteRecord::new();
        if !self.next(&mut reader, &mut record)? {
            return Err(self.error(1, None, "the file is empty; expected a header with lon and lat".into()));
        }
        let columns = self.columns(&record)?;
        let mut table = LonLatTable {
            points: Vec::new(),
            names: columns.name.map(|_| Vec::new()),
            codes: columns.code.map(|_| Vec::new()),
        };
        while self.next(&mut reader, &mut record)? {
            self.check_len(&columns, &record)?;
            let lon = self.degrees(&columns, &record, columns.lon, "longitude", LonLat::MAX_LON)?;
            let lat = self.degrees(&columns, &record, columns.lat, "latitude", LonLat::MAX_LAT)?;
            table.points.push(LonLat::new(lon, lat));
            for (texts, column) in [(&mut table.names, columns.name), (&mut table.codes, columns.code)] {
                if let (Some(texts), Some(column)) = (texts, column) {
                    texts.push(String::from_utf8_lossy(&record[column]).trim().to_owned());
                }
            }
        }
        Ok(table)
    }

    /// Reads the next record; false at the end.
    fn next(&self, reader: &mut csv::Reader<&[u8]>, record: &mut ByteRecord) -> Result<bool> {
        // Bytes in memory, any number of fields, no UTF-8 asked for: nothing is left that could fail.
        reader.read_byte_record(record).map_err(|error| self.error(1, None, error.to_string()))
    }

    fn columns(&self, header: &ByteRecord) -> Result<Columns> {
        let names: Vec<String> = header
            .iter()
            .map(|name| String::from_utf8_lossy(name).trim_start_matches('\u{feff}').trim().to_owned())
            .collect();
        let find = |wanted: &[&str]| {
            wanted.iter().find_map(|w| names.iter().position(|name| name.eq_ignore_ascii_case(w)))
        };
        let need = |wanted: &[&str], what: &str| {
            find(wanted).ok_or_else(|| {
                let (wanted, found) = (wanted.join(", "), names.join(", "));
                let text = format!("no column for the {what} ({wanted}); the columns are: {found}");
                self.error(self.line(header), None, text)
            })
        };
        Ok(Columns {
            lon: need(&LON, "longitude")?,
            lat: need(&LAT, "latitude")?,
            name: find(&NAME),
            code: find(&CODE),
            names,
        })
    }

    fn check_len(&self, columns: &Columns, record: &ByteRecord) -> Result<()> {
        let (expected, got) = (columns.names.len(), record.len());
        let what = match got.cmp(&expected) {
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Less => format!("missing: the row has {got} of {expected} fields"),
            std::cmp::Ordering::Greater => format!("the row has {got} fields, the header {expected}"),
        };
        Err(self.error(self.line(record), columns.names.get(got), what))
    }

    /// The value of one field, at most `limit` degrees from 0.
    fn degrees(
        &self,
        columns: &Columns,
        record: &ByteRecord,
        column: usize,
        what: &str,
        limit: f64,
    ) -> Result<f64> {
        let text = String::from_utf8_lossy(&record[column]);
        let text = text.trim();
        let wrong = |what: String| self.error(self.line(record), Some(&columns.names[column]), what);
        let value: f64 = match text.parse() {
            Ok(value) => value,
            Err(_) if text.is_empty() => return Err(wrong("empty; expected a number".into())),
            Err(_) => return Err(wrong(format!("'{text}' is not a number"))),
        };
        if !value.is_finite() {
            return Err(wrong(format!("{value} is not a finite number")));
        }
        if value.abs() > limit {
            return Err(wrong(format!("{what} {value} is not within ±{limit} degrees")));
        }
        Ok(value)
    }

    /// Line of a record, from 1. Counted only for errors, and from the bytes: the reader's own count is that of the end
    /// of the record before, which blank lines and CRLF separate from the start of this one.
    fn line(&self, record: &ByteRecord) -> u64 {
        let end_of_last = record.position().map_or(0, csv::Position::byte) as usize;
        let rest = &self.bytes[end_of_last.min(self.bytes.len())..];
        let skipped = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let before = &self.bytes[..end_of_last + skipped];
        let is_end =
            |(i, &byte): (usize, &u8)| byte == b'\n' || byte == b'\r' && before.get(i + 1) != Some(&b'\n');
        1 + before.iter().enumerate().filter(|&at| is_end(at)).count() as u64
    }

    fn error(&self, line: u64, column: Option<&String>, what: String) -> Error {
        Error::Table { path: self.path.into(), line, column: column.cloned(), what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<LonLatTable> {
        Reading { path: Path::new("t.csv"), bytes: text.as_bytes() }.table()
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
        assert_eq!(refused(""), "t.csv:1: the file is empty; expected a header with lon and lat");
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
