//! Pairs of rows of two tables, as a table of their own.

mod csv;
#[cfg(feature = "parquet")]
mod parquet;

#[cfg(not(feature = "parquet"))]
use std::io;
use std::io::Write;
use std::path::Path;

use super::table::{Numbers, Table};
use crate::error::{Error, Result};
use crate::point::LonLat;
use crate::stored::write_atomically_or;

/// Extensions of the names of Parquet files.
const PARQUET: [&str; 2] = ["parquet", "geoparquet"];

/// Two tables whose rows are paired.
///
/// Written, the pairs are a table with the columns `left_row` and `right_row`, counted from 0, `distance_m`, `score` if there are scores,
/// and the columns of both tables, their names after `left.` and `right.`. Parquet files have the types of the columns, for a CSV file the
/// type that all its fields have, and the left places as `geometry`: they are GeoParquet files of version 1.1.0.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("kauri-pairs-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("a.csv");
/// std::fs::write(&path, "name,lon,lat\nStockholm,18.07,59.33\nHelsinki,24.94,60.17\n").unwrap();
/// use kauri::io::{PairTable, Pairs, Table};
/// let table = Table::read(&path)?;
/// let places = table.places(table.place_columns(None, None)?)?;
/// let pairs = PairTable { left: &table, right: &table, places: &places };
/// let mut text = Vec::new();
/// pairs.write_csv(&mut text, |take| {
///     // As many batches as there are, each of any length.
///     take(Pairs { rows: &[[0, 1]], meters: &[395_600.0], scores: None })?;
///     take(Pairs { rows: &[[1, 0]], meters: &[395_600.0], scores: None })
/// })?;
/// assert!(text.starts_with(b"left_row,right_row,distance_m,left.name,"));
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PairTable<'a> {
    /// The left table.
    pub left: &'a Table,
    /// The right table, or the left one again.
    pub right: &'a Table,
    /// The left places, row after row.
    pub places: &'a [LonLat],
}

/// A batch of pairs of rows. All batches of a table have scores of one type, or none.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    /// A left and a right row each.
    pub rows: &'a [[u32; 2]],
    /// The distance of each pair, in meters.
    pub meters: &'a [f64],
    /// The score of each pair.
    pub scores: Option<&'a Numbers>,
}

/// Writes a batch of pairs.
pub type TakePairs<'t> = dyn FnMut(Pairs<'_>) -> Result<()> + 't;

/// A form that pairs are written in.
trait PairSink {
    /// Writes the head of the form, and a batch.
    fn take(&mut self, pairs: Pairs<'_>) -> Result<()>;
    /// Ends the form.
    fn finish(&mut self) -> Result<()>;
}

impl<'a> PairTable<'a> {
    /// True for the name of a file that [`write`](Self::write) makes a Parquet file.
    pub fn is_parquet(path: impl AsRef<Path>) -> bool {
        let extension = path.as_ref().extension().unwrap_or_default();
        PARQUET.iter().any(|known| extension.eq_ignore_ascii_case(known))
    }

    /// Writes the batches of pairs that `find` hands to its argument: a Parquet file if the name ends in `.parquet` or `.geoparquet`, else a
    /// CSV file; all of it or nothing, see [`write_atomically`](super::write_atomically).
    ///
    /// Memory, however many pairs there are: of a CSV file the text of both tables, and 8 bytes a row; of a Parquet file all columns of both
    /// tables, and a column of up to a million rows of a batch.
    ///
    /// # Errors
    /// [`Error::Shape`] for a batch with another number of distances or scores than pairs, for rows that a table does not have, and for
    /// another number of places than left rows; [`Error::OutOfMemory`]; [`Error::Table`] for a table that cannot be read; [`Error::Io`];
    /// and the errors of `find`.
    pub fn write<E: From<Error>>(
        &self,
        path: impl AsRef<Path>,
        find: impl FnOnce(&mut TakePairs<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let path = path.as_ref();
        write_atomically_or(path, |file| {
            if Self::is_parquet(path) {
                return self.parquet(path, file, find);
            }
            self.all(csv::CsvPairs::new(*self, path, file), find)
        })
    }

    /// Writes CSV, batch after batch.
    ///
    /// # Errors
    /// As [`write`](Self::write); an [`Error::Io`] of `to` has no path.
    pub fn write_csv<E: From<Error>>(
        &self,
        to: &mut dyn Write,
        find: impl FnOnce(&mut TakePairs<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.all(csv::CsvPairs::new(*self, Path::new(""), to), find)
    }

    #[cfg(feature = "parquet")]
    fn parquet<E: From<Error>>(
        &self,
        path: &Path,
        file: &mut (dyn Write + Send),
        find: impl FnOnce(&mut TakePairs<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.all(parquet::ParquetPairs::new(*self, path, file)?, find)
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet<E: From<Error>>(
        &self,
        path: &Path,
        _: &mut (dyn Write + Send),
        _: impl FnOnce(&mut TakePairs<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let source = io::Error::new(
            io::ErrorKind::Unsupported,
            "kauri writes Parquet files if it is built with the feature `parquet`",
        );
        Err(Error::Io { path: path.into(), source }.into())
    }

    /// Checks all batches and hands them to a form.
    fn all<E: From<Error>>(
        &self,
        mut sink: impl PairSink,
        find: impl FnOnce(&mut TakePairs<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        same("places of rows", self.left.len(), self.places.len())?;
        find(&mut |pairs| {
            self.check(pairs)?;
            sink.take(pairs)
        })?;
        Ok(sink.finish()?)
    }

    fn check(&self, pairs: Pairs<'_>) -> Result<()> {
        same("distances of pairs", pairs.rows.len(), pairs.meters.len())?;
        same("scores of pairs", pairs.rows.len(), pairs.scores.map_or(pairs.rows.len(), Numbers::len))?;
        for (side, table) in [self.left, self.right].into_iter().enumerate() {
            let most = pairs.rows.iter().map(|pair| pair[side] as usize + 1).max().unwrap_or(0);
            same("rows of pairs", table.len(), most.max(table.len()))?;
        }
        Ok(())
    }
}

fn same(what: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    Err(Error::Shape { what, expected: expected as u64, got: got as u64 })
}
