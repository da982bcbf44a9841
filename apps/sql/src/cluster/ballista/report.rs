//! Reports of the rows that tasks move.

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::serde::protobuf::{
    RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport,
};
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::prelude::SessionConfig;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Ballista's engine, which also reports what tasks move.
pub(super) struct ReportingEngine {
    engine: DefaultExecutionEngine,
    file: Arc<Mutex<File>>,
}

impl ReportingEngine {
    /// Opens the file of the reports.
    pub(super) fn new(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { engine: DefaultExecutionEngine::new(), file: Arc::new(Mutex::new(file)) })
    }
}

impl ExecutionEngine for ReportingEngine {
    fn create_query_stage_exec(
        &self,
        job_id: JobId,
        stage_id: usize,
        task_id: usize,
        global_output_partition_ids: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let job = job_id.to_string();
        let stage = self.engine.create_query_stage_exec(
            job_id,
            stage_id,
            task_id,
            global_output_partition_ids,
            plan,
            work_dir,
            config,
        )?;
        Ok(Arc::new(ReportingStage { job, number: stage_id, stage, file: Arc::clone(&self.file) }))
    }
}

/// A stage of a query, whose tasks are reported.
struct ReportingStage {
    job: String,
    number: usize,
    stage: Arc<dyn QueryStageExecutor>,
    file: Arc<Mutex<File>>,
}

impl ReportingStage {
    fn report(&self, written: &[ShuffleWritePartition]) -> Result<()> {
        let metrics = self.stage.collect_plan_metrics();
        let sum = |name: &str| -> usize {
            metrics.iter().filter_map(|metrics| metrics.sum_by_name(name)).map(|value| value.as_usize()).sum()
        };
        let line = serde_json::json!({
            "job": self.job,
            "stage": self.number,
            "rows_written": written.iter().map(|partition| partition.num_rows).sum::<u64>(),
            "bytes_written": written.iter().map(|partition| partition.num_bytes).sum::<u64>(),
            "bytes_from_others": sum("decoded_bytes"),
            "fetches_from_others": sum("fetch_requests"),
        });
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(writeln!(file, "{line}")?)
    }
}

impl fmt::Debug for ReportingStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stage.fmt(f)
    }
}

impl fmt::Display for ReportingStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.stage, f)
    }
}

#[async_trait]
impl QueryStageExecutor for ReportingStage {
    async fn execute_query_stage(
        &self,
        task_id: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<ShuffleWritePartition>> {
        let written = self.stage.execute_query_stage(task_id, context).await?;
        self.report(&written)?;
        Ok(written)
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        self.stage.collect_plan_metrics()
    }

    fn collect_runtime_stats_reports(&self) -> Vec<RuntimeStatsReport> {
        self.stage.collect_runtime_stats_reports()
    }

    fn collect_window_state_reports(&self) -> Result<Vec<WindowStateReport>> {
        self.stage.collect_window_state_reports()
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        self.stage.collect_column_stats()
    }
}
