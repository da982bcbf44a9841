//! Writes pairs as GeoParquet, with one or more row groups for each batch. The columns of a large table are read again for each row group.

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use super::{BatchRows, Geometries, NO_PAIRS, PairSink, PairTable, Pairs};
use crate::error::Result;
use crate::io::table::{Column, NO_ROW, Numbers, ParquetWriter, TypedRows, Values, geo_metadata};

/// The most rows of a row group.
const ROWS_OF_GROUP: usize = 1 << 20;

/// Writes pairs as a Parquet file.
pub(super) struct ParquetPairs<'a, 'w> {
    tables: PairTable<'a>,
    rows: [TypedRows<'a>; 2],
    path: &'a Path,
    /// The file until its columns are known; then `writer` owns it.
    file: Option<&'w mut (dyn Write + Send)>,
    writer: Option<ParquetWriter<'w>>,
}

impl<'a, 'w> ParquetPairs<'a, 'w> {
    /// Finds the types of all columns of both tables.
    pub(super) fn new(
        tables: PairTable<'a>,
        path: &'a Path,
        file: &'w mut (dyn Write + Send),
    ) -> Result<Self> {
        let rows = [TypedRows::new(tables.left)?, TypedRows::new(tables.right)?];
        Ok(Self { tables, rows, path, file: Some(file), writer: None })
    }

    /// Calls `visit` with each column of some pairs, in the order of the file.
    fn each_column(
        &self,
        pairs: Pairs<'_>,
        part: Range<usize>,
        mut visit: impl FnMut(&Column<'_>) -> Result<()>,
    ) -> Result<()> {
        let rows = &pairs.rows[part.clone()];
        let numbers = pair_columns(self.tables.geometries.distance_column(), pairs, part);
        for (name, values) in &numbers {
            let may_have_nulls = *name != "left_row";
            visit(&Column { name: (*name).into(), values, rows: None, may_have_nulls })?;
        }
        let sides = [("left", self.tables.left), ("right", self.tables.right)].into_iter().enumerate();
        for (side, (name, table)) in sides {
            let BatchRows { distinct, positions } = BatchRows::new(rows.iter().map(|pair| pair[side]));
            let mut names = table.columns().iter().map(|column| format!("{name}.{column}"));
            self.rows[side].each_column(&distinct, |values| {
                let name = names.next().unwrap_or_default();
                let rows = Some(&positions[..]);
                visit(&Column { name, values: &values, rows, may_have_nulls: true })
            })?;
        }
        let left = rows.iter().map(|&[left, _]| left as usize);
        let values = match self.tables.geometries {
            Geometries::Places(all) => Values::points(left.map(|row| [all[row].lon, all[row].lat])),
            Geometries::Points(all) => Values::points(left.map(|row| all[row])),
            Geometries::Boxes(all) => Values::boxes(left.map(|row| all[row])),
        };
        visit(&Column { name: "geometry".into(), values: &values, rows: None, may_have_nulls: false })
    }

    /// Begins the file with the types of the columns of these pairs.
    fn begin(&mut self, pairs: Pairs<'_>) -> Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let mut columns = Vec::new();
        self.each_column(pairs, 0..0, |column| {
            columns.push((column.name.clone(), column.values.clone(), column.may_have_nulls));
            Ok(())
        })?;
        let columns: Vec<_> = columns
            .iter()
            .map(|(name, values, nulls)| Column {
                name: name.clone(),
                values,
                rows: None,
                may_have_nulls: *nulls,
            })
            .collect();
        self.writer = Some(ParquetWriter::new(self.path, file, &columns, Some(self.metadata()))?);
        Ok(())
    }

    /// Returns the metadata of the geometry columns: the left places, points or boxes, and the geometries of both tables.
    fn metadata(&self) -> (String, String) {
        let mut columns = Vec::new();
        for (side, table) in [("left", self.tables.left), ("right", self.tables.right)] {
            let (column, crs) = table.geometry_column();
            columns.extend(column.map(|column| (format!("{side}.{}", table.columns()[column]), crs)));
        }
        let crs = self.tables.left.geometry_column().1;
        let (first_type, crs) = match self.tables.geometries {
            Geometries::Places(_) => {
                columns.retain(|(_, crs)| crs.is_none());
                ("Point", None)
            }
            Geometries::Points(_) => ("Point", crs),
            Geometries::Boxes(_) => ("Polygon", crs),
        };
        columns.insert(0, ("geometry".to_owned(), crs));
        geo_metadata(first_type, &columns)
    }
}

/// Returns row numbers, distances and scores of some pairs, with the names of their columns.
fn pair_columns(
    distance_column: &'static str,
    pairs: Pairs<'_>,
    part: Range<usize>,
) -> Vec<(&'static str, Values)> {
    let rows = &pairs.rows[part.clone()];
    let left = Values::integers(rows.iter().map(|&[left, _]| left.into()).collect());
    let has_right = || rows.iter().map(|&[_, right]| right != NO_ROW);
    let right = rows.iter().filter(|&&[_, right]| right != NO_ROW).map(|&[_, right]| right.into());
    let mut columns =
        vec![("left_row", left), ("right_row", Values::integers(right.collect()).with_nulls(has_right()))];
    columns.extend(pairs.distances.map(|all| {
        let present = all[part.clone()].iter().zip(has_right()).filter(|&(_, has_right)| has_right);
        let values = Values::floats(present.map(|(&distance, _)| distance).collect());
        (distance_column, values.with_nulls(has_right()))
    }));
    columns.extend(pairs.scores.map(|scores| {
        let values = match scores {
            Numbers::Integers(all) => Values::integers(all[part].to_vec()),
            Numbers::Floats(all) => Values::floats(all[part].to_vec()),
        };
        ("score", values)
    }));
    columns
}

impl PairSink for ParquetPairs<'_, '_> {
    fn take(&mut self, pairs: Pairs<'_>) -> Result<()> {
        self.begin(pairs)?;
        for first in (0..pairs.rows.len()).step_by(ROWS_OF_GROUP) {
            let Some(mut writer) = self.writer.take() else { break };
            let mut group = writer.group()?;
            let part = first..pairs.rows.len().min(first + ROWS_OF_GROUP);
            self.each_column(pairs, part, |column| group.write(column))?;
            group.finish()?;
            self.writer = Some(writer);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        // A table without pairs has columns too.
        self.begin(NO_PAIRS)?;
        self.writer.take().map_or(Ok(()), ParquetWriter::finish)
    }
}
