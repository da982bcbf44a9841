//! Gathers the batches of the left side.

use super::build::in_background;
use super::memory::{batch_bytes, probe_bytes};
use super::reader::SideReader;
use super::rows::BatchedRows;
use super::side::Side;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::Count;
use futures::StreamExt;

/// The left rows that are joined at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatherRows {
    /// At least this many rows; fewer if they do not fit into memory.
    Some(usize),
    /// All, or none if they do not fit into memory.
    All,
}

/// A partition of the left side.
pub(super) struct Gather {
    input: SendableRecordBatchStream,
    reader: SideReader,
    rows: GatherRows,
    /// The most bytes at a time.
    max_bytes: usize,
    /// A batch that did not fit into memory with those before it.
    pending: Option<RecordBatch>,
    first_row: u64,
    /// The memory of the rows that have been gathered last.
    memory: MemoryReservation,
    input_rows: Count,
}

impl Gather {
    pub(super) fn new(
        input: SendableRecordBatchStream,
        reader: SideReader,
        rows: GatherRows,
        context: &TaskContext,
        input_rows: Count,
    ) -> Self {
        let memory = MemoryConsumer::new("SpatialJoinProbe").register(context.memory_pool());
        Self { input, reader, rows, max_bytes: usize::MAX, pending: None, first_row: 0, memory, input_rows }
    }

    /// Leaves memory for the parts of a right side on disk.
    pub(super) fn limit_memory(&mut self, context: &TaskContext) {
        self.max_bytes = probe_bytes(context.memory_pool()) / 2;
    }

    /// Gives the memory of the rows that have been gathered last back; they must have been dropped.
    pub(super) fn release(&self) {
        self.memory.free();
    }

    /// Gathers left rows, and reads their geometries. The rows before them must have been released.
    pub(super) async fn next(&mut self) -> Result<Option<Side>> {
        let mut rows = BatchedRows::new(self.input.schema());
        while self.rows == GatherRows::All
            || matches!(self.rows, GatherRows::Some(wanted) if rows.num_rows() < wanted)
        {
            let Some(batch) = self.next_batch().await? else { break };
            let is_first = rows.batches().is_empty();
            match self.grow(&batch, is_first) {
                Ok(true) => rows.push(batch),
                Err(error) if is_first || self.rows == GatherRows::All => return Err(error),
                Ok(false) | Err(_) => {
                    self.pending = Some(batch);
                    break;
                }
            }
        }
        if rows.batches().is_empty() {
            return Ok(None);
        }
        let (reader, first_row) = (self.reader.clone(), self.first_row);
        self.input_rows.add(rows.num_rows());
        self.first_row += rows.num_rows() as u64;
        in_background(move || reader.read(rows, first_row)).await.map(Some)
    }

    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self.pending.take() {
            Some(batch) => Ok(Some(batch)),
            None => self.input.next().await.transpose(),
        }
    }

    /// Takes memory for a batch: for its rows before and after they are put together, and for their geometries. Returns false if that is
    /// more than the limit, which the first batch may exceed.
    fn grow(&self, batch: &RecordBatch, is_first: bool) -> Result<bool> {
        let bytes = 2 * batch_bytes(batch) + batch.num_rows() * self.reader.row_bytes();
        if !is_first && self.memory.size().saturating_add(bytes) > self.max_bytes {
            return Ok(false);
        }
        self.memory.try_grow(bytes).map(|()| true)
    }
}
