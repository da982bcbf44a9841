//! The callback for rows of ids, the result of a join that finds all pairs.

use std::ops::ControlFlow;

/// Callback for a batch of rows: the number of the first row, the offsets, the ids.
pub(super) type VisitRows<'s> = dyn FnMut(usize, &[u64], &[u32]) -> ControlFlow<()> + 's;
