//! Writes pairs as CSV. The rows of both tables are converted to text once and copied for each pair.

use csv::{ByteRecord, Writer};
use std::io::{self, Write};
use std::path::Path;

use super::{Geometries, NO_PAIRS, PairSink, PairTable, Pairs};
use crate::error::{Error, Result};
use crate::io::table::{Numbers, Table};
use crate::memory;

/// The bytes of text written at a time.
const CHUNK: usize = 1 << 16;

/// Writes pairs as CSV.
pub(super) struct CsvPairs<'a, 'w> {
    tables: PairTable<'a>,
    path: &'a Path,
    to: &'w mut dyn Write,
    /// The text of both tables, after the first pair.
    texts: Option<[CsvRows; 2]>,
    has_header: bool,
}

impl<'a, 'w> CsvPairs<'a, 'w> {
    pub(super) fn new(tables: PairTable<'a>, path: &'a Path, to: &'w mut dyn Write) -> Self {
        Self { tables, path, to, texts: None, has_header: false }
    }

    /// Writes the header, unless it has been written.
    fn header(&mut self, pairs: Pairs<'_>) -> Result<()> {
        if std::mem::replace(&mut self.has_header, true) {
            return Ok(());
        }
        let mut header = ByteRecord::from(vec!["left_row", "right_row"]);
        if pairs.distances.is_some() {
            header.push_field(self.tables.geometries.distance_column().as_bytes());
        }
        if pairs.scores.is_some() {
            header.push_field(b"score");
        }
        for (side, table) in [("left", self.tables.left), ("right", self.tables.right)] {
            table.columns().iter().for_each(|name| header.push_field(format!("{side}.{name}").as_bytes()));
        }
        let mut text = CsvRows::with_capacity(1)?;
        text.push(&header)?;
        self.write(text.text())
    }

    /// Writes the numbers of a pair, each with a comma.
    fn numbers(&self, to: &mut Vec<u8>, pairs: Pairs<'_>, i: usize) -> io::Result<()> {
        let [left, right] = pairs.rows[i];
        write!(to, "{left},{right},")?;
        match (pairs.distances, self.tables.geometries) {
            (None, _) => {}
            // To a millimeter.
            (Some(all), Geometries::Places(_)) => write!(to, "{:.3},", all[i])?,
            (Some(all), Geometries::Boxes(_)) => write!(to, "{},", all[i])?,
        }
        match pairs.scores {
            None => Ok(()),
            Some(Numbers::Integers(all)) => write!(to, "{},", all[i]),
            Some(Numbers::Floats(all)) => write!(to, "{},", all[i]),
        }
    }

    fn write(&mut self, text: &[u8]) -> Result<()> {
        self.to.write_all(text).map_err(|source| Error::Io { path: self.path.into(), source })
    }
}

impl PairSink for CsvPairs<'_, '_> {
    fn take(&mut self, pairs: Pairs<'_>) -> Result<()> {
        self.header(pairs)?;
        if pairs.rows.is_empty() {
            return Ok(());
        }
        let texts = match self.texts.take() {
            Some(texts) => texts,
            None => [CsvRows::new(self.tables.left)?, CsvRows::new(self.tables.right)?],
        };
        let mut chunk = Vec::with_capacity(2 * CHUNK);
        for (i, &[left, right]) in pairs.rows.iter().enumerate() {
            self.numbers(&mut chunk, pairs, i).map_err(out_of_memory)?;
            chunk.extend_from_slice(texts[0].row(left as usize));
            chunk.push(b',');
            chunk.extend_from_slice(texts[1].row(right as usize));
            chunk.push(b'\n');
            if chunk.len() >= CHUNK {
                self.write(&chunk)?;
                chunk.clear();
            }
        }
        self.texts = Some(texts);
        self.write(&chunk)
    }

    fn finish(&mut self) -> Result<()> {
        // A table without pairs has a header too.
        self.header(NO_PAIRS)
    }
}

/// Rows as CSV text.
struct CsvRows {
    writer: Writer<Text>,
    /// The end of each row, including its line end.
    ends: Vec<u64>,
}

impl CsvRows {
    fn new(table: &Table) -> Result<Self> {
        let mut rows = Self::with_capacity(table.len())?;
        table.each_row(|row| rows.push(row))?;
        Ok(rows)
    }

    fn with_capacity(num_rows: usize) -> Result<Self> {
        let ends = memory::vec_with_capacity(num_rows, "rows of a table")?;
        Ok(Self { writer: Writer::from_writer(Text(Vec::new())), ends })
    }

    fn push(&mut self, row: &ByteRecord) -> Result<()> {
        self.writer.write_byte_record(row).map_err(io::Error::from).map_err(out_of_memory)?;
        self.writer.flush().map_err(out_of_memory)?;
        self.ends.push(self.text().len() as u64);
        Ok(())
    }

    fn text(&self) -> &[u8] {
        &self.writer.get_ref().0
    }

    /// Returns a row without its line end.
    fn row(&self, row: usize) -> &[u8] {
        let begin = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.text()[begin as usize..self.ends[row] as usize - 1]
    }
}

/// Writing to memory fails only if memory is exhausted.
fn out_of_memory(_: io::Error) -> Error {
    memory::out_of_memory(CHUNK as u64, "text of a table")
}

/// Text in memory, with fallible allocation.
struct Text(Vec<u8>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        memory::reserve_more(&mut self.0, bytes.len(), "text of a table").map_err(io::Error::other)?;
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
