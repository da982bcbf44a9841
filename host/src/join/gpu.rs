//! GPU backend of joins. Each module launches the kernels of the module of that name in `kauri_kernels::join`.
//!
//! | call | functions up to the launches |
//! |---|---|
//! | `TopKDistanceJoin::run` | [`top_k_from_host`], [`top_k()`], then `best_pairs` in [`threshold`], [`nested`] or [`filter`] |
//! | `DistanceJoin::count` | [`count`]: [`cells`] sorts both sides, then `launch_count` |
//! | `DistanceJoin::count_over` | [`count_over`]: [`deal`] uploads a set to all devices, then [`count`] for each part of the other |
//! | `DistanceJoin::rows` | [`rows`]: [`cells`] sorts both sides, then `launch_count`, a scan, and `launch_emit` |
//! | `DistanceJoin::rows_batches` | [`deliver`]: the steps of `rows` for each batch |
//! | `KnnJoin::run` | [`nearest()`]: [`cells`] sorts both sides, then one kernel |

#[cfg(feature = "research")]
mod append;
mod batches;
pub(super) mod best;
#[cfg(feature = "research")]
mod cell_list;
pub(super) mod cells;
mod deal;
pub(super) mod filter;
mod from_host;
mod grid;
#[cfg(feature = "research")]
mod heaps;
mod nearest;
pub(super) mod nested;
mod pairs;
pub(super) mod plan;
pub(super) mod scored;
mod slabs;
pub(super) mod threshold;
mod top_k;

pub(super) use batches::deliver;
pub(super) use from_host::top_k_from_host;
pub(super) use nearest::nearest;
pub(super) use pairs::{count, count_over, rows};
pub(super) use plan::MemoryPlan;
pub use scored::DeviceScored;
pub(super) use threshold::top_k_by_custom_score;
pub(super) use top_k::top_k;
