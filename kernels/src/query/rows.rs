//! Rows of a query for all points, if ids have gaps: they are in the order of the ids.

use super::sums::SummedBits;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Writes the row of the point of each slot: the number of points with smaller ids. One thread per slot.
#[kernel(family = "query", block = PER_ITEM_THREADS)]
pub unsafe fn query_rows(ids: Slice<u32>, has_point: SummedBits<'_>, rows: SliceMut<u32>) {
    if let Some(i) = own_item(rows.len()) {
        rows.store(i, has_point.get(ids.load(i) as usize).1);
    }
}
