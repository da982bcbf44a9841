//! GPU backend of joins.

mod batches;
mod best;
#[cfg(feature = "research")]
mod cell_list;
mod cells;
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
#[cfg(feature = "research")]
pub(super) use heaps::check_heap_len;
pub(super) use nearest::nearest;
pub(super) use pairs::{count, rows};
pub(super) use plan::MemoryPlan;
pub use scored::DeviceScored;
pub(super) use threshold::top_k_by_custom_score;
pub(super) use top_k::top_k;
