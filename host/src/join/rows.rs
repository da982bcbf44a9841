//! Rows of ids, the result of a join that finds all pairs, and their delivery.

use crate::batches::{Delivery, RowSplitter};
use crate::error::Result;
use crate::memory;
use crate::rows::Rows;
use std::ops::{ControlFlow, Range};

/// Callback for a batch of rows: the number of the first row, the offsets, the ids.
pub(super) type VisitRows<'s> = dyn FnMut(usize, &[u64], &[u32]) -> ControlFlow<()> + 's;

/// Bytes of an id in a row.
pub(super) const ITEM_BYTES: u64 = size_of::<u32>() as u64;

/// Returns a vector of `len` zeros.
pub(super) fn zeros<T: Default + Clone>(len: usize, label: &'static str) -> Result<Vec<T>> {
    memory::filled(len, T::default(), label)
}

/// Returns rows without pairs.
pub(super) fn empty_rows(num_rows: usize) -> Result<Rows> {
    Ok(Rows::new(zeros(num_rows + 1, "offsets of rows")?, Vec::new()))
}

/// Delivers rows in batches. `make` returns the leading rows of a range that fit in a batch.
pub(super) fn deliver_rows(
    mut splitter: RowSplitter,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitRows<'_>,
    make: impl Fn(Range<usize>, &RowSplitter) -> Result<Rows>,
) -> Result<ControlFlow<()>> {
    while let Some(range) = splitter.next_range() {
        let rows = delivery.produce(|| make(range.clone(), &splitter))?;
        splitter.advance(rows.len(), rows.ids().len() as u64);
        let callback = || visit(range.start, rows.offsets(), rows.ids());
        let flow = delivery.deliver(rows.len(), rows.ids().len(), ITEM_BYTES, callback);
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}
