//! A cluster in this process.

use super::{codec, config, state};
use ballista_core::extension::SessionConfigExt;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::serde::BallistaCodec;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_executor::new_standalone_executor_from_builder;
use ballista_scheduler::standalone::new_standalone_scheduler_with_builder;
use datafusion::common::DataFusionError;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use std::sync::Arc;

/// Starts a scheduler and `executors` executors with `slots` slots each in this process, and returns the URL of the scheduler.
///
/// # Errors
/// [`DataFusionError::External`] if there is no port for them.
pub async fn standalone(executors: usize, slots: usize) -> Result<String> {
    let external = |error: ballista_core::error::BallistaError| DataFusionError::External(Box::new(error));
    let messages = || {
        let logical = config().ballista_logical_extension_codec();
        BallistaCodec::new(logical, codec())
    };
    let address = new_standalone_scheduler_with_builder(Arc::new(state), Arc::new(config), messages())
        .await
        .map_err(external)?;
    let functions = state(config())?;
    for _ in 0..executors {
        let scheduler = SchedulerGrpcClient::connect(format!("http://{address}"))
            .await
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        let runtime = |_: &_| RuntimeEnvBuilder::new().build().map(Arc::new);
        new_standalone_executor_from_builder(
            scheduler,
            slots,
            Arc::new(config),
            Arc::new(runtime),
            messages(),
            BallistaFunctionRegistry::from(&functions),
        )
        .await
        .map_err(external)?;
    }
    Ok(format!("ballista://{address}"))
}
