//! Unique: the first item of every run of equal items, in one pass.
//!
//! A comparison of adjacent items decides where a run ends: [`EqualBits`](super::predicate::EqualBits) of `u32`, `u64`
//! and [`Bits128`](super::item::Bits128), or [`EqualHigh`](super::predicate::EqualHigh) of `u64`. Everything else is as
//! in [`select`](super::select).

use super::pairs::empty_view;
use super::planned::{bytes_of, carve};
use super::select::{Select, Selected, has_items};
use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
pub use kauri_kernels::primitives::unique::UniqueRun;
use kauri_kernels::primitives::unique::primitives_unique;
use kauri_kernels::thread::words::Words;

/// Returns the bytes of temporary memory for `len` items.
pub fn plan<T: Words>(len: usize) -> u64 {
    bytes_of(|layout| Select::plan::<T>(layout, len))
}

/// Writes the first item of every run to the front of `kept`, and the number of runs to `count`.
///
/// # Errors
/// Like [`select::flagged`](super::select::flagged).
pub fn unique<T: Words, R: UniqueRun<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    kept: &mut Buffer<T>,
    count: &mut Buffer<u64>,
) -> Result<()> {
    if !has_items(stream, input, kept, None, count)? {
        return Ok(());
    }
    let plan = |layout: &mut _| Select::plan::<T>(layout, input.len());
    let (select, temp) = carve(stream, workspace, "unique", plan)?;
    let to = Selected { kept: kept.slice_mut(), others: empty_view(), count: count.slice_mut() };
    let (num_tiles, select) = select.prepare(&temp, input.slice(), to)?;
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed; the
    // words are zeros.
    unsafe { stream.launch::<primitives_unique<T, R>>(num_tiles, (select,)) }
}
