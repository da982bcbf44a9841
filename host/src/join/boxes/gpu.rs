//! GPU backend of joins of boxes. Each module launches the kernels of the module of that name in `kauri_kernels::join::boxes`.

mod batches;
mod best;
mod cells;
mod filter;
mod grid;
#[cfg(feature = "research")]
mod in_phases;
#[cfg(feature = "research")]
mod multi_layer;
mod nested;
#[cfg(feature = "research")]
mod nested_plain;
mod pairs;
#[cfg(feature = "research")]
mod phases;
#[cfg(feature = "research")]
mod published;
#[cfg(feature = "research")]
mod sort_based;
mod threshold;

pub(super) use batches::deliver;
#[cfg(feature = "research")]
pub(super) use in_phases::count_in_phases;
pub(super) use pairs::{count, pairs, rows, scratch_bytes};
#[cfg(feature = "research")]
pub use phases::BoxPhase;
