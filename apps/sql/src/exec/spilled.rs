//! A right side on disk, which is read in parts that fit into memory.

use super::build::in_background;
use super::device::Lease;
use super::memory::probe_bytes;
use super::part::{Part, PartRows};
use super::reader::SideReader;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::resources_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::spill_file::SpillFile;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::metrics::Time;
use futures::StreamExt;
use kauri::Device;
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard};

/// The right side on disk, which is read part by part.
pub(super) struct SpilledBuild {
    file: Arc<dyn SpillFile>,
    manager: SpillManager,
    reader: SideReader,
    device: Lease,
    time: Time,
    /// Partitions take turns, so that each has the memory for its left rows and its part.
    turn: Mutex<()>,
}

impl SpilledBuild {
    pub(super) fn new(
        file: Arc<dyn SpillFile>,
        manager: SpillManager,
        reader: SideReader,
        device: Lease,
        time: Time,
    ) -> Self {
        // Rows of several parts are compared by all columns.
        let reader = reader.with_all_columns();
        Self { file, manager, reader, device, time, turn: Mutex::new(()) }
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until no other partition gathers left rows or reads parts.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Begins to read the parts.
    pub(super) fn parts(&self, context: &TaskContext) -> Result<SpilledParts> {
        Ok(SpilledParts {
            stream: self.manager.read_spill_as_stream(Arc::clone(&self.file), None)?,
            pending: None,
            first_row: 0,
            reader: self.reader.clone(),
            device: Device::clone(&self.device),
            time: self.time.clone(),
            headroom: probe_bytes(context.memory_pool()),
            memory: MemoryConsumer::new("SpatialJoinPart").register(context.memory_pool()),
        })
    }
}

/// Reads the parts of a right side on disk.
pub(super) struct SpilledParts {
    stream: SendableRecordBatchStream,
    /// The first batch of the next part.
    pending: Option<RecordBatch>,
    first_row: u64,
    reader: SideReader,
    device: Device,
    time: Time,
    /// The memory that is left to others.
    headroom: usize,
    /// The memory of the current part.
    memory: MemoryReservation,
}

impl SpilledParts {
    /// Gives the memory of the current part back, which must have been dropped.
    pub(super) fn release(&self) {
        self.memory.free();
    }

    /// Takes memory for more rows of a part. The first rows may take the memory that is otherwise left to others.
    fn grow(&self, bytes: usize, is_first: bool) -> Result<()> {
        if self.memory.try_grow(bytes + self.headroom).is_ok() {
            self.memory.shrink(self.headroom);
            return Ok(());
        }
        if is_first {
            self.memory.try_grow(bytes)
        } else {
            resources_err!("a part of the right side is complete")
        }
    }

    /// Reads as many rows as fit into memory. The previous part must have been released.
    pub(super) async fn next(&mut self) -> Result<Option<Part>> {
        let mut rows = PartRows::new(self.reader.clone(), self.device.clone(), self.stream.schema());
        loop {
            let batch = match self.pending.take() {
                Some(batch) => batch,
                None => match self.stream.next().await.transpose()? {
                    Some(batch) => batch,
                    None => break,
                },
            };
            match self.grow(rows.cost(&batch), rows.rows.batches().is_empty()) {
                Ok(()) => rows.rows.push(batch),
                Err(error) if rows.rows.batches().is_empty() => return Err(error),
                Err(_) => {
                    self.pending = Some(batch);
                    break;
                }
            }
        }
        if rows.rows.batches().is_empty() {
            return Ok(None);
        }
        let (first_row, timer) = (self.first_row, self.time.clone());
        self.first_row += rows.rows.num_rows() as u64;
        let build = move || {
            let _timer = timer.timer();
            rows.into_part(first_row)
        };
        in_background(build).await.map(Some)
    }
}
