//! Writes pairs as GeoParquet, with one or more row groups for each batch.

use std::io::Write;
use std::path::Path;

use super::{Geometries, NO_PAIRS, PairSink, PairTable, Pairs};
use crate::error::Result;
use crate::io::table::{Column, Numbers, ParquetWriter, Values, geo_metadata};

/// Writes pairs as a Parquet file.
pub(super) struct ParquetPairs<'a, 'w> {
    tables: PairTable<'a>,
    values: [Vec<Values>; 2],
    geometries: Values,
    path: &'a Path,
    /// The file until its columns are known; then `writer` owns it.
    file: Option<&'w mut (dyn Write + Send)>,
    writer: Option<ParquetWriter<'w>>,
}

impl<'a, 'w> ParquetPairs<'a, 'w> {
    /// Reads all columns of both tables.
    pub(super) fn new(
        tables: PairTable<'a>,
        path: &'a Path,
        file: &'w mut (dyn Write + Send),
    ) -> Result<Self> {
        let values = [tables.left.values()?, tables.right.values()?];
        let geometries = match tables.geometries {
            Geometries::Places(places) => Values::points(places),
            Geometries::Boxes(boxes) => Values::boxes(boxes),
        };
        Ok(Self { tables, values, geometries, path, file: Some(file), writer: None })
    }

    /// Returns the metadata of the geometry columns: the left places or boxes, and the geometries of both tables.
    fn metadata(&self) -> (String, String) {
        let mut columns = Vec::new();
        for (side, table) in [("left", self.tables.left), ("right", self.tables.right)] {
            let (column, crs) = table.geometry_column();
            columns.extend(column.map(|column| (format!("{side}.{}", table.columns()[column]), crs)));
        }
        let (first_type, crs) = match self.tables.geometries {
            Geometries::Places(_) => {
                columns.retain(|(_, crs)| crs.is_none());
                ("Point", None)
            }
            Geometries::Boxes(_) => ("Polygon", self.tables.left.geometry_column().1),
        };
        columns.insert(0, ("geometry".to_owned(), crs));
        geo_metadata(first_type, &columns)
    }
}

impl PairSink for ParquetPairs<'_, '_> {
    fn take(&mut self, pairs: Pairs<'_>) -> Result<()> {
        let rows = [0, 1].map(|side| pairs.rows.iter().map(|pair| pair[side]).collect::<Vec<u32>>());
        let ids = rows.each_ref().map(|rows| Values::integers(rows.iter().map(|&row| row.into()).collect()));
        let distances = pairs.distances.map(|distances| Values::floats(distances.to_vec()));
        let scores = pairs.scores.map(|scores| match scores {
            Numbers::Integers(all) => Values::integers(all.clone()),
            Numbers::Floats(all) => Values::floats(all.clone()),
        });
        let distance_column = self.tables.geometries.distance_column();
        let pair_columns = [("left_row", &ids[0]), ("right_row", &ids[1])].into_iter();
        let pair_columns = pair_columns.chain(distances.as_ref().map(|all| (distance_column, all)));
        let pair_columns = pair_columns.chain(scores.as_ref().map(|scores| ("score", scores)));
        let mut columns: Vec<_> =
            pair_columns.map(|(name, values)| Column { name: name.into(), values, rows: None }).collect();
        let sides = [("left", self.tables.left), ("right", self.tables.right)];
        for (((side, table), values), rows) in sides.into_iter().zip(&self.values).zip(&rows) {
            columns.extend(table.columns().iter().zip(values).map(|(name, values)| Column {
                name: format!("{side}.{name}"),
                values,
                rows: Some(rows),
            }));
        }
        columns.push(Column { name: "geometry".into(), values: &self.geometries, rows: Some(&rows[0]) });
        if let Some(file) = self.file.take() {
            let metadata = Some(self.metadata());
            self.writer = Some(ParquetWriter::new(self.path, file, &columns, metadata)?);
        }
        self.writer.as_mut().map_or(Ok(()), |writer| writer.write(pairs.rows.len(), &columns))
    }

    fn finish(&mut self) -> Result<()> {
        if self.writer.is_none() {
            // A table without pairs has columns too.
            self.take(NO_PAIRS)?;
        }
        self.writer.take().map_or(Ok(()), ParquetWriter::finish)
    }
}
