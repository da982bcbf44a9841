//! Stable selection in two passes: each warp compacts its piece of the input, then moves it behind the pieces of the
//! earlier warps.

use super::item::Item;
use super::planned::{bytes_of, carve};
use super::select::has_items;
use crate::device::{Buffer, Layout, Region, Stream, Workspace};
use crate::error::Result;
use kauri_kernels::policy::TWO_PASS_WARPS;
use kauri_kernels::primitives::select_two_pass::{
    CloseGaps, Pieces, primitives_select_close_gaps, primitives_select_pieces,
};
use kauri_kernels::thread::words::Words;

/// The temporary memory of a selection.
struct SelectTwoPass<T> {
    compacted: Region<T>,
    /// The number of items that each warp keeps.
    counts: Region<u64>,
    /// The items of a warp's piece.
    piece: usize,
}

impl<T: Words> SelectTwoPass<T> {
    fn plan(layout: &mut Layout, len: usize) -> Self {
        // A multiple of 32, so that stores stay aligned.
        let piece = len.div_ceil(TWO_PASS_WARPS).next_multiple_of(32).max(32);
        Self { compacted: layout.reserve(len), counts: layout.reserve(len.div_ceil(piece)), piece }
    }
}

/// Returns the bytes of temporary memory of a selection of `len` items in two passes: one copy of the items, and up to
/// 32 KiB.
pub fn plan_two_pass<T: Item>(len: usize) -> u64 {
    bytes_of(|layout| SelectTwoPass::<T::Bits>::plan(layout, len))
}

/// Writes the items whose flag is not 0 to the front of `kept`, and their number to `count`, as
/// [`select::flagged`](crate::primitives::select::flagged) does, in two passes.
///
/// # Errors
/// The errors of [`select::flagged`](crate::primitives::select::flagged).
pub fn flagged_two_pass<T: Item>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    flags: &Buffer<u8>,
    kept: &mut Buffer<T>,
    count: &mut Buffer<u64>,
) -> Result<()> {
    flags.check(stream, "flags of a selection", input.len())?;
    if !has_items(stream, input, kept, None, count)? {
        return Ok(());
    }
    let plan = |layout: &mut _| SelectTwoPass::<T::Bits>::plan(layout, input.len());
    let (select, temp) = carve(stream, workspace, "select in two passes", plan)?;
    let (compacted, counts) = (temp.view(select.compacted), temp.view(select.counts));
    let (threads, piece) = (32 * counts.len() as u64, select.piece as u64);
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed;
    // there is a count per warp.
    unsafe {
        let pieces = Pieces { input: input.bits(), flags: flags.slice(), compacted, counts, piece };
        stream.launch_items::<primitives_select_pieces<T::Bits>>(threads, (pieces,))?;
        let (compacted, counts) = (compacted.read_only(), counts.read_only());
        let gaps = CloseGaps { compacted, counts, kept: kept.bits_mut(), count: count.slice_mut(), piece };
        stream.launch_items::<primitives_select_close_gaps<T::Bits>>(threads, (gaps,))
    }
}
