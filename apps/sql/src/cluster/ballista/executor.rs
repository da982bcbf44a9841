//! The executors of a cluster.

use super::report::ReportingEngine;
use super::{codec, config, state};
use crate::exec::set_devices;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_executor::execution_engine::ExecutionEngine;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use datafusion::common::DataFusionError;
use datafusion::error::Result;
use std::path::PathBuf;
use std::sync::Arc;

/// The options of an executor.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// The host at which other executors and sessions fetch rows.
    pub host: String,
    /// The port at which they do.
    pub port: u16,
    /// The port at which the scheduler sends tasks.
    pub task_port: u16,
    /// Host and port of the scheduler.
    pub scheduler: (String, u16),
    /// The partitions that run at a time.
    pub slots: usize,
    /// The devices that join, with commas between them. A partition takes the device that fewest others use, so that each of two slots has one
    /// of `cuda:0,cuda:1`.
    pub devices: String,
    /// A folder of its own for the rows of stages.
    pub work_dir: PathBuf,
    /// A file to which it adds a line of JSON for each task: the rows and bytes that it has read from other executors and written.
    pub report: Option<PathBuf>,
}

/// Serves as an executor of a cluster until the process ends.
///
/// # Errors
/// [`DataFusionError::External`] if the scheduler is not found in 20 seconds, or a port is taken.
pub async fn serve_executor(options: ExecutorOptions) -> Result<()> {
    set_devices(&options.devices);
    let functions = BallistaFunctionRegistry::from(&state(config())?);
    let engine = options.report.as_deref().map(ReportingEngine::new).transpose()?;
    let config = ExecutorProcessConfig {
        bind_host: options.host.clone(),
        external_host: Some(options.host),
        port: options.port,
        grpc_port: options.task_port,
        scheduler_host: options.scheduler.0,
        scheduler_port: options.scheduler.1,
        scheduler_connect_timeout_seconds: 20,
        vcores: options.slots,
        task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
        work_dir: Some(options.work_dir.display().to_string()),
        executor_heartbeat_interval_seconds: 2,
        override_execution_engine: engine.map(|engine| Arc::new(engine) as Arc<dyn ExecutionEngine>),
        override_function_registry: Some(Arc::new(functions)),
        override_config_producer: Some(Arc::new(config)),
        override_physical_codec: Some(codec()),
        ..ExecutorProcessConfig::default()
    };
    start_executor_process(Arc::new(config)).await.map_err(|error| DataFusionError::External(Box::new(error)))
}
