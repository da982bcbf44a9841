//! Segmented scan and reduce in one pass over all items, whatever the number and lengths of segments.
//!
//! Segments are given by heads (a byte per item, not 0 where a segment begins) or by offsets (the begin of each segment
//! and, at the end, the number of items; ascending from 0; segments may be empty). Items are `u32`, `u64`, `f32`,
//! `f64`, with [`Sum`](super::operator::Sum), [`Min`](super::operator::Min) and [`Max`](super::operator::Max). Results
//! have the same bits on every run and on the CPU, even sums of floats. The association of a segment's sum depends on
//! its position in the array, and in a reduction on the number of segments and the ends of those near it.

use super::pairs::empty_view;
use super::partition::starts;
use super::planned::{bytes_of, carve};
use super::scan::ScanKind;
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::block::tile::tile_items;
use kauri_kernels::policy::SEGMENTED_ROWS;
pub use kauri_kernels::primitives::segmented::SegmentedOperator;
use kauri_kernels::primitives::segmented::SinceHead;
use kauri_kernels::primitives::segmented::reduce::{primitives_segmented_reduce, shares};
use kauri_kernels::primitives::segmented::scan::{
    primitives_segmented_scan, primitives_segmented_starts_before,
};
use kauri_kernels::thread::words::Words;
use kauri_kernels::warp::look_back::LookBack;

/// The temporary memory of segmented scans of up to a number of items.
pub(crate) struct SegmentedScan {
    /// The ticket, then the words of the look-back.
    words: Region<u64>,
    /// The number of starts before each tile and before the end.
    starts_before: Region<u64>,
}

impl SegmentedScan {
    /// Plans scans of `len` items.
    pub(crate) fn plan<T: Words, O: SegmentedOperator<T>>(layout: &mut Layout, len: usize) -> Self {
        let num_tiles = len.div_ceil(tile_items::<T, SEGMENTED_ROWS>());
        Self {
            // A published value has one word more, which tells whether there is a head.
            words: layout.reserve(1 + O::LookBack::num_words::<SinceHead<T>>(num_tiles)),
            starts_before: layout.reserve(num_tiles + 1),
        }
    }

    /// Scans every segment.
    ///
    /// # Safety
    /// Input, heads (if segments are given by them) and output have the planned length. Input and output are identical or do not overlap.
    /// Nothing else uses them until the stream has done the work.
    pub(crate) unsafe fn scan<T: Words, O: SegmentedOperator<T>>(
        &self,
        temp: &Temp<'_>,
        input: Slice<'_, T>,
        segments: Segments<'_>,
        output: SliceMut<'_, T>,
        kind: ScanKind,
    ) -> Result<()> {
        let tile_len = tile_items::<T, SEGMENTED_ROWS>();
        let num_tiles = input.len().div_ceil(tile_len);
        let (words, starts_before) = (temp.view(self.words), temp.view(self.starts_before));
        // SAFETY: passed on to the caller; the words are zeros, and the look-back needs no more.
        unsafe {
            let (heads, starts) = match segments {
                Segments::Heads(heads) => {
                    temp.clear(self.words)?;
                    (heads, empty_view().read_only())
                }
                Segments::Starts(starts) => {
                    let args = (starts, tile_len as u32, starts_before.part(0, num_tiles + 1), words);
                    let num_threads = 32 * (num_tiles as u64 + 1);
                    temp.stream.launch_items::<primitives_segmented_starts_before>(num_threads, args)?;
                    (empty_view().read_only(), starts)
                }
            };
            let exclusive = u32::from(kind == ScanKind::Exclusive);
            let args = (input, heads, starts, starts_before.read_only(), output, words, exclusive);
            temp.stream.launch::<primitives_segmented_scan<T, O, O::LookBack>>(num_tiles as u64, args)
        }
    }
}

/// The segments of a scan.
#[derive(Clone, Copy)]
pub(crate) enum Segments<'a> {
    /// A byte per item, not 0 where a segment begins.
    Heads(Slice<'a, u8>),
    /// The begins of segments; none for a single segment.
    Starts(Slice<'a, u64>),
}

/// The temporary memory of segmented reductions of up to a number of items and of segments.
pub(crate) struct SegmentedReduce {
    /// The ticket, then the words of the look-back.
    words: Region<u64>,
}

impl SegmentedReduce {
    /// Plans reductions of `len` items in `num_segments` segments.
    pub(crate) fn plan<T: Words, O: SegmentedOperator<T>>(
        layout: &mut Layout,
        len: usize,
        num_segments: usize,
    ) -> Self {
        let (_, num_blocks) = shares(len, num_segments);
        Self { words: layout.reserve(1 + O::LookBack::num_words::<SinceHead<T>>(num_blocks)) }
    }

    /// Reduces every segment, which begins at its entry of `starts`.
    ///
    /// # Safety
    /// There are at most as many items and segments as planned, and `sums` has an entry per segment. Nothing else uses the arrays until the
    /// stream has done the work.
    pub(crate) unsafe fn reduce<T: Words, O: SegmentedOperator<T>>(
        &self,
        temp: &Temp<'_>,
        input: Slice<'_, T>,
        starts: Slice<'_, u64>,
        sums: SliceMut<'_, T>,
    ) -> Result<()> {
        temp.clear(self.words)?;
        let (share, num_blocks) = shares(input.len(), starts.len());
        let args = (input, starts, sums, temp.view(self.words), share as u64);
        // SAFETY: passed on to the caller; the words are zeros, and the look-back needs no more.
        unsafe {
            temp.stream.launch::<primitives_segmented_reduce<T, O, O::LookBack>>(num_blocks as u64, args)
        }
    }
}

/// Returns the bytes of temporary memory of a scan of `len` items.
pub fn plan_scan<T: Words, O: SegmentedOperator<T>>(len: usize) -> u64 {
    bytes_of(|layout| SegmentedScan::plan::<T, O>(layout, len))
}

/// Returns the bytes of temporary memory of a reduction of `len` items in `num_segments` segments.
pub fn plan_reduce<T: Words, O: SegmentedOperator<T>>(len: usize, num_segments: usize) -> u64 {
    bytes_of(|layout| SegmentedReduce::plan::<T, O>(layout, len, num_segments))
}

/// Writes the inclusive scan of every segment, given by heads.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) unless there are as many heads and outputs as items,
/// [`Error::WrongDevice`](crate::Error::WrongDevice), [`Error::OutOfMemory`](crate::Error::OutOfMemory), and errors of
/// the driver.
pub fn inclusive_by_heads<T: Words, O: SegmentedOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    heads: &Buffer<u8>,
    output: &mut Buffer<T>,
) -> Result<()> {
    scan::<T, O>(stream, workspace, input, by_heads(stream, input, heads)?, output, ScanKind::Inclusive)
}

/// Writes the exclusive scan of every segment, given by heads; the first item of a segment becomes the operator's
/// identity.
///
/// # Errors
/// Like [`inclusive_by_heads`].
pub fn exclusive_by_heads<T: Words, O: SegmentedOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    heads: &Buffer<u8>,
    output: &mut Buffer<T>,
) -> Result<()> {
    scan::<T, O>(stream, workspace, input, by_heads(stream, input, heads)?, output, ScanKind::Exclusive)
}

/// Writes the inclusive scan of every segment, given by offsets.
///
/// # Errors
/// Like [`inclusive_by_heads`]; there must be at least one offset.
pub fn inclusive<T: Words, O: SegmentedOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    offsets: &Buffer<u64>,
    output: &mut Buffer<T>,
) -> Result<()> {
    scan::<T, O>(
        stream,
        workspace,
        input,
        Segments::Starts(starts(stream, offsets)?),
        output,
        ScanKind::Inclusive,
    )
}

/// Writes the exclusive scan of every segment, given by offsets.
///
/// # Errors
/// Like [`inclusive`].
pub fn exclusive<T: Words, O: SegmentedOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    offsets: &Buffer<u64>,
    output: &mut Buffer<T>,
) -> Result<()> {
    scan::<T, O>(
        stream,
        workspace,
        input,
        Segments::Starts(starts(stream, offsets)?),
        output,
        ScanKind::Exclusive,
    )
}

/// Writes the sum of each segment, the operator's identity for an empty one.
///
/// # Errors
/// Like [`inclusive`]; `sums` must have one entry less than there are offsets.
pub fn reduce<T: Words + super::item::Item, O: SegmentedOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    offsets: &Buffer<u64>,
    sums: &mut Buffer<T>,
) -> Result<()> {
    let starts = starts(stream, offsets)?;
    sums.check(stream, "sums of segments", starts.len())?;
    input.check_device(stream)?;
    if starts.is_empty() {
        return Ok(());
    }
    let plan = |layout: &mut _| SegmentedReduce::plan::<T, O>(layout, input.len(), starts.len());
    let (segmented, temp) = carve(stream, workspace, "segmented reduce", plan)?;
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { segmented.reduce::<T, O>(&temp, input.slice(), starts, sums.slice_mut()) }
}

/// Checks heads and returns them.
fn by_heads<'a, T: Words>(stream: &Stream, input: &Buffer<T>, heads: &'a Buffer<u8>) -> Result<Segments<'a>> {
    heads.check(stream, "heads of segments", input.len())?;
    Ok(Segments::Heads(heads.slice()))
}

fn scan<T: Words, O: SegmentedOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    segments: Segments<'_>,
    output: &mut Buffer<T>,
    kind: ScanKind,
) -> Result<()> {
    input.check_device(stream)?;
    output.check(stream, "items of a scan's output", input.len())?;
    if input.is_empty() {
        return Ok(());
    }
    let plan = |layout: &mut _| SegmentedScan::plan::<T, O>(layout, input.len());
    let (segmented, temp) = carve(stream, workspace, "segmented scan", plan)?;
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { segmented.scan::<T, O>(&temp, input.slice(), segments, output.slice_mut(), kind) }
}
