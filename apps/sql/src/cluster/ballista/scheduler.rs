//! The scheduler of a cluster.

use super::{codec, config, state};
use ballista_core::config::TaskSchedulingPolicy;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::start_server;
use datafusion::common::DataFusionError;
use datafusion::error::Result;
use std::net::SocketAddr;
use std::sync::Arc;

/// The options of a scheduler.
#[derive(Clone, Debug)]
pub struct SchedulerOptions {
    /// The address at which it serves sessions and executors.
    pub address: SocketAddr,
    /// The seconds without a sign of life after which an executor is lost, and its tasks run elsewhere.
    pub executor_timeout: u64,
}

/// Serves as the scheduler of a cluster until the process ends.
///
/// # Errors
/// [`DataFusionError::External`] if it cannot serve at its address.
pub async fn serve_scheduler(options: SchedulerOptions) -> Result<()> {
    let external = |error: ballista_core::error::BallistaError| DataFusionError::External(Box::new(error));
    let config = SchedulerConfig {
        bind_host: options.address.ip().to_string(),
        bind_port: options.address.port(),
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        task_distribution: TaskDistributionPolicy::RoundRobin,
        executor_timeout_seconds: options.executor_timeout,
        expire_dead_executor_interval_seconds: 1,
        override_physical_codec: Some(codec()),
        override_config_producer: Some(Arc::new(config)),
        override_session_builder: Some(Arc::new(state)),
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(external)?;
    start_server(cluster, options.address, Arc::new(config)).await.map_err(external)
}
