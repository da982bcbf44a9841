//! The rows of an input in the batches in which they came.

use datafusion::arrow::array::{Array, ArrayRef, new_empty_array, new_null_array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{concat, interleave_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::Result;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use std::sync::Arc;

/// The columns of a side that a result takes values of.
#[derive(Clone, Debug)]
pub(super) enum Columns {
    /// All columns.
    All,
    /// The columns of these indices, in any order.
    Some(Vec<usize>),
}

impl Columns {
    fn has(&self, index: usize) -> bool {
        match self {
            Self::All => true,
            Self::Some(indices) => indices.contains(&index),
        }
    }
}

/// Rows in batches. A row is counted over all batches.
#[derive(Debug)]
pub(super) struct BatchedRows {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// The first row of each batch.
    begins: Vec<usize>,
    num_rows: usize,
}

impl BatchedRows {
    pub(super) fn new(schema: SchemaRef) -> Self {
        Self { schema, batches: Vec::new(), begins: Vec::new(), num_rows: 0 }
    }

    pub(super) fn push(&mut self, batch: RecordBatch) {
        self.begins.push(self.num_rows);
        self.num_rows += batch.num_rows();
        self.batches.push(batch);
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    pub(super) fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Returns the first row of a batch.
    pub(super) fn begin(&self, batch: usize) -> u32 {
        self.begins[batch] as u32
    }

    /// Cuts a list with a value for each row into a part for each batch. An empty list has empty parts.
    pub(super) fn parts<'a, T>(&self, mut values: &'a mut [T]) -> Vec<&'a mut [T]> {
        let part = |batch: &RecordBatch| {
            let len = batch.num_rows().min(values.len());
            values.split_off_mut(..len).unwrap_or_default()
        };
        self.batches.iter().map(part).collect()
    }

    /// Calls a function with each batch, its first row and its part, on all threads. Of several errors, that of the first batch is returned.
    pub(super) fn each_batch<P: Send, R: Send>(
        &self,
        parts: Vec<P>,
        visit: impl Fn(&RecordBatch, u64, P) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let batches = self.batches.par_iter().zip(&self.begins).zip(parts);
        let results: Vec<Result<R>> =
            batches.map(|((batch, &begin), part)| visit(batch, begin as u64, part)).collect();
        results.into_iter().collect()
    }

    /// Returns the rows of the bits that are set, of which each batch has some; `None` if all are set.
    pub(super) fn rows_of(&self, bits: &[Option<NullBuffer>]) -> Option<Vec<u32>> {
        bits.iter().flatten().any(|bits| bits.null_count() > 0).then(|| {
            let batches = self.batches.iter().zip(&self.begins).zip(bits);
            let rows = |((batch, &begin), bits): ((&RecordBatch, &usize), &Option<NullBuffer>)| {
                let is_set = |&row: &usize| bits.as_ref().is_none_or(|bits| bits.is_valid(row));
                (0..batch.num_rows()).filter(is_set).map(|row| (begin + row) as u32).collect::<Vec<_>>()
            };
            batches.flat_map(rows).collect()
        })
    }

    /// Copies rows to one batch.
    pub(super) fn take(&self, rows: &[u32]) -> Result<RecordBatch> {
        let place = |&row: &u32| {
            let batch = self.begins.partition_point(|&begin| begin <= row as usize) - 1;
            (batch, row as usize - self.begins[batch])
        };
        if rows.is_empty() {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        }
        let places: Vec<_> = rows.iter().map(place).collect();
        let batches: Vec<_> = self.batches.iter().collect();
        Ok(interleave_record_batch(&batches, &places)?)
    }

    /// Puts all rows together in one batch. Each thread takes a column. Columns that are not chosen become columns of nulls, which take no
    /// memory.
    pub(super) fn together(&self, columns: &Columns) -> Result<RecordBatch> {
        let column = |index: usize| -> Result<ArrayRef> {
            if !columns.has(index) {
                return Ok(new_null_array(&DataType::Null, self.num_rows));
            }
            if self.batches.is_empty() {
                return Ok(new_empty_array(self.schema.field(index).data_type()));
            }
            let arrays: Vec<&dyn Array> =
                self.batches.iter().map(|batch| batch.column(index).as_ref()).collect();
            Ok(concat(&arrays)?)
        };
        let indices = 0..self.schema.fields().len();
        let arrays = indices.into_par_iter().map(column).collect::<Result<Vec<_>>>()?;
        let field = |(field, array): (&Arc<Field>, &ArrayRef)| {
            let field = Field::clone(field);
            if field.data_type() == array.data_type() {
                return field;
            }
            Field::new(field.name(), DataType::Null, true)
        };
        let fields: Vec<Field> = self.schema.fields().iter().zip(&arrays).map(field).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.num_rows));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?)
    }
}
