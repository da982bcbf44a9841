//! The right side of a join: collected in memory, or on disk if it does not fit.

use super::device::device;
use super::part::{Part, index_bytes};
use super::side::SideReader;
use crate::options::KauriOptions;
use crate::predicate::SpatialPredicate;
use datafusion::arrow::array::{Array, AsArray, BinaryViewArray, StringViewArray};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, internal_err, resources_err};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::spill_file::SpillFile;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, SpillMetrics, Time};
use datafusion::physical_plan::{ExecutionPlan, SpillManager};
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, Shared};
use kauri::Device;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The right side, for which all partitions wait.
pub(super) type SharedBuild = Shared<BoxFuture<'static, Result<Arc<BuildSide>, Arc<DataFusionError>>>>;

/// The right side of a join.
pub(super) enum BuildSide {
    /// All rows in memory.
    InMemory {
        part: Part,
        /// The memory of the rows and of their index.
        _memory: MemoryReservation,
    },
    /// All rows on disk.
    Spilled(SpilledBuild),
}

/// Collects the right side.
pub(super) struct Build {
    input: Arc<dyn ExecutionPlan>,
    reader: SideReader,
    predicate: SpatialPredicate,
    device: String,
    context: Arc<TaskContext>,
    time: Time,
    rows: Count,
    spills: SpillMetrics,
}

impl Build {
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        reader: SideReader,
        predicate: SpatialPredicate,
        options: &KauriOptions,
        context: &Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Self {
        // The order of the ids decides among right points at equal distances.
        let reader = if matches!(predicate, SpatialPredicate::Knn { .. }) { reader.sorted() } else { reader };
        Self {
            input,
            reader,
            predicate,
            device: options.device.clone(),
            context: Arc::clone(context),
            time: MetricBuilder::new(metrics).subset_time("build_time", 0),
            rows: MetricBuilder::new(metrics).counter("build_rows", 0),
            spills: SpillMetrics::new(metrics, 0),
        }
    }

    pub(super) fn shared(self) -> SharedBuild {
        self.run().map(|side| side.map(Arc::new).map_err(Arc::new)).boxed().shared()
    }

    async fn run(self) -> Result<BuildSide> {
        let device = device(&self.device)?;
        let mut input = self.input.execute(0, Arc::clone(&self.context))?;
        let memory =
            MemoryConsumer::new("SpatialJoinBuild").with_can_spill(true).register(self.context.memory_pool());
        let mut rows = PartRows::new(self.reader.clone(), device.clone(), input.schema());
        while let Some(batch) = input.next().await {
            let batch = batch?;
            self.rows.add(batch.num_rows());
            if let Err(error) = memory.try_grow(rows.cost(&batch)) {
                rows.batches.push(batch);
                return self.spill(rows, input, memory, error).await;
            }
            rows.push(batch);
        }
        // The left side needs memory, too.
        let headroom = probe_bytes(self.context.memory_pool());
        if let Err(error) = memory.try_grow(headroom) {
            return self.spill(rows, input, memory, error).await;
        }
        memory.shrink(headroom);
        let timer = self.time.clone();
        let builds_tree = matches!(self.predicate, SpatialPredicate::Knn { .. });
        let part = in_background(move || {
            let _timer = timer.timer();
            let part = rows.into_part(0)?;
            if builds_tree {
                part.tree()?;
            }
            Ok(part)
        })
        .await?;
        Ok(BuildSide::InMemory { part, _memory: memory })
    }

    /// Writes rows that do not fit into memory, for which `error` says why, and the rest of the input to disk.
    async fn spill(
        self,
        rows: PartRows,
        mut input: SendableRecordBatchStream,
        memory: MemoryReservation,
        error: DataFusionError,
    ) -> Result<BuildSide> {
        let runtime = self.context.runtime_env();
        if matches!(self.predicate, SpatialPredicate::TopK { .. })
            || !runtime.disk_manager.tmp_files_enabled()
        {
            return Err(error);
        }
        memory.free();
        let manager = SpillManager::new(runtime, self.spills, rows.schema);
        let mut file = manager.create_in_progress_file("right side of a spatial join")?;
        for batch in &rows.batches {
            file.append_batch(batch)?;
        }
        while let Some(batch) = input.next().await {
            let batch = batch?;
            self.rows.add(batch.num_rows());
            file.append_batch(&batch)?;
        }
        let Some(file) = file.finish()? else { return internal_err!("a join has written no rows to disk") };
        Ok(BuildSide::Spilled(SpilledBuild {
            file,
            manager,
            reader: self.reader,
            device: rows.device,
            time: self.time,
            turn: Mutex::new(()),
        }))
    }
}

/// Returns the memory for left rows: an eighth of the session's memory.
pub(super) fn probe_bytes(pool: &Arc<dyn MemoryPool>) -> usize {
    match pool.memory_limit() {
        MemoryLimit::Finite(bytes) => bytes / 8,
        MemoryLimit::Infinite | MemoryLimit::Unknown => 0,
    }
}

/// The right side on disk, which is read part by part.
pub(super) struct SpilledBuild {
    file: Arc<dyn SpillFile>,
    manager: SpillManager,
    reader: SideReader,
    device: Device,
    time: Time,
    /// Partitions take turns, so that each has the memory for its left rows and its part.
    turn: Mutex<()>,
}

impl SpilledBuild {
    /// Waits until no other partition gathers left rows or reads parts.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Begins to read the parts.
    pub(super) fn parts(&self, context: &TaskContext) -> Result<SpilledParts> {
        Ok(SpilledParts {
            stream: self.manager.read_spill_as_stream(Arc::clone(&self.file), None)?,
            pending: None,
            first_row: 0,
            reader: self.reader.clone(),
            device: self.device.clone(),
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
            match self.grow(rows.cost(&batch), rows.batches.is_empty()) {
                Ok(()) => rows.push(batch),
                Err(error) if rows.batches.is_empty() => return Err(error),
                Err(_) => {
                    self.pending = Some(batch);
                    break;
                }
            }
        }
        if rows.batches.is_empty() {
            return Ok(None);
        }
        let (first_row, timer) = (self.first_row, self.time.clone());
        self.first_row += rows.num_rows as u64;
        let build = move || {
            let _timer = timer.timer();
            rows.into_part(first_row)
        };
        in_background(build).await.map(Some)
    }
}

/// Right rows that become a part.
struct PartRows {
    reader: SideReader,
    device: Device,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    num_rows: usize,
}

impl PartRows {
    fn new(reader: SideReader, device: Device, schema: SchemaRef) -> Self {
        Self { reader, device, schema, batches: Vec::new(), num_rows: 0 }
    }

    /// Returns the bytes that a part grows by with a batch: its rows before and after they are concatenated, their geometries and their
    /// index.
    fn cost(&self, batch: &RecordBatch) -> usize {
        let num_rows = self.num_rows + batch.num_rows();
        let index = |rows| index_bytes(&self.device, rows, !self.reader.has_points());
        let index = index(num_rows).saturating_sub(index(self.num_rows));
        2 * batch_bytes(batch) + batch.num_rows() * self.reader.row_bytes() + index
    }

    fn push(&mut self, batch: RecordBatch) {
        self.num_rows += batch.num_rows();
        self.batches.push(batch);
    }

    fn into_part(self, first_row: u64) -> Result<Part> {
        let batch = concat_batches(&self.schema, &self.batches)?;
        drop(self.batches);
        Ok(Part::new(self.reader.read(batch, first_row)?, self.device))
    }
}

/// Returns the bytes of the rows of a batch. A batch may be a part of larger buffers, which are not counted.
pub(super) fn batch_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| array_bytes(column)).sum()
}

fn array_bytes(array: &dyn Array) -> usize {
    let data = match array.data_type() {
        DataType::Utf8View => view_bytes(array.as_string_view()),
        DataType::BinaryView => view_bytes_of_binary(array.as_binary_view()),
        _ => 0,
    };
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()) + data
}

fn view_bytes(array: &StringViewArray) -> usize {
    array.iter().flatten().map(str::len).sum()
}

fn view_bytes_of_binary(array: &BinaryViewArray) -> usize {
    array.iter().flatten().map(<[u8]>::len).sum()
}

/// Runs a function that computes for long on a thread for blocking work.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let task = SpawnedTask::spawn_blocking(work);
    task.join_unwind().await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?
}
