//! Pairs of rows of two tables, as a table of their own.

use std::io::{self, Write};
use std::path::Path;

#[cfg(feature = "parquet")]
use super::table::{Column, PlaceColumns, Values, geo_metadata, write_parquet};
use super::table::{Numbers, Table, TableRows};
use super::write_atomically;
use crate::error::{Error, Result};
use crate::point::LonLat;

/// Extensions of the names of Parquet files.
const PARQUET: [&str; 2] = ["parquet", "geoparquet"];

/// Pairs of rows of two tables, with what a join found of them.
///
/// Written, it is a table with the columns `left_row` and `right_row`, counted from 0, `distance_m`, `score` if there are scores, and
/// those of both tables, their names after `left.` and `right.`. Parquet files have the types of the columns, of a CSV file those that all its
/// fields are of, and the left places as `geometry`: they are GeoParquet files of version 1.1.0.
#[derive(Clone, Copy, Debug)]
pub struct PairTable<'a> {
    /// The one table.
    pub left: &'a Table,
    /// The other table, or the same.
    pub right: &'a Table,
    /// The left places, row after row.
    pub places: &'a [LonLat],
    /// The pairs: a left and a right row each.
    pub rows: &'a [[u32; 2]],
    /// The distance of each pair, in metres.
    pub metres: &'a [f64],
    /// The score of each pair.
    pub scores: Option<&'a Numbers>,
}

impl PairTable<'_> {
    /// True for the name of a file that [`write`](Self::write) makes a Parquet file.
    pub fn is_parquet(path: impl AsRef<Path>) -> bool {
        let extension = path.as_ref().extension().unwrap_or_default();
        PARQUET.iter().any(|known| extension.eq_ignore_ascii_case(known))
    }

    /// Writes a Parquet file if its name ends in `.parquet` or `.geoparquet`, else a CSV file; all of it or nothing, see
    /// [`write_atomically`].
    ///
    /// Memory: of a Parquet file all columns of both tables, and a million rows of a column.
    ///
    /// # Errors
    /// [`Error::Shape`] for not as many distances or scores as pairs, or places as left rows; those of [`Table::rows`]; [`Error::Io`].
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        if Self::is_parquet(path) {
            return self.write_parquet(path);
        }
        let tables = self.checked()?;
        write_atomically(path, |file| self.csv(file, &tables))
    }

    /// Writes CSV.
    ///
    /// # Errors
    /// As [`write`](Self::write); what `to` says is of an [`Error::Io`] without a path.
    pub fn write_csv(&self, to: &mut dyn Write) -> Result<()> {
        let tables = self.checked()?;
        self.csv(to, &tables).map_err(|source| Error::Io { path: Default::default(), source })
    }

    /// The rows of both tables, if all that there is belongs together.
    fn checked(&self) -> Result<[TableRows<'_>; 2]> {
        self.check()?;
        Ok([self.left.rows()?, self.right.rows()?])
    }

    fn check(&self) -> Result<()> {
        let most = |side: usize| self.rows.iter().map(|pair| pair[side] as usize + 1).max().unwrap_or(0);
        let scores = self.scores.map_or(self.rows.len(), Numbers::len);
        for (what, expected, got) in [
            ("distances of pairs", self.rows.len(), self.metres.len()),
            ("scores of pairs", self.rows.len(), scores),
            ("places of rows", self.left.len(), self.places.len()),
            ("rows of pairs", self.left.len(), most(0).max(self.left.len())),
            ("rows of pairs", self.right.len(), most(1).max(self.right.len())),
        ] {
            if expected != got {
                return Err(Error::Shape { what, expected: expected as u64, got: got as u64 });
            }
        }
        Ok(())
    }

    fn csv(&self, to: &mut dyn Write, [left, right]: &[TableRows<'_>; 2]) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(to);
        let mut header = ["left_row", "right_row", "distance_m"].map(String::from).to_vec();
        header.extend(self.scores.map(|_| "score".to_owned()));
        header.extend(self.left.columns().iter().map(|name| format!("left.{name}")));
        header.extend(self.right.columns().iter().map(|name| format!("right.{name}")));
        writer.write_record(&header)?;
        for (i, (&[l, r], metres)) in self.rows.iter().zip(self.metres).enumerate() {
            let mut record = vec![l.to_string(), r.to_string(), format!("{metres:.3}")];
            record.extend(self.scores.map(|scores| match scores {
                Numbers::Integers(scores) => scores[i].to_string(),
                Numbers::Floats(scores) => scores[i].to_string(),
            }));
            record.extend(left.row(l as usize));
            record.extend(right.row(r as usize));
            writer.write_record(&record)?;
        }
        writer.flush()
    }

    #[cfg(not(feature = "parquet"))]
    fn write_parquet(&self, path: &Path) -> Result<()> {
        let source = io::Error::new(
            io::ErrorKind::Unsupported,
            "kauri writes Parquet files if it is built with the feature `parquet`",
        );
        Err(Error::Io { path: path.into(), source })
    }

    #[cfg(feature = "parquet")]
    fn write_parquet(&self, path: &Path) -> Result<()> {
        self.check()?;
        let rows = [0, 1].map(|side| self.rows.iter().map(|pair| pair[side]).collect::<Vec<u32>>());
        let numbers = |numbers: &Numbers| match numbers {
            Numbers::Integers(all) => Values::integers(all.clone()),
            Numbers::Floats(all) => Values::floats(all.clone()),
        };
        let ids = rows.each_ref().map(|rows| Values::integers(rows.iter().map(|&row| row.into()).collect()));
        let (metres, scores) = (Values::floats(self.metres.to_vec()), self.scores.map(numbers));
        let of_pairs = [("left_row", &ids[0]), ("right_row", &ids[1]), ("distance_m", &metres)];
        let of_pairs = of_pairs.into_iter().chain(scores.as_ref().map(|scores| ("score", scores)));
        let mut columns: Vec<_> =
            of_pairs.map(|(name, values)| Column { name: name.into(), values, rows: None }).collect();
        let tables = [("left", self.left, self.left.values()?), ("right", self.right, self.right.values()?)];
        let mut geometries = vec!["geometry".to_owned()];
        for ((side, table, values), rows) in tables.iter().zip(&rows) {
            let named = |name: &String| format!("{side}.{name}");
            columns.extend(table.columns().iter().zip(values).map(|(name, values)| Column {
                name: named(name),
                values,
                rows: Some(rows),
            }));
            if let Ok(PlaceColumns::Points(column)) = table.place_columns(None, None) {
                geometries.push(named(&table.columns()[column]));
            }
        }
        let places = Values::points(self.places);
        columns.push(Column { name: geometries[0].clone(), values: &places, rows: Some(&rows[0]) });
        write_parquet(path, self.rows.len(), &columns, Some(geo_metadata(&geometries)))
    }
}
