//! The right side of a join: collected in memory, or on disk if it does not fit.

use super::device::Lease;
use super::memory::probe_bytes;
use super::part::{Part, PartRows};
use super::reader::SideReader;
use super::spilled::SpilledBuild;
use crate::options::KauriOptions;
use crate::predicate::SpatialPredicate;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, internal_err};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, SpillMetrics, Time};
use datafusion::physical_plan::{ExecutionPlan, SpillManager};
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, Shared};
use kauri::Device;
use std::sync::Arc;

/// The right side, for which all partitions wait.
pub(super) type SharedBuild = Shared<BoxFuture<'static, Result<Arc<BuildSide>, Arc<DataFusionError>>>>;

/// The right side of a join.
pub(super) enum BuildSide {
    /// All rows in memory.
    InMemory {
        part: Box<Part>,
        /// The memory of the rows and of their index.
        _memory: MemoryReservation,
        _device: Lease,
    },
    /// All rows on disk.
    Spilled(SpilledBuild),
}

impl BuildSide {
    /// Returns the device that joins.
    pub(super) fn device(&self) -> &Device {
        match self {
            Self::InMemory { part, .. } => &part.device,
            Self::Spilled(build) => build.device(),
        }
    }
}

/// Collects the right side.
pub(super) struct Build {
    input: Arc<dyn ExecutionPlan>,
    /// The partition of the input.
    partition: usize,
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
        partition: usize,
        reader: SideReader,
        predicate: SpatialPredicate,
        options: &KauriOptions,
        context: &Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Self {
        Self {
            input,
            partition,
            reader,
            predicate,
            device: options.device.clone(),
            context: Arc::clone(context),
            time: MetricBuilder::new(metrics).subset_time("build_time", partition),
            rows: MetricBuilder::new(metrics).counter("build_rows", partition),
            spills: SpillMetrics::new(metrics, partition),
        }
    }

    pub(super) fn shared(self) -> SharedBuild {
        self.run().map(|side| side.map(Arc::new).map_err(Arc::new)).boxed().shared()
    }

    async fn run(mut self) -> Result<BuildSide> {
        let device = Lease::new(&self.device)?;
        let is_knn = matches!(self.predicate, SpatialPredicate::Knn { .. });
        if is_knn {
            // The order of the ids decides among right points at equal distances.
            self.reader = self.reader.sorted(&device);
        }
        let mut input = self.input.execute(self.partition, Arc::clone(&self.context))?;
        let memory =
            MemoryConsumer::new("SpatialJoinBuild").with_can_spill(true).register(self.context.memory_pool());
        let mut rows = PartRows::new(self.reader.clone(), Device::clone(&device), input.schema());
        while let Some(batch) = input.next().await {
            let batch = batch?;
            self.rows.add(batch.num_rows());
            if let Err(error) = memory.try_grow(rows.cost(&batch)) {
                rows.rows.push(batch);
                return self.spill(rows, input, device, memory, error).await;
            }
            rows.rows.push(batch);
        }
        // The left side needs memory, too.
        let headroom = probe_bytes(self.context.memory_pool());
        if let Err(error) = memory.try_grow(headroom) {
            return self.spill(rows, input, device, memory, error).await;
        }
        memory.shrink(headroom);
        let timer = self.time.clone();
        let part = in_background(move || {
            let _timer = timer.timer();
            let part = Box::new(rows.into_part(0)?);
            if is_knn {
                part.tree()?;
            }
            Ok(part)
        })
        .await?;
        Ok(BuildSide::InMemory { part, _memory: memory, _device: device })
    }

    /// Writes rows that do not fit into memory, for which `error` says why, and the rest of the input to disk.
    async fn spill(
        self,
        rows: PartRows,
        mut input: SendableRecordBatchStream,
        device: Lease,
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
        let manager = SpillManager::new(runtime, self.spills, Arc::clone(rows.rows.schema()));
        let mut file = manager.create_in_progress_file("right side of a spatial join")?;
        for batch in rows.rows.batches() {
            file.append_batch(batch)?;
        }
        while let Some(batch) = input.next().await {
            let batch = batch?;
            self.rows.add(batch.num_rows());
            file.append_batch(&batch)?;
        }
        let Some(file) = file.finish()? else { return internal_err!("a join has written no rows to disk") };
        Ok(BuildSide::Spilled(SpilledBuild::new(file, manager, self.reader, device, self.time)))
    }
}

/// Runs a function that computes for long on a thread for blocking work.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let task = SpawnedTask::spawn_blocking(work);
    task.join_unwind().await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?
}
