//! Unique: the first item of every run of equal items, in one pass.
//!
//! A comparison of adjacent items decides where a run ends: [`EqualBits`](super::predicate::EqualBits) of `u32`, `u64`
//! and [`Bits128`](super::item::Bits128), or [`EqualHigh`](super::predicate::EqualHigh) of `u64`. Everything else is as
//! in [`select`](super::select).

use super::planned::bytes_of;
use super::select::{Output, Select, select};
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
    let output = Output { kept, others: None, count };
    select::<T, T>(stream, workspace, "unique", input, output, |num_tiles, select| {
        // SAFETY: as stated in `select`.
        unsafe { stream.launch::<primitives_unique<T, R>>(num_tiles, (select,)) }
    })
}
