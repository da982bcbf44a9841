//! Search: where queries lie in a sorted array; many queries at once.
//!
//! Items are `u32`, `i32`, `u64`, `i64`, `f32`, `f64`, floats in IEEE 754's total order (in which -0.0 is less than 0.0). An
//! array may have any number of items, none included. A thread searches for a query by halves: log2(n) accesses, of which the
//! first are the same for all. Queries in order share more of them. No temporary memory.

use super::pairs::empty_view;
use super::radix_sort::SortKey;
use crate::device::{Buffer, Stream};
use crate::error::Result;
use cuda_std::mem::SliceMut;
use kauri_kernels::primitives::search::primitives_search;

/// Sets each position to the number of items that are less than the query.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if there are not as many positions as queries,
/// [`Error::WrongDevice`](crate::Error::WrongDevice), or the driver's.
pub fn lower_bound<T: SortKey>(
    stream: &Stream,
    sorted: &Buffer<T>,
    queries: &Buffer<T>,
    positions: &mut Buffer<u64>,
) -> Result<()> {
    check(stream, sorted, queries, positions)?;
    search(stream, sorted, queries, positions.slice_mut(), empty_view())
}

/// Sets each position to the number of items that are not greater than the query.
///
/// # Errors
/// As [`lower_bound`].
pub fn upper_bound<T: SortKey>(
    stream: &Stream,
    sorted: &Buffer<T>,
    queries: &Buffer<T>,
    positions: &mut Buffer<u64>,
) -> Result<()> {
    check(stream, sorted, queries, positions)?;
    search(stream, sorted, queries, empty_view(), positions.slice_mut())
}

/// Sets for each query where the items that are equal to it begin, and where they end.
///
/// # Errors
/// As [`lower_bound`].
pub fn equal_range<T: SortKey>(
    stream: &Stream,
    sorted: &Buffer<T>,
    queries: &Buffer<T>,
    begins: &mut Buffer<u64>,
    ends: &mut Buffer<u64>,
) -> Result<()> {
    check(stream, sorted, queries, begins)?;
    check(stream, sorted, queries, ends)?;
    search(stream, sorted, queries, begins.slice_mut(), ends.slice_mut())
}

fn check<T: SortKey>(
    stream: &Stream,
    sorted: &Buffer<T>,
    queries: &Buffer<T>,
    positions: &Buffer<u64>,
) -> Result<()> {
    positions.check_items("positions of queries", queries.len())?;
    sorted.check_device(stream)?;
    queries.check_device(stream)?;
    positions.check_device(stream)
}

fn search<T: SortKey>(
    stream: &Stream,
    sorted: &Buffer<T>,
    queries: &Buffer<T>,
    lower: SliceMut<'_, u64>,
    upper: SliceMut<'_, u64>,
) -> Result<()> {
    let args = (sorted.slice(), queries.slice(), lower, upper);
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { stream.launch_items::<primitives_search<T>>(queries.len() as u64, args) }
}
