//! Prefix scan (Merrill, Garland 2016, *Single-pass Parallel Prefix Scan with Decoupled Look-back*).
//!
//! Any number of items, including 0. Each item is read and written once. Items are `u32`, `i32`, `u64`, `i64`, `f32`,
//! `f64` with [`Sum`](super::operator::Sum), [`Min`](super::operator::Min), [`Max`](super::operator::Max), and
//! [`Affine`](super::operator::Affine) with [`Compose`](super::operator::Compose), whose scan solves recurrences x = a
//! x + b.
//!
//! Sums of floats have a fixed association, so that every run and the CPU give the same bits; their look-back is by
//! groups of 32 tiles. [`inclusive_any_order`] uses plain look-back; the last bits of its sums depend on timing.

use super::planned::{bytes_of, carve};
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::block::tile::tile_items;
use kauri_kernels::policy::SCAN_ROWS;
pub use kauri_kernels::primitives::scan::ScanOperator;
use kauri_kernels::primitives::scan::primitives_scan;
use kauri_kernels::thread::operator::Operator;
use kauri_kernels::thread::words::Words;
use kauri_kernels::warp::look_back::{Decoupled, LookBack};

/// The kind of a scan: the result at an item includes the item, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanKind {
    Inclusive,
    Exclusive,
}

/// The temporary memory of scans of up to a number of items.
pub(crate) struct Scan {
    /// The ticket, then the words of the look-back.
    words: Region<u64>,
}

impl Scan {
    /// Plans scans of `len` items of type `T` by look-back `L`.
    pub(crate) fn plan<T: Words, L: LookBack>(layout: &mut Layout, len: usize) -> Self {
        Self { words: layout.reserve(1 + L::num_words::<T>(len.div_ceil(tile_items::<T, SCAN_ROWS>()))) }
    }

    /// Scans with operator `O` by look-back `L`.
    ///
    /// # Safety
    /// Input and output have the planned length, and are identical or do not overlap. Nothing else uses them until the
    /// stream has done the work.
    pub(crate) unsafe fn run<T: Words, O: Operator<T>, L: LookBack>(
        &self,
        temp: &Temp<'_>,
        input: Slice<'_, T>,
        output: SliceMut<'_, T>,
        kind: ScanKind,
    ) -> Result<()> {
        if input.is_empty() {
            return Ok(());
        }
        temp.clear(self.words)?;
        let num_tiles = input.len().div_ceil(tile_items::<T, SCAN_ROWS>()) as u64;
        let args = (input, output, temp.view(self.words), u32::from(kind == ScanKind::Exclusive));
        // SAFETY: passed on to the caller; the words are zeros, and the look-back needs no more.
        unsafe { temp.stream.launch::<primitives_scan<T, O, L>>(num_tiles, args) }
    }
}

/// Returns the bytes of temporary memory of a scan of `len` items.
pub fn plan<T: Words, O: ScanOperator<T>>(len: usize) -> u64 {
    bytes_of(|layout| Scan::plan::<T, O::LookBack>(layout, len))
}

/// Writes the inclusive scan of `input` to `output`, which has the same length.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the lengths differ, [`Error::WrongDevice`](crate::Error::WrongDevice),
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory), and errors of the driver.
pub fn inclusive<T: Words, O: ScanOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    output: &mut Buffer<T>,
) -> Result<()> {
    scan::<T, O, O::LookBack>(stream, workspace, input, output, ScanKind::Inclusive)
}

/// Writes the exclusive scan of `input`; the first item becomes the operator's identity.
///
/// # Errors
/// Like [`inclusive`].
pub fn exclusive<T: Words, O: ScanOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    output: &mut Buffer<T>,
) -> Result<()> {
    scan::<T, O, O::LookBack>(stream, workspace, input, output, ScanKind::Exclusive)
}

/// Writes the inclusive scan with an association that depends on timing: sums of floats differ in their last bits from
/// run to run.
///
/// # Errors
/// Like [`inclusive`].
pub fn inclusive_any_order<T: Words, O: ScanOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    output: &mut Buffer<T>,
) -> Result<()> {
    scan::<T, O, Decoupled>(stream, workspace, input, output, ScanKind::Inclusive)
}

fn scan<T: Words, O: Operator<T>, L: LookBack>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    output: &mut Buffer<T>,
    kind: ScanKind,
) -> Result<()> {
    input.check_device(stream)?;
    output.check(stream, "items of a scan's output", input.len())?;
    let (scan, temp) = carve(stream, workspace, "scan", |layout| Scan::plan::<T, L>(layout, input.len()))?;
    // SAFETY: the lengths agree, the borrows keep both buffers apart, and buffers wait for the device before they are freed.
    unsafe { scan.run::<T, O, L>(&temp, input.slice(), output.slice_mut(), kind) }
}
