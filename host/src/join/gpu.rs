//! GPU backend of joins.

/// Runs `$body` with the constant `$D`, the dimensions of the kernel instance for points of `$dims` dimensions.
macro_rules! with_kernel_dims {
    ($dims:expr, $D:ident => $body:expr) => {
        match $dims {
            2 => {
                const $D: usize = 2;
                $body
            }
            3 => {
                const $D: usize = 3;
                $body
            }
            _ => {
                const $D: usize = kauri_kernels::join::curve::MAX_DIMS;
                $body
            }
        }
    };
}

mod batches;
mod best;
mod cells;
mod filter;
mod from_host;
mod grid;
mod heaps;
mod nearest;
mod nested;
mod pairs;
mod plan;
mod prepared;
mod slabs;
mod threshold;
mod top_k;

pub(super) use batches::deliver;
pub(super) use from_host::top_k_from_host;
pub(super) use nearest::nearest;
pub(super) use pairs::{count, rows};
pub(super) use plan::{MemoryPlan, TopKPlan};
pub use prepared::DeviceScored;
pub(super) use prepared::PreparedJoin;
pub(super) use threshold::top_k_by_custom_score;
pub(super) use top_k::top_k;
