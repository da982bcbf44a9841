//! Writes pairs as CSV. The rows of a small table are converted to text once, the rows of a large one for each batch that has them.

use csv::{ByteRecord, Writer};
use std::io::{self, Write};
use std::path::Path;

use super::{BatchRows, Geometries, NO_PAIRS, PairSink, PairTable, Pairs};
use crate::error::{Error, Result};
use crate::io::table::{NO_ROW, Numbers, Table};
use crate::memory;

/// The bytes of text written at a time.
const CHUNK: usize = 1 << 16;

/// Writes pairs as CSV.
pub(super) struct CsvPairs<'a, 'w> {
    tables: PairTable<'a>,
    path: &'a Path,
    to: &'w mut dyn Write,
    /// The text of each table that is small, after the first pair.
    kept: Option<[Option<CsvRows>; 2]>,
    has_header: bool,
}

impl<'a, 'w> CsvPairs<'a, 'w> {
    pub(super) fn new(tables: PairTable<'a>, path: &'a Path, to: &'w mut dyn Write) -> Self {
        Self { tables, path, to, kept: None, has_header: false }
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
        write!(to, "{left},")?;
        match right {
            NO_ROW => write!(to, ",")?,
            right => write!(to, "{right},")?,
        }
        match (pairs.distances, self.tables.geometries) {
            (None, _) => {}
            (Some(_), _) if right == NO_ROW => write!(to, ",")?,
            // To a millimeter.
            (Some(all), Geometries::Places(_)) => write!(to, "{:.3},", all[i])?,
            (Some(all), _) => write!(to, "{},", all[i])?,
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
        let tables = [self.tables.left, self.tables.right];
        let kept = match self.kept.take() {
            Some(kept) => kept,
            None => {
                let keep = |table: &Table| table.is_small().then(|| CsvRows::new(table, None)).transpose();
                [keep(tables[0])?, keep(tables[1])?]
            }
        };
        let [left, right] = [0, 1].map(|side| {
            BatchTexts::new(tables[side], kept[side].as_ref(), pairs.rows.iter().map(move |pair| pair[side]))
        });
        let (left, right) = (left?, right?);
        let mut chunk = Vec::with_capacity(2 * CHUNK);
        for i in 0..pairs.rows.len() {
            self.numbers(&mut chunk, pairs, i).map_err(out_of_memory)?;
            chunk.extend_from_slice(left.row(i));
            chunk.push(b',');
            chunk.extend_from_slice(right.row(i));
            chunk.push(b'\n');
            if chunk.len() >= CHUNK {
                self.write(&chunk)?;
                chunk.clear();
            }
        }
        self.write(&chunk)?;
        drop((left, right));
        self.kept = Some(kept);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        // A table without pairs has a header too.
        self.header(NO_PAIRS)
    }
}

/// The text of one table's row in each pair of a batch.
struct BatchTexts<'k> {
    kept: Option<&'k CsvRows>,
    /// The text of the batch's rows, unless the table is small.
    read: CsvRows,
    positions: Vec<u32>,
    /// The text of a missing row.
    missing: Vec<u8>,
}

impl<'k> BatchTexts<'k> {
    fn new(
        table: &Table,
        kept: Option<&'k CsvRows>,
        rows: impl Iterator<Item = u32> + Clone,
    ) -> Result<Self> {
        let missing = vec![b','; table.columns().len() - 1];
        if kept.is_some() {
            return Ok(Self { kept, read: CsvRows::with_capacity(0)?, positions: rows.collect(), missing });
        }
        let BatchRows { distinct, positions } = BatchRows::new(rows);
        Ok(Self { kept, read: CsvRows::new(table, Some(&distinct))?, positions, missing })
    }

    /// Returns the text of the row of a pair.
    fn row(&self, pair: usize) -> &[u8] {
        match self.positions[pair] {
            NO_ROW => &self.missing,
            position => self.kept.unwrap_or(&self.read).row(position as usize),
        }
    }
}

/// Rows as CSV text.
struct CsvRows {
    writer: Writer<Text>,
    /// The end of each row, including its line end.
    ends: Vec<u64>,
}

impl CsvRows {
    /// Reads all rows of a table, or the `selected` ones, which must be in ascending order.
    fn new(table: &Table, selected: Option<&[u32]>) -> Result<Self> {
        let mut rows = Self::with_capacity(selected.map_or(table.len(), <[u32]>::len))?;
        table.each_row(selected, |row| rows.push(row))?;
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
