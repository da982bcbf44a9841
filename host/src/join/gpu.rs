//! GPU backend of joins. Each module launches the kernels of the module of that name in `kauri_kernels::join`.
//!
//! | call | functions up to the launches |
//! |---|---|
//! | `TopKDistanceJoin::run` | [`top_k_from_host`], [`top_k()`], then `best_pairs` in [`threshold`], [`nested`] or [`filter`] |
//! | `DistanceJoin::count` | [`count`]: [`cells`] sorts both sides, then `launch_count` |
//! | `DistanceJoin::rows` | [`rows`]: [`cells`] sorts both sides, then `launch_count`, a scan, and `launch_emit` |
//! | `DistanceJoin::rows_batches` | [`deliver`]: the steps of `rows` for each batch |
//! | `KnnJoin::run` | [`nearest()`]: [`cells`] sorts both sides, then one kernel |

#[cfg(feature = "research")]
mod append;
mod batches;
mod best;
#[cfg(feature = "research")]
mod cell_list;
pub(super) mod cells;
mod filter;
mod from_host;
mod grid;
#[cfg(feature = "research")]
mod heaps;
mod nearest;
mod nested;
mod pairs;
mod plan;
mod scored;
mod slabs;
mod threshold;
mod top_k;

pub(super) use batches::deliver;
pub(super) use from_host::top_k_from_host;
pub(super) use nearest::nearest;
pub(super) use pairs::{count, rows};
pub(super) use plan::MemoryPlan;
pub use scored::DeviceScored;
pub(super) use threshold::top_k_by_custom_score;
pub(super) use top_k::top_k;
