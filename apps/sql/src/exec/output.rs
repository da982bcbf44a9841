//! The result of a join: batches of the columns of pairs.

use super::OutputIndex;
use super::side::Side;
use datafusion::arrow::array::{ArrayRef, Float64Array, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Pairs of a left and a right row or id.
#[derive(Debug)]
pub(super) struct Pairs {
    pub(super) left: Vec<u32>,
    pub(super) right: Vec<u32>,
    /// The distance of each pair, if the result has distances.
    pub(super) distances: Vec<f64>,
    /// The score of each pair, if the result has scores.
    pub(super) scores: Vec<f64>,
}

/// Sends the result of a partition to its stream.
#[derive(Clone, Debug)]
pub(super) struct Output {
    schema: SchemaRef,
    columns: Vec<OutputIndex>,
    batch_size: usize,
    sender: Sender<Result<RecordBatch>>,
    metrics: BaselineMetrics,
}

impl Output {
    pub(super) fn new(
        schema: SchemaRef,
        columns: Vec<OutputIndex>,
        sender: Sender<Result<RecordBatch>>,
        context: &TaskContext,
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
    ) -> Self {
        let batch_size = context.session_config().batch_size();
        let metrics = BaselineMetrics::new(metrics, partition);
        Self { schema, columns, batch_size, sender, metrics }
    }

    /// Returns true if the stream has been dropped.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends pairs of ids, and waits while the stream is full. Breaks if the stream has been dropped.
    pub(super) fn send(&self, left: &Side, right: &Side, pairs: Pairs) -> ControlFlow<()> {
        let pairs = Pairs { left: left.rows_of(pairs.left), right: right.rows_of(pairs.right), ..pairs };
        self.send_rows(&left.batch, &right.batch, pairs)
    }

    /// Sends pairs of rows as [`send`](Self::send) sends pairs of ids.
    pub(super) fn send_rows(&self, left: &RecordBatch, right: &RecordBatch, pairs: Pairs) -> ControlFlow<()> {
        let len = pairs.left.len();
        let pairs = PairArrays::new(pairs);
        for begin in (0..len).step_by(self.batch_size) {
            let batch = self.batch(left, right, &pairs.slice(begin, self.batch_size.min(len - begin)));
            let is_error = batch.is_err();
            if self.sender.blocking_send(batch).is_err() || is_error {
                return ControlFlow::Break(());
            }
        }
        if self.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn batch(&self, left: &RecordBatch, right: &RecordBatch, pairs: &PairArrays) -> Result<RecordBatch> {
        let column = |output: &OutputIndex| -> Result<ArrayRef> {
            Ok(match *output {
                OutputIndex::Left(index) => take(left.column(index), &pairs.left, None)?,
                OutputIndex::Right(index) => take(right.column(index), &pairs.right, None)?,
                OutputIndex::Distance => Arc::new(pairs.distances.clone()),
                OutputIndex::Score => Arc::new(pairs.scores.clone()),
            })
        };
        let columns = self.columns.iter().map(column).collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(pairs.left.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        self.metrics.record_output(batch.num_rows());
        Ok(batch)
    }
}

/// Pairs as arrays, which are cut without copies.
struct PairArrays {
    left: UInt32Array,
    right: UInt32Array,
    distances: Float64Array,
    scores: Float64Array,
}

impl PairArrays {
    fn new(pairs: Pairs) -> Self {
        Self {
            left: pairs.left.into(),
            right: pairs.right.into(),
            distances: pairs.distances.into(),
            scores: pairs.scores.into(),
        }
    }

    fn slice(&self, begin: usize, len: usize) -> Self {
        let optional =
            |values: &Float64Array| if values.is_empty() { values.clone() } else { values.slice(begin, len) };
        Self {
            left: self.left.slice(begin, len),
            right: self.right.slice(begin, len),
            distances: optional(&self.distances),
            scores: optional(&self.scores),
        }
    }
}
