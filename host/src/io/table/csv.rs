//! CSV tables: the positions of the rows in a file, and columns that are parsed on demand.

#[cfg(feature = "parquet")]
mod typed;

#[cfg(feature = "parquet")]
pub(super) use typed::Kind;

use csv::ByteRecord;
use std::io::{BufReader, Read};
use std::slice;

use super::input::{Input, InputReader};
use super::{Check, Numbers, Source, finite};
use crate::error::{FileLocation, Result};
use crate::memory;

/// The separators of fields. If two split the header into equally many fields, the last one is taken.
const SEPARATORS: [u8; 3] = [b'\t', b';', b','];
/// The bytes read at a time, if all rows are read.
const BUFFER: usize = 1 << 16;
/// The bytes read at a time, if some rows are read.
const SMALL_BUFFER: usize = 1 << 13;

/// A file with a header line.
#[derive(Clone, Debug)]
pub(super) struct Csv {
    input: Input,
    /// The byte between two fields of a row.
    separator: u8,
    num_columns: usize,
    /// The line of the header.
    header: FileLocation,
    /// For each row the end of the previous record.
    starts: Vec<u64>,
}

impl Csv {
    /// Finds the rows of a file. Adds the names of its columns to `source`.
    pub(super) fn new(source: &mut Source, input: Input) -> Result<Self> {
        let separator = separator(&input)?;
        let (num_columns, starts) = (0, Vec::new());
        let mut csv = Self { input, separator, num_columns, header: FileLocation::Line(1), starts };
        let mut starts = Vec::new();
        let mut reader = reader(csv.input.reader(0), separator, BUFFER);
        let mut record = ByteRecord::new();
        if !next(&csv.input, &mut reader, &mut record)? {
            return Err(source.invalid(csv.header, None, "the file is empty; expected a header"));
        }
        let name =
            |name: &[u8]| String::from_utf8_lossy(name).trim_start_matches('\u{feff}').trim().to_owned();
        source.columns = record.iter().map(name).collect();
        let header = csv.line(start_of(&record));
        while next(&csv.input, &mut reader, &mut record)? {
            let (expected, got) = (source.columns.len(), record.len());
            if got != expected {
                let what = if got < expected {
                    format!("missing: the row has {got} of {expected} fields")
                } else {
                    format!("the row has {got} fields, the header {expected}")
                };
                let column = source.columns.get(got).map(String::as_str);
                return Err(source.invalid(csv.line(start_of(&record)), column, what));
            }
            memory::reserve_more(&mut starts, 1, "rows of a table")?;
            starts.push(start_of(&record));
        }
        drop(reader);
        (csv.header, csv.starts, csv.num_columns) = (header, starts, source.columns.len());
        Ok(csv)
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the bytes of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.input.len()
    }

    /// Returns the line of a row.
    pub(super) fn location(&self, row: usize) -> FileLocation {
        self.line(self.starts[row])
    }

    /// Returns the line of the header.
    pub(super) fn header(&self) -> FileLocation {
        self.header
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

    /// Reads a coordinate in a column of a row, given with the end of the record before it. A blank field that `may_be_missing` is NaN.
    pub(super) fn coordinate(
        &self,
        source: &Source,
        (start, record, column): (u64, &ByteRecord, usize),
        check: Check,
        may_be_missing: bool,
    ) -> Result<f64> {
        let text = String::from_utf8_lossy(&record[column]);
        if may_be_missing && text.trim().is_empty() {
            return Ok(f64::NAN);
        }
        let value = number(&text).and_then(check);
        value.map_err(|what| source.invalid_cell(self.line(start), column, what))
    }

    /// Calls `visit` with each row and the end of the previous record.
    pub(super) fn each(&self, mut visit: impl FnMut(u64, &ByteRecord) -> Result<()>) -> Result<()> {
        let Some(&first) = self.starts.first() else { return Ok(()) };
        // The input begins with an empty line, because the reader would skip a byte order mark at the start, and here that
        // would be part of a row.
        let mut reader = reader(b"\n".chain(self.input.reader(first)), self.separator, BUFFER);
        let mut record = ByteRecord::new();
        for &start in &self.starts {
            self.next_row(&mut reader, &mut record)?;
            visit(start, &record)?;
        }
        self.input.check_unchanged()
    }

    /// Calls `visit` with each of these rows, which must be in ascending order.
    pub(super) fn each_of(
        &self,
        rows: &[u32],
        mut visit: impl FnMut(&ByteRecord) -> Result<()>,
    ) -> Result<()> {
        let mut reader = reader(SelectedRows::new(self, rows), self.separator, SMALL_BUFFER);
        let mut record = ByteRecord::new();
        for _ in rows {
            self.next_row(&mut reader, &mut record)?;
            visit(&record)?;
        }
        self.input.check_unchanged()
    }

    /// Reads a row that was found before.
    fn next_row(&self, reader: &mut csv::Reader<impl Read>, record: &mut ByteRecord) -> Result<()> {
        match next(&self.input, reader, record)? && record.len() == self.num_columns {
            true => Ok(()),
            false => Err(self.input.changed()),
        }
    }

    /// Returns the line, from 1, of the record that follows a byte. Lines are counted only for errors, and from the bytes:
    /// the reader's own count belongs to the end of the previous record, before blank lines and the second half of CRLF.
    fn line(&self, end_of_last: u64) -> FileLocation {
        let (mut line, mut last) = (1, 0);
        for (at, byte) in (0..).zip(BufReader::with_capacity(BUFFER, self.input.reader(0)).bytes()) {
            let Ok(byte) = byte else { return FileLocation::Whole };
            if at >= end_of_last && !matches!(byte, b'\r' | b'\n') {
                break;
            }
            line += u64::from(byte == b'\r' || byte == b'\n' && last != b'\r');
            last = byte;
        }
        FileLocation::Line(line)
    }
}

/// The bytes of some rows, one after another, each after an empty line.
struct SelectedRows<'a> {
    starts: &'a [u64],
    rows: slice::Iter<'a, u32>,
    input: BufReader<InputReader<'a>>,
    /// The position of `input`, and the end of the row there.
    at: u64,
    end: u64,
    len: u64,
}

impl<'a> SelectedRows<'a> {
    fn new(csv: &'a Csv, rows: &'a [u32]) -> Self {
        let input = BufReader::with_capacity(SMALL_BUFFER, csv.input.reader(0));
        Self { starts: &csv.starts, rows: rows.iter(), input, at: 0, end: 0, len: csv.input.len() }
    }
}

impl Read for SelectedRows<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.end {
            let (Some(&row), Some(first)) = (self.rows.next(), bytes.first_mut()) else { return Ok(0) };
            let start = self.starts[row as usize];
            self.input.seek_relative((start - self.at) as i64)?;
            self.at = start;
            self.end = self.starts.get(row as usize + 1).copied().unwrap_or(self.len);
            *first = b'\n';
            return Ok(1);
        }
        let most = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(bytes.len());
        let num_read = self.input.read(&mut bytes[..most])?;
        self.at += num_read as u64;
        Ok(num_read)
    }
}

/// Returns the separator that splits the header, the first record, into the most fields.
fn separator(input: &Input) -> Result<u8> {
    let (mut best, mut most) = (b',', 0);
    for separator in SEPARATORS {
        let mut header = ByteRecord::new();
        next(input, &mut reader(input.reader(0), separator, SMALL_BUFFER), &mut header)?;
        if header.len() >= most {
            (best, most) = (separator, header.len());
        }
    }
    Ok(best)
}

fn reader<R: Read>(input: R, separator: u8, buffer: usize) -> csv::Reader<R> {
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true).delimiter(separator).buffer_capacity(buffer).from_reader(input)
}

/// Reads the next record; false at the end.
fn next(input: &Input, reader: &mut csv::Reader<impl Read>, record: &mut ByteRecord) -> Result<bool> {
    reader.read_byte_record(record).map_err(|error| match error.into_kind() {
        csv::ErrorKind::Io(error) => input.error(error),
        // Cannot happen with any number of fields and without UTF-8.
        _ => input.changed(),
    })
}

/// Returns the end of the record before this one.
fn start_of(record: &ByteRecord) -> u64 {
    record.position().map_or(0, csv::Position::byte)
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
            let table = Table::read_stream(text.as_bytes(), "t.csv").unwrap();
            assert_eq!(table.columns().join("|"), columns, "{text}");
            assert_eq!(table.row(0).unwrap().join("|"), first, "{text}");
        }
        let error = Table::read_stream(&b"a;b\n1;2;3\n"[..], "t.csv").unwrap_err();
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
        assert_eq!(table.row(0).unwrap(), ["\u{feff}"]);
    }
}
