//! Rows of ids, the result of a join that finds all pairs, and their delivery.

use crate::batches::{Delivery, RowSplitter};
use crate::error::Result;
use crate::memory;
use std::ops::ControlFlow;

/// Callback for a batch of rows: the number of the first row, the offsets, the ids.
pub(super) type VisitRows<'s> = dyn FnMut(usize, &[u64], &[u32]) -> ControlFlow<()> + 's;

/// Bytes of an id in a row.
pub(super) const ITEM_BYTES: u64 = size_of::<u32>() as u64;

/// Returns a vector of `len` zeros.
pub(super) fn zeros<T: Default + Clone>(len: usize, label: &'static str) -> Result<Vec<T>> {
    let mut zeros = memory::vec_with_capacity(len, label)?;
    zeros.resize(len, T::default());
    Ok(zeros)
}

/// Delivers rows without pairs.
pub(super) fn deliver_empty_rows(
    mut splitter: RowSplitter,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitRows<'_>,
) -> Result<ControlFlow<()>> {
    while let Some(range) = splitter.next_range() {
        let offsets = zeros(range.len() + 1, "offsets of rows")?;
        splitter.advance(range.len(), 0);
        let flow = delivery.deliver(range.len(), 0, ITEM_BYTES, || visit(range.start, &offsets, &[]));
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}
