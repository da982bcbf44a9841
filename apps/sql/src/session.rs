//! Sessions with spatial functions and joins.

use crate::functions;
use crate::options::KauriOptions;
use crate::partition;
use crate::planner::SpatialQueryPlanner;
use crate::relation::SpatialRelations;
use crate::rules::{JoinConditions, KnnConditions, LateralNearest, PruneOutput};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;

/// Creates a session with spatial functions and joins, in which the names of CSV, Parquet and LAS files in quotes are tables.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> datafusion::error::Result<()> {
/// let session = kauri_sql::session()?;
/// let result = session.sql("SELECT ST_Distance(ST_Point(0, 0), ST_Point(3, 4)) AS d").await?.collect().await?;
/// datafusion::assert_batches_eq!(["+-----+", "| d   |", "+-----+", "| 5.0 |", "+-----+"], &result);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Errors of the engine.
pub fn session() -> Result<SessionContext> {
    session_with(SessionConfig::new(), Arc::new(RuntimeEnv::default()))
}

/// Creates a session as [`session`] does, with this configuration, and with the memory and the disk of `runtime`.
///
/// # Errors
/// Errors of the engine.
pub fn session_with(config: SessionConfig, runtime: Arc<RuntimeEnv>) -> Result<SessionContext> {
    let builder =
        SessionStateBuilder::new().with_config(config).with_runtime_env(runtime).with_default_features();
    let session = SessionContext::new_with_state(register(builder).build()).enable_url_table();
    register_tables(&session)?;
    Ok(session)
}

/// Adds options, functions, rules, file formats and the query planner to the state of a session; [`register_tables`] adds the table functions.
pub fn register(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let mut config = builder.config().take().unwrap_or_default();
    if config.options().extensions.get::<KauriOptions>().is_none() {
        config = config.with_option_extension(KauriOptions::default());
    }
    // Metadata of Parquet files have the geometry columns and their reference systems.
    config.options_mut().execution.parquet.skip_metadata = false;
    #[cfg(feature = "las")]
    {
        builder = crate::las::register(builder);
    }
    let mut functions = builder.scalar_functions().take().unwrap_or_default();
    functions.extend(functions::all().into_iter().chain(partition::functions()).map(Arc::new));
    builder
        .with_config(config)
        .with_scalar_functions(functions)
        .with_analyzer_rule(Arc::new(KnnConditions))
        .with_analyzer_rule(Arc::new(LateralNearest))
        .with_optimizer_rule(Arc::new(JoinConditions))
        .with_optimizer_rule(Arc::new(PruneOutput))
        .with_query_planner(Arc::new(SpatialQueryPlanner))
}

/// Adds the table functions to a session.
///
/// # Errors
/// Errors of the engine.
pub fn register_tables(session: &SessionContext) -> Result<()> {
    session.register_relation_planner(Arc::new(SpatialRelations::new(session)))
}
