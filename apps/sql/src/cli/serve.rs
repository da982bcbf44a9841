//! Subcommands that make a machine a part of a cluster.

use clap::Subcommand;
use datafusion::error::Result;
use std::net::SocketAddr;
use std::path::PathBuf;

#[cfg(feature = "ballista")]
use crate::cluster::ballista;
#[cfg(feature = "distributed")]
use crate::cluster::distributed;

#[derive(Subcommand)]
pub(super) enum Serve {
    /// Serve as the scheduler of a cluster of Ballista
    #[cfg(feature = "ballista")]
    Scheduler {
        /// The address for sessions and executors
        #[arg(long, default_value = "127.0.0.1:50050")]
        address: SocketAddr,
        /// The seconds without a sign of life after which the tasks of an executor run elsewhere
        #[arg(long, value_name = "SECONDS", default_value_t = 60)]
        executor_timeout: u64,
    },
    /// Serve as an executor of a cluster of Ballista
    #[cfg(feature = "ballista")]
    Executor {
        /// Host and port of the scheduler
        #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50050", value_parser = host_and_port)]
        scheduler: (String, u16),
        /// The host at which other machines fetch rows
        #[arg(long, default_value = "127.0.0.1")]
        host: String,
        /// The port at which they do
        #[arg(long, default_value_t = 50051)]
        port: u16,
        /// The port at which the scheduler sends tasks
        #[arg(long, default_value_t = 50052)]
        task_port: u16,
        /// The partitions that run at a time; by default one for each thread
        #[arg(long)]
        slots: Option<usize>,
        /// The devices that join: with cuda:0,cuda:1 and two slots, each slot has a GPU of its own
        #[arg(long, default_value = "best")]
        device: String,
        /// A folder of its own for the rows of stages
        #[arg(long, value_name = "FOLDER")]
        work_dir: PathBuf,
        /// Add a line of JSON for each task to a file: the rows and bytes that it wrote and fetched from others
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
    },
    /// Serve as a worker of datafusion-distributed
    #[cfg(feature = "distributed")]
    Worker {
        /// The address for sessions and other workers
        #[arg(long, default_value = "127.0.0.1:8080")]
        address: SocketAddr,
        /// The devices that join
        #[arg(long, default_value = "best")]
        device: String,
    },
}

#[cfg(feature = "ballista")]
fn host_and_port(text: &str) -> std::result::Result<(String, u16), String> {
    let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host.to_string(), port.parse().ok()?)));
    parts.ok_or_else(|| "expected HOST:PORT".into())
}

impl Serve {
    /// Serves until the process ends.
    pub(super) async fn run(&self) -> Result<()> {
        match self {
            #[cfg(feature = "ballista")]
            Self::Scheduler { address, executor_timeout } => {
                let (address, executor_timeout) = (*address, *executor_timeout);
                ballista::serve_scheduler(ballista::SchedulerOptions { address, executor_timeout }).await?;
            }
            #[cfg(feature = "ballista")]
            Self::Executor { scheduler, host, port, task_port, slots, device, work_dir, report } => {
                let threads = || std::thread::available_parallelism().map_or(1, usize::from);
                ballista::serve_executor(ballista::ExecutorOptions {
                    host: host.clone(),
                    port: *port,
                    task_port: *task_port,
                    scheduler: scheduler.clone(),
                    slots: slots.unwrap_or_else(threads),
                    devices: device.clone(),
                    work_dir: work_dir.clone(),
                    report: report.clone(),
                })
                .await?;
            }
            #[cfg(feature = "distributed")]
            Self::Worker { address, device } => {
                crate::exec::set_devices(device);
                distributed::serve_worker(tokio::net::TcpListener::bind(address).await?).await?;
            }
        }
        Ok(())
    }
}
