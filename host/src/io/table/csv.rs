//! CSV tables: the bytes of a file, and columns that are parsed on demand.

use csv::ByteRecord;
use std::io::Read;
use std::path::Path;

#[cfg(feature = "parquet")]
use super::Values;
use super::{Numbers, PlaceColumns, Source, finite, latitude, longitude};
use crate::error::{FileLocation, Result};
use crate::memory;
use crate::point::LonLat;

/// The separators of fields. If two split the header into equally many fields, the last one is taken.
const SEPARATORS: [u8; 3] = [b'\t', b';', b','];

/// The bytes of a file with a header line.
#[derive(Clone, Debug)]
pub(super) struct Csv {
    bytes: Vec<u8>,
    /// The byte between two fields of a row.
    separator: u8,
    /// The line of the header.
    header: FileLocation,
    /// For each row the end of the previous record.
    starts: Vec<u64>,
}

impl Csv {
    /// Parses the rows of a file. Returns the names of its columns too.
    pub(super) fn new(path: &Path, bytes: Vec<u8>) -> Result<(Self, Source)> {
        let mut source = Source { path: path.into(), columns: Vec::new() };
        let separator = separator(&bytes);
        let mut csv = Self { bytes, separator, header: FileLocation::Line(1), starts: Vec::new() };
        let mut starts = Vec::new();
        let mut reader = reader(&csv.bytes[..], separator);
        let mut record = ByteRecord::new();
        if !next(&mut reader, &mut record) {
            return Err(source.invalid(csv.header, None, "the file is empty; expected a header"));
        }
        let name =
            |name: &[u8]| String::from_utf8_lossy(name).trim_start_matches('\u{feff}').trim().to_owned();
        source.columns = record.iter().map(name).collect();
        let header = csv.line(record.position().map_or(0, csv::Position::byte));
        while next(&mut reader, &mut record) {
            let start = record.position().map_or(0, csv::Position::byte);
            let (expected, got) = (source.columns.len(), record.len());
            if got != expected {
                let what = if got < expected {
                    format!("missing: the row has {got} of {expected} fields")
                } else {
                    format!("the row has {got} fields, the header {expected}")
                };
                let column = source.columns.get(got).map(String::as_str);
                return Err(source.invalid(csv.line(start), column, what));
            }
            memory::reserve_more(&mut starts, 1, "rows of a table")?;
            starts.push(start);
        }
        drop(reader);
        (csv.header, csv.starts) = (header, starts);
        Ok((csv, source))
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the line of a row.
    pub(super) fn location(&self, row: usize) -> FileLocation {
        self.line(self.starts[row])
    }

    /// Returns the line of the header.
    pub(super) fn header(&self) -> FileLocation {
        self.header
    }

    pub(super) fn places(&self, source: &Source, columns: PlaceColumns) -> Result<Vec<LonLat>> {
        let PlaceColumns::LonLat { lon, lat } = columns else {
            return Err(source.invalid(self.header, None, "no column has points as bytes"));
        };
        let mut places = memory::vec_with_capacity(self.len(), "places of a table")?;
        self.each(|start, record| {
            let degrees = |column: usize, check: fn(f64) -> Result<f64, String>| {
                let value = number(&String::from_utf8_lossy(&record[column])).and_then(check);
                value.map_err(|what| source.invalid_cell(self.line(start), column, what))
            };
            places.push(LonLat::new(degrees(lon, longitude)?, degrees(lat, latitude)?));
            Ok(())
        })?;
        Ok(places)
    }

    pub(super) fn numbers(&self, source: &Source, column: usize) -> Result<Numbers> {
        let mut integers = Some(memory::vec_with_capacity(self.len(), "numbers of a table")?);
        let mut floats = memory::vec_with_capacity(self.len(), "numbers of a table")?;
        self.each(|start, record| {
            let text = String::from_utf8_lossy(&record[column]);
            let value = number(&text);
            floats.push(value.map_err(|what| source.invalid_cell(self.line(start), column, what))?);
            match (&mut integers, text.trim().parse()) {
                (Some(integers), Ok(integer)) => integers.push(integer),
                _ => integers = None,
            }
            Ok(())
        })?;
        Ok(integers.map_or(Numbers::Floats(floats), Numbers::Integers))
    }

    /// Returns the fields of a row, as text.
    pub(super) fn row(&self, row: usize) -> Vec<String> {
        let mut record = ByteRecord::new();
        // The row has been read before, so this cannot fail.
        next(&mut self.rows_from(self.starts[row]), &mut record);
        record.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect()
    }

    /// Returns the values of a column: integers or floats if all its nonempty fields are, else text.
    #[cfg(feature = "parquet")]
    pub(super) fn values(&self, column: usize) -> Result<Values> {
        let mut texts = memory::vec_with_capacity(self.len(), "values of a column")?;
        let (mut integers, mut floats) = (Some(Vec::new()), Some(Vec::new()));
        self.each(|_, record| {
            let text = String::from_utf8_lossy(&record[column]);
            let trimmed = text.trim();
            if !trimmed.is_empty() {
                let plain = Some(trimmed).filter(|text| is_plain(text));
                push_or_clear(&mut integers, plain.and_then(|text| text.parse().ok()));
                push_or_clear(&mut floats, plain.and_then(|text| number(text).ok()));
            }
            texts.push(memory::copy_text(&text, "values of a column")?);
            Ok(())
        })?;
        // A column without values is text.
        let numbers = match (integers, floats) {
            (Some(integers), _) if !integers.is_empty() => Values::integers(integers),
            (_, Some(floats)) if !floats.is_empty() => Values::floats(floats),
            _ => return Ok(Values::texts(texts.into_iter())),
        };
        Ok(numbers.with_nulls(texts.iter().map(|text| !text.trim().is_empty())))
    }

    /// Calls `visit` with each row and the end of the previous record.
    pub(super) fn each(&self, mut visit: impl FnMut(u64, &ByteRecord) -> Result<()>) -> Result<()> {
        let Some(&first) = self.starts.first() else { return Ok(()) };
        let (mut reader, mut record) = (self.rows_from(first), ByteRecord::new());
        for &start in &self.starts {
            next(&mut reader, &mut record);
            visit(start, &record)?;
        }
        Ok(())
    }

    /// Returns a reader of the rows that follow a byte. The input begins with an empty line, because the reader would skip
    /// a byte order mark at the start, and here that would be part of a row.
    fn rows_from(&self, start: u64) -> csv::Reader<impl Read + '_> {
        reader(b"\n".chain(&self.bytes[start as usize..]), self.separator)
    }

    /// Returns the line, from 1, of the record that follows a byte. Lines are counted only for errors, and from the bytes:
    /// the reader's own count belongs to the end of the previous record, before blank lines and the second half of CRLF.
    fn line(&self, end_of_last: u64) -> FileLocation {
        let end_of_last = (end_of_last as usize).min(self.bytes.len());
        let skipped =
            self.bytes[end_of_last..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let before = &self.bytes[..end_of_last + skipped];
        let is_end =
            |(i, &byte): (usize, &u8)| byte == b'\n' || byte == b'\r' && before.get(i + 1) != Some(&b'\n');
        FileLocation::Line(1 + before.iter().enumerate().filter(|&at| is_end(at)).count() as u64)
    }
}

/// Returns the separator that splits the header, the first record, into the most fields.
fn separator(bytes: &[u8]) -> u8 {
    let num_fields = |separator: u8| {
        let mut header = ByteRecord::new();
        next(&mut reader(bytes, separator), &mut header);
        header.len()
    };
    SEPARATORS.into_iter().max_by_key(|&separator| num_fields(separator)).unwrap_or(b',')
}

fn reader<R: Read>(input: R, separator: u8) -> csv::Reader<R> {
    csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(separator).from_reader(input)
}

/// Reads the next record; false at the end.
fn next(reader: &mut csv::Reader<impl Read>, record: &mut ByteRecord) -> bool {
    // Reading bytes from memory with any number of fields and without UTF-8 cannot fail.
    reader.read_byte_record(record).unwrap_or(false)
}

/// Appends a value, or drops all values if one is missing.
#[cfg(feature = "parquet")]
fn push_or_clear<T>(all: &mut Option<Vec<T>>, value: Option<T>) {
    match (all.as_mut(), value) {
        (Some(values), Some(value)) => values.push(value),
        _ => *all = None,
    }
}

/// Returns true for a plain number. A field with leading zeros or a plus sign is a code, not a number.
#[cfg(feature = "parquet")]
fn is_plain(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    match digits {
        [b'0', second, ..] => !second.is_ascii_digit(),
        [first, ..] => first.is_ascii_digit(),
        [] => false,
    }
}

/// Parses a finite number. The error is the reason why the field is not one.
fn number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(value) => finite(value),
        Err(_) if text.is_empty() => Err("empty; expected a number".into()),
        Err(_) if text.replacen(',', ".", 1).parse::<f64>().is_ok() => {
            Err(format!("'{text}' is not a number; expected a decimal point"))
        }
        Err(_) => Err(format!("'{text}' is not a number")),
    }
}

#[cfg(test)]
mod tests {
    use crate::io::Table;
    use std::path::Path;

    #[test]
    fn the_header_selects_the_separator() {
        for (text, columns, first) in [
            ("a,b\n1,2;3\n", "a|b", "1|2;3"),
            ("a;b;c\n1;2,5;\"3;4\"\n", "a|b|c", "1|2,5|3;4"),
            ("\u{feff}a\tb\r\n1,5\t2 3\r\n", "a|b", "1,5|2 3"),
            // Separators in quotes split nothing.
            ("\"a;b;c\",d\n1,2\n", "a;b;c|d", "1|2"),
            ("\"x,y,z\";b\n1;2\n", "x,y,z|b", "1|2"),
            // Equally many fields, and one field.
            ("a;b,c\n1,2\n", "a;b|c", "1|2"),
            ("a\n1\n", "a", "1"),
        ] {
            let table = Table::from_csv(Path::new("t.csv"), text.into()).unwrap();
            assert_eq!(table.columns().join("|"), columns, "{text}");
            assert_eq!(table.rows().unwrap().row(0).join("|"), first, "{text}");
        }
        let error = Table::from_csv(Path::new("t.csv"), "a;b\n1;2;3\n".into()).unwrap_err();
        assert_eq!(error.to_string(), "t.csv:2: the row has 3 fields, the header 2");
    }

    /// The reader skips a byte order mark only at the start of its input. Later ones belong to a row.
    #[test]
    fn a_row_may_begin_with_a_byte_order_mark() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"\xEF\xBB\xBFname\n\xEF\xBB\xBF\nb\n").unwrap();
        let table = Table::read(file.path()).unwrap();
        assert_eq!(table.columns(), ["name"]);
        assert_eq!(table.texts(0).unwrap(), ["\u{feff}", "b"]);
        assert_eq!(table.rows().unwrap().row(0), ["\u{feff}"]);
    }
}
