//! Rows of leaves in device memory.

use crate::device::Buffer;

/// Leaves in device memory, row after row: what [`CellTree::all_adjacent_leaves_on`](super::CellTree::all_adjacent_leaves_on) returns.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeviceLeaves {
    /// Where each row begins, and where the last one ends: one more than rows.
    pub offsets: Buffer<u64>,
    /// The leaves of all rows, as node numbers.
    pub leaves: Buffer<u32>,
}
