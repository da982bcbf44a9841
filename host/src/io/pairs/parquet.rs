//! Writes pairs as GeoParquet, with one or more row groups for each batch.

use std::io::Write;
use std::path::Path;

use super::{PairSink, PairTable, Pairs};
use crate::error::Result;
use crate::io::table::{Column, Numbers, ParquetWriter, PlaceColumns, Values, geo_metadata};

/// Writes pairs as a Parquet file.
pub(super) struct ParquetPairs<'a, 'w> {
    tables: PairTable<'a>,
    values: [Vec<Values>; 2],
    places: Values,
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
        let places = Values::points(tables.places);
        Ok(Self { tables, values, places, path, file: Some(file), writer: None })
    }

    /// Returns the geometry columns, the left places first.
    fn geometries(&self) -> Vec<String> {
        let table_geometries = [("left", self.tables.left), ("right", self.tables.right)]
            .into_iter()
            .filter_map(|(side, table)| match table.place_columns(None, None) {
                Ok(PlaceColumns::Points(column)) => Some(format!("{side}.{}", table.columns()[column])),
                _ => None,
            });
        std::iter::once("geometry".to_owned()).chain(table_geometries).collect()
    }
}

impl PairSink for ParquetPairs<'_, '_> {
    fn take(&mut self, pairs: Pairs<'_>) -> Result<()> {
        let rows = [0, 1].map(|side| pairs.rows.iter().map(|pair| pair[side]).collect::<Vec<u32>>());
        let ids = rows.each_ref().map(|rows| Values::integers(rows.iter().map(|&row| row.into()).collect()));
        let meters = Values::floats(pairs.meters.to_vec());
        let scores = pairs.scores.map(|scores| match scores {
            Numbers::Integers(all) => Values::integers(all.clone()),
            Numbers::Floats(all) => Values::floats(all.clone()),
        });
        let pair_columns = [("left_row", &ids[0]), ("right_row", &ids[1]), ("distance_m", &meters)];
        let pair_columns = pair_columns.into_iter().chain(scores.as_ref().map(|scores| ("score", scores)));
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
        columns.push(Column { name: "geometry".into(), values: &self.places, rows: Some(&rows[0]) });
        if let Some(file) = self.file.take() {
            let metadata = Some(geo_metadata(&self.geometries()));
            self.writer = Some(ParquetWriter::new(self.path, file, &columns, metadata)?);
        }
        self.writer.as_mut().map_or(Ok(()), |writer| writer.write(pairs.rows.len(), &columns))
    }

    fn finish(&mut self) -> Result<()> {
        if self.writer.is_none() {
            // A table without pairs has columns too.
            self.take(Pairs { rows: &[], meters: &[], scores: None })?;
        }
        self.writer.take().map_or(Ok(()), ParquetWriter::finish)
    }
}
