//! Reads the geometries and the scores of rows.

use super::order::in_canonical_order;
use super::rows::{BatchedRows, Columns};
use super::scored::ScoredRows;
use super::side::{Shapes, Side};
use crate::error::Error;
use crate::geometry::{Measure, TASK_ROWS, check_lon_lat, check_points, decode_boxes, decode_points};
use crate::options::NullsOption;
use bytemuck::allocation::cast_vec;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::buffer::{NullBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::Float64Type;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::resources_datafusion_err;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use kauri::Device;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use std::sync::Arc;

/// Reads the geometries and the scores of the rows of a side.
#[derive(Clone, Debug)]
pub(super) struct SideReader {
    geometry: Arc<dyn PhysicalExpr>,
    score: Option<Arc<dyn PhysicalExpr>>,
    /// The measure of points; `None` for boxes.
    measure: Option<Measure>,
    nulls: NullsOption,
    columns: Columns,
    /// The device that brings ids into the canonical order; `None` if they are in the order of rows.
    sorts_on: Option<Device>,
}

/// The geometries and the scores of a side, and the row of each.
type Read = (Shapes, Vec<f64>, Option<Vec<u32>>);

/// The scores of a batch, if the join has some, and the rows that have a point and a score; `None` if all have.
struct BatchPoints {
    scores: ScalarBuffer<f64>,
    present: Option<NullBuffer>,
}

impl SideReader {
    /// Creates a reader of geometries, and of scores if the join has some. `columns` are those that the result has.
    pub(super) fn new(
        geometry: Arc<dyn PhysicalExpr>,
        score: Option<Arc<dyn PhysicalExpr>>,
        measure: Option<Measure>,
        nulls: NullsOption,
        columns: Columns,
    ) -> Self {
        Self { geometry, score, measure, nulls, columns, sorts_on: None }
    }

    /// Gives ids in the [canonical order](super::order).
    pub(super) fn sorted(mut self, device: &Device) -> Self {
        self.sorts_on = Some(device.clone());
        self
    }

    /// Keeps all columns of the rows.
    pub(super) fn with_all_columns(mut self) -> Self {
        self.columns = Columns::All;
        self
    }

    /// Returns true for points, and false for boxes.
    pub(super) fn has_points(&self) -> bool {
        self.measure.is_some()
    }

    /// Returns the bytes that a row takes beside its columns.
    pub(super) fn row_bytes(&self) -> usize {
        let shape = if self.has_points() { 16 } else { 32 };
        shape + if self.score.is_some() { 8 } else { 0 } + if self.sorts_on.is_some() { 24 } else { 0 }
    }

    /// Reads rows, which are counted from `first_row` in errors. Points with scores are only checked.
    pub(super) fn read(&self, rows: BatchedRows, first_row: u64) -> Result<Side> {
        if rows.num_rows() >= u32::MAX as usize {
            return Err(resources_datafusion_err!(
                "{} rows on one side of a join: at most {} are supported",
                rows.num_rows(),
                u32::MAX - 1
            ));
        }
        match (self.measure, &self.score) {
            (Some(measure), Some(_)) => {
                let batch = RecordBatch::new_empty(Arc::clone(rows.schema()));
                let scores = rows.each_batch(vec![(); rows.batches().len()], |batch, begin, ()| {
                    let read = self.batch_points(measure, batch, first_row + begin, None)?;
                    Ok(Float64Array::new(read.scores, read.present))
                })?;
                let shapes = Shapes::Scored(ScoredRows::new(self.clone(), rows, scores));
                Ok(Side { batch, shapes, scores: Vec::new(), rows: None })
            }
            _ => self.read_now(&rows, first_row),
        }
    }

    /// Reads rows and all their geometries.
    pub(super) fn read_now(&self, rows: &BatchedRows, first_row: u64) -> Result<Side> {
        let read = || match self.measure {
            None => self.boxes(rows, first_row),
            Some(measure) => self.points(measure, rows, first_row),
        };
        let (batch, read) = rayon::join(|| rows.together(&self.columns), read);
        let (shapes, scores, rows) = read?;
        Ok(Side { batch: batch?, shapes, scores, rows })
    }

    fn boxes(&self, rows: &BatchedRows, first_row: u64) -> Result<Read> {
        let mut boxes = vec![[0.0; 4]; rows.num_rows()];
        let present = rows.each_batch(rows.parts(&mut boxes), |batch, begin, boxes| {
            let array = evaluate(&self.geometry, batch)?;
            let read = decode_boxes(&array, &name_of(&self.geometry), first_row + begin);
            let read = read.map_err(Error::in_execution)?;
            boxes.copy_from_slice(&read.values);
            self.check_present(read.present.as_ref(), &self.geometry, first_row + begin)?;
            Ok(read.present)
        })?;
        let ids = rows.rows_of(&present);
        Ok((Shapes::Boxes(cast_vec(selected(boxes, &ids))), Vec::new(), ids))
    }

    fn points(&self, measure: Measure, rows: &BatchedRows, first_row: u64) -> Result<Read> {
        let mut points = vec![[0.0; 2]; rows.num_rows()];
        let mut scores = vec![0.0; if self.score.is_some() { rows.num_rows() } else { 0 }];
        let parts = rows.parts(&mut points).into_iter().zip(rows.parts(&mut scores)).collect();
        let present = rows.each_batch(parts, |batch, begin, (points, scores): (&mut [_], &mut [f64])| {
            let read = self.batch_points(measure, batch, first_row + begin, Some(points))?;
            scores.copy_from_slice(&read.scores);
            Ok(read.present)
        })?;
        let mut ids = rows.rows_of(&present);
        let (mut points, scores) = (selected(points, &ids), selected(scores, &ids));
        if let Some(device) = &self.sorts_on {
            let (sorted, sorted_ids) = in_canonical_order(device, &points, ids.as_deref(), rows)?;
            (points, ids) = (sorted, Some(sorted_ids));
        }
        let shapes = match measure {
            Measure::Planar => Shapes::Planar(points),
            Measure::LonLat => Shapes::LonLat(cast_vec(points)),
        };
        Ok((shapes, scores, ids))
    }

    /// Checks the points and the scores of a batch, and copies the points to `to`.
    fn batch_points(
        &self,
        measure: Measure,
        batch: &RecordBatch,
        first_row: u64,
        to: Option<&mut [[f64; 2]]>,
    ) -> Result<BatchPoints> {
        let (array, column) = (evaluate(&self.geometry, batch)?, name_of(&self.geometry));
        let present = match to {
            None => check_points(&array, measure, &column, first_row).map_err(Error::in_execution)?,
            Some(to) => {
                let points = decode_points(&array, &column, first_row).map_err(Error::in_execution)?;
                if measure == Measure::LonLat {
                    check_lon_lat(&points, &column, first_row).map_err(Error::in_execution)?;
                }
                to.copy_from_slice(&points.values);
                points.present
            }
        };
        self.check_present(present.as_ref(), &self.geometry, first_row)?;
        let Some(score) = &self.score else {
            return Ok(BatchPoints { scores: Vec::new().into(), present });
        };
        let (array, column) = (evaluate(score, batch)?, name_of(score));
        let scores = array.as_primitive::<Float64Type>();
        self.check_present(scores.nulls(), score, first_row)?;
        let is_invalid = |&(row, score): &(usize, &f64)| !score.is_finite() && scores.is_valid(row);
        if let Some((row, &value)) = scores.values().iter().enumerate().find(is_invalid) {
            return Err(Error::NotFinite { column, row: first_row + row as u64, value }.in_execution());
        }
        let present = NullBuffer::union(present.as_ref(), scores.nulls());
        Ok(BatchPoints { scores: scores.values().clone(), present })
    }

    /// Checks that no value is missing, if that is an error.
    fn check_present(
        &self,
        present: Option<&NullBuffer>,
        of: &Arc<dyn PhysicalExpr>,
        first_row: u64,
    ) -> Result<()> {
        let missing = present.and_then(|present| present.iter().position(|is_present| !is_present));
        match missing {
            Some(row) if self.nulls == NullsOption::Error => {
                let row = first_row + row as u64;
                Err(Error::Missing { column: name_of(of), row }.in_execution())
            }
            _ => Ok(()),
        }
    }
}

fn evaluate(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<ArrayRef> {
    expr.evaluate(batch)?.into_array(batch.num_rows())
}

/// Returns the name of a column, or the text of another expression.
fn name_of(expr: &Arc<dyn PhysicalExpr>) -> String {
    expr.downcast_ref::<Column>().map_or_else(|| expr.to_string(), |column| column.name().into())
}

/// Returns the values of rows; all if `None`.
fn selected<T: Copy + Send + Sync>(values: Vec<T>, rows: &Option<Vec<u32>>) -> Vec<T> {
    let Some(rows) = rows else { return values };
    if values.is_empty() {
        return values;
    }
    rows.par_iter().with_min_len(TASK_ROWS).map(|&row| values[row as usize]).collect()
}
