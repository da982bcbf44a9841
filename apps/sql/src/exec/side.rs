//! One side of a join: rows and their geometries.

use crate::error::Error;
use crate::geometry::{Geometries, Measure, TASK_ROWS, check_lon_lat, decode_boxes, decode_points};
use crate::options::NullsOption;
use datafusion::arrow::array::{Array, AsArray, UInt32Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::arrow::datatypes::Float64Type;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::resources_datafusion_err;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use kauri::LonLat;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;
use std::sync::Arc;

/// The geometries of a side in the types of kauri.
#[derive(Debug)]
pub(super) enum Shapes {
    Planar(Vec<[f64; 2]>),
    LonLat(Vec<LonLat>),
    Boxes(Vec<[[f64; 2]; 2]>),
}

/// The rows of a side that have a geometry. The id of a row is the index of its geometry.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) batch: RecordBatch,
    pub(super) shapes: Shapes,
    /// The score of each id, if the join has scores.
    pub(super) scores: Vec<f64>,
    /// The row of each id; `None` if that is the id.
    rows: Option<Vec<u32>>,
}

impl Side {
    /// Returns the number of geometries.
    pub(super) fn len(&self) -> usize {
        match &self.shapes {
            Shapes::Planar(points) => points.len(),
            Shapes::LonLat(points) => points.len(),
            Shapes::Boxes(boxes) => boxes.len(),
        }
    }

    /// Returns the point of an id: coordinates, or longitude and latitude.
    pub(super) fn point(&self, id: u32) -> [f64; 2] {
        match &self.shapes {
            Shapes::Planar(points) => points[id as usize],
            Shapes::LonLat(points) => [points[id as usize].lon, points[id as usize].lat],
            Shapes::Boxes(boxes) => boxes[id as usize][0],
        }
    }

    /// Converts ids to rows.
    pub(super) fn rows_of(&self, mut ids: Vec<u32>) -> Vec<u32> {
        if let Some(rows) = &self.rows {
            ids.iter_mut().for_each(|id| *id = rows[*id as usize]);
        }
        ids
    }
}

/// Reads the geometries of the rows of a side.
#[derive(Clone, Debug)]
pub(super) struct SideReader {
    geometry: Arc<dyn PhysicalExpr>,
    score: Option<Arc<dyn PhysicalExpr>>,
    /// The measure of points; `None` for boxes.
    measure: Option<Measure>,
    nulls: NullsOption,
    /// True if ids are in the order of coordinates and of the other columns.
    is_sorted: bool,
}

impl SideReader {
    pub(super) fn new(
        geometry: Arc<dyn PhysicalExpr>,
        score: Option<Arc<dyn PhysicalExpr>>,
        measure: Option<Measure>,
        nulls: NullsOption,
    ) -> Self {
        Self { geometry, score, measure, nulls, is_sorted: false }
    }

    /// Orders ids by their coordinates and by the other columns, so that ids do not depend on the order of rows. Only rows that are equal
    /// in all columns may change places.
    pub(super) fn sorted(mut self) -> Self {
        self.is_sorted = true;
        self
    }

    /// Returns true for points, and false for boxes.
    pub(super) fn has_points(&self) -> bool {
        self.measure.is_some()
    }

    /// Returns the bytes that the geometries of a row take.
    pub(super) fn row_bytes(&self) -> usize {
        let shape = if self.measure.is_some() { 16 } else { 32 };
        shape + if self.score.is_some() { 8 } else { 0 } + if self.is_sorted { 24 } else { 0 }
    }

    /// Reads a batch, whose rows are counted from `first_row` in errors.
    pub(super) fn read(&self, batch: RecordBatch, first_row: u64) -> Result<Side> {
        if batch.num_rows() >= u32::MAX as usize {
            let rows = batch.num_rows();
            return Err(resources_datafusion_err!(
                "{rows} rows on one side of a join: at most {} are supported",
                u32::MAX - 1
            ));
        }
        let array = self.geometry.evaluate(&batch)?.into_array(batch.num_rows())?;
        let column = name_of(&self.geometry);
        let scores = self.scores(&batch)?;
        let has_score = |row: usize| scores.as_ref().is_none_or(|scores| scores.has(row));
        match self.measure {
            None => {
                let boxes = decode_boxes(&array, &column, first_row).map_err(Error::in_execution)?;
                let ids = self.present(&boxes, has_score, &column, first_row)?;
                let shapes = selected(&boxes.values, &ids, |&[x0, y0, x1, y1]| [[x0, y0], [x1, y1]]);
                Ok(Side { batch, shapes: Shapes::Boxes(shapes), scores: Vec::new(), rows: ids })
            }
            Some(measure) => {
                let points = decode_points(&array, &column, first_row).map_err(Error::in_execution)?;
                if measure == Measure::LonLat {
                    check_lon_lat(&points, &column, first_row).map_err(Error::in_execution)?;
                }
                let mut ids = self.present(&points, has_score, &column, first_row)?;
                if self.is_sorted {
                    ids = Some(canonical_order(&points.values, ids, &batch)?);
                }
                let shapes = match measure {
                    Measure::Planar => Shapes::Planar(match ids {
                        None => points.values.into_owned(),
                        Some(_) => selected(&points.values, &ids, |&point| point),
                    }),
                    Measure::LonLat => {
                        Shapes::LonLat(selected(&points.values, &ids, |&[lon, lat]| LonLat::new(lon, lat)))
                    }
                };
                let scores =
                    scores.map_or_else(Vec::new, |scores| selected(&scores.values, &ids, |&score| score));
                Ok(Side { batch, shapes, scores, rows: ids })
            }
        }
    }

    fn scores(&self, batch: &RecordBatch) -> Result<Option<Geometries<'static, f64>>> {
        let Some(score) = &self.score else { return Ok(None) };
        let array = score.evaluate(batch)?.into_array(batch.num_rows())?;
        let array = array.as_primitive::<Float64Type>();
        Ok(Some(Geometries { values: array.values().to_vec().into(), present: array.nulls().cloned() }))
    }

    /// Returns the rows that have a geometry and a score; `None` if all have.
    fn present<T: Clone>(
        &self,
        geometries: &Geometries<'_, T>,
        has_score: impl Fn(usize) -> bool,
        column: &str,
        first_row: u64,
    ) -> Result<Option<Vec<u32>>> {
        let rows = 0..geometries.values.len();
        let is_present = |&row: &usize| geometries.has(row) && has_score(row);
        match rows.clone().find(|row| !is_present(row)) {
            None => Ok(None),
            Some(row) if self.nulls == NullsOption::Error => {
                let row = first_row + row as u64;
                Err(Error::Missing { column: column.into(), row }.in_execution())
            }
            Some(_) => Ok(Some(rows.filter(is_present).map(|row| row as u32).collect())),
        }
    }
}

/// Returns the name of a column, or the text of another expression.
fn name_of(expr: &Arc<dyn PhysicalExpr>) -> String {
    expr.downcast_ref::<Column>().map_or_else(|| expr.to_string(), |column| column.name().into())
}

fn selected<T: Sync, U: Send>(
    values: &[T],
    rows: &Option<Vec<u32>>,
    convert: impl Fn(&T) -> U + Send + Sync,
) -> Vec<U> {
    match rows {
        None => values.par_iter().with_min_len(TASK_ROWS).map(convert).collect(),
        Some(rows) => {
            let value = |&row: &u32| convert(&values[row as usize]);
            rows.par_iter().with_min_len(TASK_ROWS).map(value).collect()
        }
    }
}

/// Returns the rows in the order of their points, and rows of equal points in the order of their columns.
fn canonical_order(points: &[[f64; 2]], rows: Option<Vec<u32>>, batch: &RecordBatch) -> Result<Vec<u32>> {
    let rows = rows.unwrap_or_else(|| (0..points.len() as u32).collect());
    let keyed = |row: u32| (points[row as usize], row);
    let mut order: Vec<([f64; 2], u32)> = rows.into_par_iter().with_min_len(TASK_ROWS).map(keyed).collect();
    order.par_sort_unstable_by(|(a, row), (b, other)| {
        a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])).then(row.cmp(other))
    });
    let mut sorted: Vec<u32> = order.par_iter().with_min_len(TASK_ROWS).map(|&(_, row)| row).collect();
    let is_equal = |a: &([f64; 2], u32), b: &([f64; 2], u32)| a.0.map(f64::to_bits) == b.0.map(f64::to_bits);
    let mut begin = 0;
    for group in order.chunk_by(is_equal) {
        if group.len() > 1 {
            sort_by_columns(&mut sorted[begin..begin + group.len()], batch)?;
        }
        begin += group.len();
    }
    Ok(sorted)
}

/// Sorts rows by all columns. Columns of types that have no order leave the rows as they are.
fn sort_by_columns(rows: &mut [u32], batch: &RecordBatch) -> Result<()> {
    let Some(keys) = keys(&take_record_batch(batch, &UInt32Array::from(rows.to_vec()))?)? else {
        return Ok(());
    };
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|&a, &b| keys.row(a).cmp(&keys.row(b)));
    let sorted: Vec<u32> = order.into_iter().map(|index| rows[index]).collect();
    rows.copy_from_slice(&sorted);
    Ok(())
}

/// Returns keys in the order of all columns; `None` if a column's type has no order.
pub(super) fn keys(batch: &RecordBatch) -> Result<Option<Rows>> {
    let fields: Vec<SortField> =
        batch.schema().fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
    if fields.is_empty() || !RowConverter::supports_fields(&fields) {
        return Ok(None);
    }
    Ok(Some(RowConverter::new(fields)?.convert_columns(batch.columns())?))
}
