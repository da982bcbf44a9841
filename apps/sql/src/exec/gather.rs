//! Gathers the batches of the left side.

use super::build::in_background;
use super::memory::{batch_bytes, concatenated, probe_bytes};
use super::side::{Side, SideReader};
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
        let (mut batches, mut num_rows) = (Vec::new(), 0);
        while self.rows == GatherRows::All || matches!(self.rows, GatherRows::Some(rows) if num_rows < rows) {
            let Some(batch) = self.next_batch().await? else { break };
            let grown = self.grow(&batch, batches.is_empty());
            match grown {
                Ok(true) => {
                    num_rows += batch.num_rows();
                    batches.push(batch);
                }
                Err(error) if batches.is_empty() || self.rows == GatherRows::All => return Err(error),
                Ok(false) | Err(_) => {
                    self.pending = Some(batch);
                    break;
                }
            }
        }
        let Some(first) = batches.first() else { return Ok(None) };
        let (schema, reader, first_row) = (first.schema(), self.reader.clone(), self.first_row);
        self.input_rows.add(num_rows);
        self.first_row += num_rows as u64;
        let read = move || {
            let batch = concatenated(&schema, &batches)?;
            drop(batches);
            reader.read(batch, first_row)
        };
        in_background(read).await.map(Some)
    }

    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self.pending.take() {
            Some(batch) => Ok(Some(batch)),
            None => self.input.next().await.transpose(),
        }
    }

    /// Takes memory for a batch: for its rows before and after they are concatenated, and for their geometries. Returns false if that is
    /// more than the limit, which the first batch may exceed.
    fn grow(&self, batch: &RecordBatch, is_first: bool) -> Result<bool> {
        let bytes = 2 * batch_bytes(batch) + batch.num_rows() * self.reader.row_bytes();
        if !is_first && self.memory.size().saturating_add(bytes) > self.max_bytes {
            return Ok(false);
        }
        self.memory.try_grow(bytes).map(|()| true)
    }
}
