//! Segmented scan and reduce in one pass over all items, whatever the number and lengths of segments.
//!
//! Segments are given by heads (a byte per item, not 0 where a segment begins) or by offsets (the begin of each segment
//! and, at the end, the number of items; ascending from 0; segments may be empty). Items are `u32`, `u64`, `f32`,
//! `f64`, with [`Sum`](super::operator::Sum), [`Min`](super::operator::Min) and [`Max`](super::operator::Max). Results
//! have the same bits on every run and on the CPU, even sums of floats. The association of a segment's sum depends on
//! its position in the array.

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
use kauri_kernels::primitives::segmented::{
    SinceHead, primitives_segment_heads, primitives_segmented_reduce, primitives_segmented_scan,
};
use kauri_kernels::thread::words::Words;
use kauri_kernels::warp::look_back::LookBack;

/// The temporary memory of segmented scans and reductions of up to a number of items.
pub(crate) struct Segmented {
    /// The ticket, then the words of the look-back.
    words: Region<u64>,
    /// A byte per item if segments are given by offsets, none if the caller has heads.
    heads: Region<u8>,
}

impl Segmented {
    /// Plans scans or reductions of `len` items, with memory for `num_heads` heads.
    pub(crate) fn plan<T: Words, O: SegmentedOperator<T>>(
        layout: &mut Layout,
        len: usize,
        num_heads: usize,
    ) -> Self {
        // A published value has one word more, which tells whether there is a head.
        let words = O::LookBack::num_words::<SinceHead<T>>(len.div_ceil(tile_items::<T, SEGMENTED_ROWS>()));
        Self { words: layout.reserve(1 + words), heads: layout.reserve(num_heads) }
    }

    /// Writes the heads of the segments that begin at `offsets`.
    ///
    /// # Safety
    /// Nothing else writes the offsets until the stream has done the work.
    pub(crate) unsafe fn heads<'a>(&self, temp: &Temp<'a>, offsets: Slice<'_, u64>) -> Result<Slice<'a, u8>> {
        temp.clear(self.heads)?;
        let heads = temp.view(self.heads);
        // SAFETY: passed on to the caller.
        unsafe {
            temp.stream.launch_items::<primitives_segment_heads>(offsets.len() as u64, (offsets, heads))?
        };
        Ok(heads.read_only())
    }

    /// Scans every segment.
    ///
    /// # Safety
    /// Input, heads and output have the planned length. Input and output are identical or do not overlap. Nothing else
    /// uses them until the stream has done the work.
    pub(crate) unsafe fn scan<T: Words, O: SegmentedOperator<T>>(
        &self,
        temp: &Temp<'_>,
        input: Slice<'_, T>,
        heads: Slice<'_, u8>,
        output: SliceMut<'_, T>,
        kind: ScanKind,
    ) -> Result<()> {
        temp.clear(self.words)?;
        let num_tiles = input.len().div_ceil(tile_items::<T, SEGMENTED_ROWS>()) as u64;
        let args = (input, heads, output, temp.view(self.words), u32::from(kind == ScanKind::Exclusive));
        // SAFETY: passed on to the caller; the words are zeros, and the look-back needs no more.
        unsafe { temp.stream.launch::<primitives_segmented_scan<T, O, O::LookBack>>(num_tiles, args) }
    }

    /// Reduces every nonempty segment. Entries of empty segments keep their value.
    ///
    /// # Safety
    /// Like [`scan`](Self::scan); `sums` has an entry per offset.
    pub(crate) unsafe fn reduce<T: Words, O: SegmentedOperator<T>>(
        &self,
        temp: &Temp<'_>,
        input: Slice<'_, T>,
        offsets: Slice<'_, u64>,
        sums: SliceMut<'_, T>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            let heads = self.heads(temp, offsets)?;
            self.reduce_by_heads::<T, O>(temp, input, heads, offsets, sums)
        }
    }

    /// [`reduce`](Self::reduce) with known heads.
    ///
    /// # Safety
    /// Like [`reduce`](Self::reduce).
    pub(crate) unsafe fn reduce_by_heads<T: Words, O: SegmentedOperator<T>>(
        &self,
        temp: &Temp<'_>,
        input: Slice<'_, T>,
        heads: Slice<'_, u8>,
        offsets: Slice<'_, u64>,
        sums: SliceMut<'_, T>,
    ) -> Result<()> {
        temp.clear(self.words)?;
        let num_tiles = input.len().div_ceil(tile_items::<T, SEGMENTED_ROWS>()) as u64;
        let args = (input, heads, offsets, sums, temp.view(self.words));
        // SAFETY: passed on to the caller; the words are zeros, and the look-back needs no more.
        unsafe { temp.stream.launch::<primitives_segmented_reduce<T, O, O::LookBack>>(num_tiles, args) }
    }
}

/// Returns the bytes of temporary memory of a scan by heads of `len` items.
pub fn plan_by_heads<T: Words, O: SegmentedOperator<T>>(len: usize) -> u64 {
    bytes_of(|layout| Segmented::plan::<T, O>(layout, len, 0))
}

/// Returns the bytes of temporary memory of a scan or reduction by offsets of `len` items.
pub fn plan<T: Words, O: SegmentedOperator<T>>(len: usize) -> u64 {
    bytes_of(|layout| Segmented::plan::<T, O>(layout, len, len))
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
    scan::<T, O>(stream, workspace, input, Segments::Heads(heads), output, ScanKind::Inclusive)
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
    scan::<T, O>(stream, workspace, input, Segments::Heads(heads), output, ScanKind::Exclusive)
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
    scan::<T, O>(stream, workspace, input, Segments::Offsets(offsets), output, ScanKind::Inclusive)
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
    scan::<T, O>(stream, workspace, input, Segments::Offsets(offsets), output, ScanKind::Exclusive)
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
    sums.check_items("sums of segments", starts.len())?;
    input.check_device(stream)?;
    super::generate::fill(stream, O::IDENTITY, sums)?;
    if input.is_empty() || starts.is_empty() {
        return Ok(());
    }
    let plan = |layout: &mut _| Segmented::plan::<T, O>(layout, input.len(), input.len());
    let (segmented, temp) = carve(stream, workspace, "segmented reduce", plan)?;
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { segmented.reduce::<T, O>(&temp, input.slice(), starts, sums.slice_mut()) }
}

/// The segments of a scan.
enum Segments<'a> {
    Heads(&'a Buffer<u8>),
    Offsets(&'a Buffer<u64>),
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
    let (num_heads, starts) = match segments {
        Segments::Heads(heads) => {
            heads.check(stream, "heads of segments", input.len())?;
            (0, empty_view().read_only())
        }
        Segments::Offsets(offsets) => (input.len(), starts(stream, offsets)?),
    };
    if input.is_empty() {
        return Ok(());
    }
    let plan = |layout: &mut _| Segmented::plan::<T, O>(layout, input.len(), num_heads);
    let (segmented, temp) = carve(stream, workspace, "segmented scan", plan)?;
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe {
        let heads = match segments {
            Segments::Heads(heads) => heads.slice(),
            Segments::Offsets(_) => segmented.heads(&temp, starts)?,
        };
        segmented.scan::<T, O>(&temp, input.slice(), heads, output.slice_mut(), kind)
    }
}
