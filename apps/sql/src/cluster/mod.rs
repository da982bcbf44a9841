//! Joins on many machines.
//!
//! | engine | feature | how it runs | a machine that is lost |
//! |---|---|---|---|
//! | [Ballista](ballista) 55 | `ballista` | a scheduler and executors; stages write their rows to disk | its tasks run again |
//! | [datafusion-distributed](distributed) 4 | `distributed` | workers, which stream rows to each other | the query fails |
//!
//! Both run the plan that a session makes: [`SpatialJoinExec`](crate::exec::SpatialJoinExec) with one part of both sides in each of its
//! partitions (see [`partition`](crate::partition)), or with all of a small right side (`kauri.shared_rows`). Results are equal to those
//! of one machine. Files must have the same paths on all machines.

#[cfg(feature = "ballista")]
pub mod ballista;
#[cfg(feature = "distributed")]
pub mod distributed;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

/// The default of `kauri.shared_rows` on many machines: right sides up to this size are sent to all of them.
pub const SHARED_ROWS: usize = 1 << 20;

/// Creates a session of the cluster at a URL: `ballista://HOST:PORT` of a scheduler, or `http://HOST:PORT` of workers of
/// datafusion-distributed with commas between them.
///
/// # Errors
/// A plan error for another URL, and for an engine whose feature is off. A cluster that cannot be reached is an error of the first query.
pub fn session(url: &str) -> Result<SessionContext> {
    match url.split_once("://") {
        #[cfg(feature = "ballista")]
        Some(("ballista", _)) => ballista::session(url),
        #[cfg(feature = "distributed")]
        Some(("http" | "https", _)) => {
            distributed::session(&url.split(',').map(str::to_string).collect::<Vec<_>>())
        }
        _ => plan_err!(
            "{url} is not the address of a cluster; expected ballista://HOST:PORT of a scheduler (feature ballista) or \
             http://HOST:PORT of workers (feature distributed)"
        ),
    }
}
