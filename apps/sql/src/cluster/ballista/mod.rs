//! Joins in a cluster of Ballista: a [scheduler](serve_scheduler), [executors](serve_executor), and [sessions](session).

mod client;
mod executor;
mod report;
mod scheduler;
mod standalone;

pub use client::{session, session_with};
pub use executor::{ExecutorOptions, serve_executor};
pub use scheduler::{SchedulerOptions, serve_scheduler};
pub use standalone::standalone;

use super::SHARED_ROWS;
use crate::codec::SpatialCodec;
use crate::options::KauriOptions;
use crate::session::register;
use ballista_core::extension::SessionConfigExt;
use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::error::Result;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use std::sync::Arc;

/// Returns the codec of all machines of a cluster.
fn codec() -> Arc<SpatialCodec> {
    Arc::new(SpatialCodec::new(Arc::new(BallistaPhysicalExtensionCodec::default())))
}

/// Returns the configuration that all machines of a cluster begin with.
pub fn config() -> SessionConfig {
    let options = KauriOptions { shared_rows: Some(SHARED_ROWS), ..KauriOptions::default() };
    SessionConfig::new_with_ballista()
        .with_option_extension(options)
        .with_ballista_physical_extension_codec(codec())
}

/// Returns the state in which a machine of a cluster decodes plans.
fn state(config: SessionConfig) -> Result<SessionState> {
    let state = ballista_core::utils::default_session_builder(config)?;
    Ok(register(SessionStateBuilder::new_from_existing(state)).build())
}
