//! Binary search for many queries in a sorted array.
//!
//! Items are `u32`, `i32`, `u64`, `i64`, `f32`, `f64`; floats have IEEE 754's total order (in which -0.0 is less than
//! 0.0). The array may have any number of items, including none. One thread searches for each query with log2(n)
//! accesses; the first ones are shared by all queries, and sorted queries share more. No temporary memory is needed.

use super::pairs::empty_view;
use super::radix_sort::SortKey;
use crate::device::{Buffer, Stream};
use crate::error::Result;
use kauri_kernels::primitives::search::primitives_search;

/// Writes, for each query, the number of items that are less.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) unless there are as many positions as queries,
/// [`Error::WrongDevice`](crate::Error::WrongDevice), and errors of the driver.
pub fn lower_bound<T: SortKey>(
    stream: &Stream,
    sorted: &Buffer<T>,
    queries: &Buffer<T>,
    positions: &mut Buffer<u64>,
) -> Result<()> {
    search(stream, sorted, queries, Some(positions), None)
}

/// Writes, for each query, the number of items that are not greater.
///
/// # Errors
/// Like [`lower_bound`].
pub fn upper_bound<T: SortKey>(
    stream: &Stream,
    sorted: &Buffer<T>,
    queries: &Buffer<T>,
    positions: &mut Buffer<u64>,
) -> Result<()> {
    search(stream, sorted, queries, None, Some(positions))
}

/// Writes, for each query, the begin and the end of the items that are equal to it.
///
/// # Errors
/// Like [`lower_bound`].
pub fn equal_range<T: SortKey>(
    stream: &Stream,
    sorted: &Buffer<T>,
    queries: &Buffer<T>,
    begins: &mut Buffer<u64>,
    ends: &mut Buffer<u64>,
) -> Result<()> {
    search(stream, sorted, queries, Some(begins), Some(ends))
}

fn search<T: SortKey>(
    stream: &Stream,
    sorted: &Buffer<T>,
    queries: &Buffer<T>,
    lower: Option<&mut Buffer<u64>>,
    upper: Option<&mut Buffer<u64>>,
) -> Result<()> {
    sorted.check_device(stream)?;
    queries.check_device(stream)?;
    for positions in [&lower, &upper].into_iter().flatten() {
        positions.check(stream, "positions of queries", queries.len())?;
    }
    let [lower, upper] = [lower, upper].map(|positions| positions.map_or(empty_view(), Buffer::slice_mut));
    let args = (sorted.slice(), queries.slice(), lower, upper);
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { stream.launch_items::<primitives_search<T>>(queries.len() as u64, args) }
}
