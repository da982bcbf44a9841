//! GPU backend of joins of boxes. Each module launches the kernels of the module of that name in `kauri_kernels::join::boxes`.

mod batches;
mod best;
mod cells;
mod filter;
mod grid;
mod nested;
mod pairs;
mod threshold;

pub(super) use batches::deliver;
pub(super) use pairs::{count, pairs, rows, scratch_bytes};
