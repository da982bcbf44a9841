//! Writes the pairs of rows of two tables as a table.

mod csv;
#[cfg(feature = "parquet")]
mod parquet;

#[cfg(not(feature = "parquet"))]
use std::io;
use std::io::Write;
use std::path::Path;

use super::table::{NO_ROW, Numbers, Table};
use crate::error::{Error, Result, check_len};
use crate::point::LonLat;
use crate::stored::write_atomically_or;

/// File name extensions of Parquet files.
const PARQUET: [&str; 2] = ["parquet", "geoparquet"];

/// Writes pairs of rows of two tables, for example the pairs of a join, as CSV or GeoParquet.
///
/// | column of the output | content |
/// |---|---|
/// | `left_row`, `right_row` | row numbers, from 0 |
/// | `distance_m` | the distance of two places in meters |
/// | `distance` | the distance of two points of the plane or of two boxes in the units of their coordinates, if pairs have distances |
/// | `score` | the score, if pairs have scores |
/// | `left.NAME`, `right.NAME` | all columns of both tables |
/// | `geometry` (Parquet only) | the left place or point, or the left box as a polygon, in the reference system of the left table |
///
/// A left row without a match may be written too, as a pair with [`NO_ROW`]: its right columns are empty, or null in Parquet.
///
/// Parquet output (GeoParquet 1.1.0) keeps the types of Parquet columns. A CSV column becomes integers or floats if all its
/// fields are numbers, else text.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("kauri-pairs-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("a.csv");
/// std::fs::write(&path, "name,lon,lat\nStockholm,18.07,59.33\nHelsinki,24.94,60.17\n").unwrap();
/// use kauri::io::{Geometries, PairTable, Pairs, Table};
/// let table = Table::read(&path)?;
/// let places = table.places(table.place_columns(None, None)?)?;
/// let pairs = PairTable { left: &table, right: &table, geometries: Geometries::Places(&places) };
/// let mut text = Vec::new();
/// pairs.write_csv(&mut text, |take| {
///     // Any number of batches of any length.
///     take(Pairs { rows: &[[0, 1]], distances: Some(&[395_600.0]), scores: None })?;
///     take(Pairs { rows: &[[1, 0]], distances: Some(&[395_600.0]), scores: None })
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
    /// The left places, points or boxes, one per row.
    pub geometries: Geometries<'a>,
}

/// The items of the left table of a [`PairTable`].
///
/// ```
/// use kauri::io::Geometries;
/// let boxes = Geometries::Boxes(&[[[0.0, 0.0], [2.0, 1.0]]]);
/// assert_eq!(boxes.len(), 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Geometries<'a> {
    /// Places.
    Places(&'a [LonLat]),
    /// Points of the plane.
    Points(&'a [[f64; 2]]),
    /// Boxes: low and high corner.
    Boxes(&'a [[[f64; 2]; 2]]),
}

impl Geometries<'_> {
    /// Returns the number of places, points or boxes.
    pub fn len(&self) -> usize {
        match self {
            Self::Places(places) => places.len(),
            Self::Points(points) => points.len(),
            Self::Boxes(boxes) => boxes.len(),
        }
    }

    /// Returns true if there are no places, points or boxes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the name of the column of distances.
    pub fn distance_column(&self) -> &'static str {
        match self {
            Self::Places(_) => "distance_m",
            Self::Points(_) | Self::Boxes(_) => "distance",
        }
    }
}

/// A batch of pairs of rows for [`PairTable`]. All batches of an output have distances, or none has, and they have scores of the same type,
/// or no scores.
///
/// ```
/// use kauri::io::{Numbers, Pairs};
///
/// let scores = Numbers::Integers(vec![984_137]);
/// // Left row 0 and right row 2 are 35.8 km apart.
/// let batch = Pairs { rows: &[[0, 2]], distances: Some(&[35_800.0]), scores: Some(&scores) };
/// assert_eq!(batch.rows.len(), scores.len());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    /// The left and the right row of each pair. The right row is [`NO_ROW`] if the left row has no match.
    pub rows: &'a [[u32; 2]],
    /// The distance of each pair: in meters between places, in the units of the coordinates between points or boxes; NaN if there is no
    /// right row.
    pub distances: Option<&'a [f64]>,
    /// The score of each pair.
    pub scores: Option<&'a Numbers>,
}

/// The callback of [`PairTable::write`] that writes a batch of pairs.
pub type TakePairs<'t> = dyn FnMut(Pairs<'_>) -> Result<()> + 't;

/// An output format of pairs.
trait PairSink {
    /// Writes a batch, and the header before the first one.
    fn take(&mut self, pairs: Pairs<'_>) -> Result<()>;
    /// Completes the file.
    fn finish(&mut self) -> Result<()>;
}

/// The batch that gives an output without batches its columns.
const NO_PAIRS: Pairs<'_> = Pairs { rows: &[], distances: Some(&[]), scores: None };

impl<'a> PairTable<'a> {
    /// Returns true for file names for which [`write`](Self::write) writes a Parquet file.
    pub fn is_parquet(path: impl AsRef<Path>) -> bool {
        let extension = path.as_ref().extension().unwrap_or_default();
        PARQUET.iter().any(|known| extension.eq_ignore_ascii_case(known))
    }

    /// Writes the batches of pairs that `find` passes to its argument. A name that ends in `.parquet` or `.geoparquet` is a
    /// Parquet file, any other name a CSV file. The file is replaced [atomically](super::write_atomically).
    ///
    /// Memory does not depend on the number of pairs. A table of up to 64 MiB is kept: as text for CSV output, as columns for Parquet
    /// output. The rows of a larger table are read again for each batch; of a Parquet table, one row group of a column is in memory at a
    /// time for Parquet output, and all columns of the rows of the batch for CSV output.
    ///
    /// # Errors
    /// [`Error::Shape`] for a batch whose distances or scores differ in number from its pairs, for rows beyond a table,
    /// and unless `geometries` has one place or box per left row; [`Error::OutOfMemory`]; [`Error::InvalidFile`] for a table that
    /// cannot be read; [`Error::Io`]; and errors of `find`.
    pub fn write<E: From<Error>>(
        &self,
        path: impl AsRef<Path>,
        find: impl FnOnce(&mut TakePairs<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let path = path.as_ref();
        write_atomically_or(path, |file| {
            if !Self::is_parquet(path) {
                return self.write_all(csv::CsvPairs::new(*self, path, file), find);
            }
            #[cfg(feature = "parquet")]
            return self.write_all(parquet::ParquetPairs::new(*self, path, file)?, find);
            #[cfg(not(feature = "parquet"))]
            {
                let what = "kauri writes Parquet files if it is built with the feature `parquet`";
                let source = io::Error::new(io::ErrorKind::Unsupported, what);
                Err(Error::Io { path: path.into(), source }.into())
            }
        })
    }

    /// Writes CSV, batch after batch.
    ///
    /// # Errors
    /// Like [`write`](Self::write); an [`Error::Io`] of `to` has no path.
    pub fn write_csv<E: From<Error>>(
        &self,
        to: &mut dyn Write,
        find: impl FnOnce(&mut TakePairs<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.write_all(csv::CsvPairs::new(*self, Path::new(""), to), find)
    }

    /// Checks all batches, and passes them to an output format.
    fn write_all<E: From<Error>>(
        &self,
        mut sink: impl PairSink,
        find: impl FnOnce(&mut TakePairs<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        check_len("places of rows", self.left.len(), self.geometries.len())?;
        find(&mut |pairs| {
            self.check(pairs)?;
            sink.take(pairs)
        })?;
        Ok(sink.finish()?)
    }

    fn check(&self, pairs: Pairs<'_>) -> Result<()> {
        check_len(
            "distances of pairs",
            pairs.rows.len(),
            pairs.distances.map_or(pairs.rows.len(), <[_]>::len),
        )?;
        check_len("scores of pairs", pairs.rows.len(), pairs.scores.map_or(pairs.rows.len(), Numbers::len))?;
        for (side, table) in [self.left, self.right].into_iter().enumerate() {
            let rows = pairs.rows.iter().map(|pair| pair[side]).filter(|&row| side == 0 || row != NO_ROW);
            let most = rows.max().map_or(0, |row| row as usize + 1);
            if most > table.len() {
                check_len("rows of pairs", table.len(), most)?;
            }
        }
        Ok(())
    }
}

/// The rows of one table in a batch of pairs.
struct BatchRows {
    /// The rows in ascending order, each once.
    distinct: Vec<u32>,
    /// The position of each pair's row among them, or [`NO_ROW`].
    positions: Vec<u32>,
}

impl BatchRows {
    fn new(rows: impl Iterator<Item = u32> + Clone) -> Self {
        let mut distinct: Vec<u32> = rows.clone().filter(|&row| row != NO_ROW).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let position = |row| distinct.binary_search(&row).map_or(NO_ROW, |position| position as u32);
        let positions = rows.map(position).collect();
        Self { distinct, positions }
    }
}
