//! Joins by the workers of datafusion-distributed: [workers](serve_worker), and [sessions](session).
//!
//! Rows stream from worker to worker, and nothing is written to disk. A worker that is lost fails the query.

use crate::codec::SpatialCodec;
use crate::exec::SpatialJoinExec;
use crate::options::KauriOptions;
use crate::session::{register, register_tables};
use datafusion::common::{DataFusionError, plan_err};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedExt, SessionStateBuilderExt, Worker,
    WorkerQueryContext, WorkerResolver,
};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use url::Url;

/// Creates a session whose queries the workers at these URLs run, such as `http://127.0.0.1:8080`.
///
/// # Errors
/// A plan error for an invalid URL. A worker that cannot be reached is an error of the first query.
pub fn session(workers: &[String]) -> Result<SessionContext> {
    session_with(workers, SessionConfig::new())
}

/// Creates a session as [`session`] does, with this configuration.
///
/// # Errors
/// As [`session`].
pub fn session_with(workers: &[String], config: SessionConfig) -> Result<SessionContext> {
    let mut urls = Vec::new();
    for worker in workers {
        match Url::parse(worker) {
            Ok(url) => urls.push(url),
            Err(error) => return plan_err!("{worker} is not the address of a worker: {error}"),
        }
    }
    // A right side that all partitions share would have all of them on one worker.
    let options = KauriOptions { shared_rows: Some(0), ..KauriOptions::default() };
    let config = config.with_option_extension(options.clone());
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    let state = register(builder)
        .with_distributed_planner()
        .with_distributed_worker_resolver(Workers(urls))
        .with_distributed_user_codec(SpatialCodec::default())
        .with_distributed_option_extension(options)
        .with_distributed_desired_task_count_handler(tasks_of_join)
        .build();
    let session = SessionContext::new_with_state(state).enable_url_table();
    register_tables(&session)?;
    Ok(session)
}

/// The workers of a session.
struct Workers(Vec<Url>);

impl WorkerResolver for Workers {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}

/// Gives a join of all rows to one worker. A join part by part may have many.
fn tasks_of_join(event: DesiredTaskCountEvent<'_>) -> Option<Result<DesiredTaskCountEventResponse>> {
    let join = event.plan.downcast_ref::<SpatialJoinExec>()?;
    join.parts().is_none().then(|| Ok(DesiredTaskCountEventResponse::maximum(1)))
}

/// Serves as a worker until the process ends.
///
/// # Errors
/// [`DataFusionError::External`] if the server fails.
pub async fn serve_worker(listener: TcpListener) -> Result<()> {
    let state = |context: WorkerQueryContext| async move {
        let builder = context.builder.with_distributed_user_codec(SpatialCodec::default());
        let builder =
            builder.with_distributed_option_extension_from_headers::<KauriOptions>(&context.headers)?;
        Ok(register(builder).build())
    };
    Server::builder()
        .add_service(Worker::from_session_builder(state).into_worker_server())
        .serve_with_incoming(TcpIncoming::from(listener))
        .await
        .map_err(|error| DataFusionError::External(Box::new(error)))
}
