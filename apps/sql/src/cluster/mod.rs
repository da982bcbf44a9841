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

/// The default of `kauri.shared_rows` on many machines: right sides up to this size are sent to all of them.
pub const SHARED_ROWS: usize = 1 << 20;
