//! Segmented scan and reduce: as if every segment were scanned or reduced by itself. One pass over all items, whatever the
//! number and lengths of segments.
//!
//! Segments are given by heads (a byte an item, not 0 where a segment begins) or by offsets (one more than there are
//! segments: where each begins, and the number of items; ascending from 0; segments may be empty). Items are `u32`, `u64`,
//! `f32`, `f64`, with [`Sum`](super::operator::Sum), [`Min`](super::operator::Min) and [`Max`](super::operator::Max).
//! Results have the same bits on every run and on the CPU, sums of floats too; there the brackets depend on where in the
//! array a segment lies.

use super::partition::starts;
use super::scan::Ends;
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
    /// The ticket, then what tiles publish.
    words: Region<u64>,
    /// A byte an item, where segments are given by offsets.
    heads: Region<u8>,
}

impl Segmented {
    /// Plans scans or reductions of `len` items of segments that are given by offsets, or by heads.
    pub(crate) fn plan<T: Words, O: SegmentedOperator<T>>(
        layout: &mut Layout,
        len: usize,
        by_offsets: bool,
    ) -> Self {
        // A word more than the value: whether there is a head.
        let words = O::LookBack::num_words::<SinceHead<T>>(len.div_ceil(tile_items::<T, SEGMENTED_ROWS>()));
        Self { words: layout.reserve(1 + words), heads: layout.reserve(if by_offsets { len } else { 0 }) }
    }

    /// The heads of segments that begin at `offsets`.
    ///
    /// # Safety
    /// The offsets are written by nothing else until the stream has done the work.
    pub(crate) unsafe fn heads<'a>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        offsets: Slice<'_, u64>,
    ) -> Result<Slice<'a, u8>> {
        temp.clear(stream, self.heads)?;
        let heads = temp.view(self.heads);
        // SAFETY: passed on to the caller.
        unsafe { stream.launch_items::<primitives_segment_heads>(offsets.len() as u64, (offsets, heads))? };
        Ok(heads.read_only())
    }

    /// Scans every segment.
    ///
    /// # Safety
    /// Input, heads and output are of the planned length, and used by nothing else until the stream has done the work; input
    /// and output are the same or apart.
    pub(crate) unsafe fn scan<T: Words, O: SegmentedOperator<T>>(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        input: Slice<'_, T>,
        heads: Slice<'_, u8>,
        output: SliceMut<'_, T>,
        ends: Ends,
    ) -> Result<()> {
        temp.clear(stream, self.words)?;
        let num_tiles = input.len().div_ceil(tile_items::<T, SEGMENTED_ROWS>()) as u64;
        let args = (input, heads, output, temp.view(self.words), u32::from(ends == Ends::Exclusive));
        // SAFETY: passed on to the caller; the words are zeros, as many as the look-back says.
        unsafe { stream.launch::<primitives_segmented_scan<T, O, O::LookBack>>(num_tiles, args) }
    }

    /// Reduces every segment that has items; the others keep their place's value.
    ///
    /// # Safety
    /// As [`scan`](Self::scan); `sums` has an item for each of the offsets.
    pub(crate) unsafe fn reduce<T: Words, O: SegmentedOperator<T>>(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        input: Slice<'_, T>,
        offsets: Slice<'_, u64>,
        sums: SliceMut<'_, T>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            let heads = self.heads(stream, temp, offsets)?;
            self.reduce_by_heads::<T, O>(stream, temp, input, heads, offsets, sums)
        }
    }

    /// The same where the heads are known.
    ///
    /// # Safety
    /// As [`reduce`](Self::reduce).
    pub(crate) unsafe fn reduce_by_heads<T: Words, O: SegmentedOperator<T>>(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        input: Slice<'_, T>,
        heads: Slice<'_, u8>,
        offsets: Slice<'_, u64>,
        sums: SliceMut<'_, T>,
    ) -> Result<()> {
        temp.clear(stream, self.words)?;
        let num_tiles = input.len().div_ceil(tile_items::<T, SEGMENTED_ROWS>()) as u64;
        let args = (input, heads, offsets, sums, temp.view(self.words));
        // SAFETY: passed on to the caller; the words are zeros, as many as the look-back says.
        unsafe { stream.launch::<primitives_segmented_reduce<T, O, O::LookBack>>(num_tiles, args) }
    }
}

/// Bytes of temporary memory of a scan by heads of `len` items.
pub fn plan_by_heads<T: Words, O: SegmentedOperator<T>>(len: usize) -> u64 {
    let mut layout = Layout::new();
    Segmented::plan::<T, O>(&mut layout, len, false);
    layout.bytes()
}

/// Bytes of temporary memory of a scan or a reduction by offsets of `len` items.
pub fn plan<T: Words, O: SegmentedOperator<T>>(len: usize) -> u64 {
    let mut layout = Layout::new();
    Segmented::plan::<T, O>(&mut layout, len, true);
    layout.bytes()
}

/// Makes of each item what it and the items of its segment before it add up to.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if heads or output are not as many as the items,
/// [`Error::WrongDevice`](crate::Error::WrongDevice), [`Error::OutOfMemory`](crate::Error::OutOfMemory), or the driver's.
pub fn inclusive_by_heads<T: Words, O: SegmentedOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    heads: &Buffer<u8>,
    output: &mut Buffer<T>,
) -> Result<()> {
    scan::<T, O>(stream, workspace, input, Given::Heads(heads), output, Ends::Inclusive)
}

/// Makes of each item what the items of its segment before it add up to; the first becomes the identity.
///
/// # Errors
/// As [`inclusive_by_heads`].
pub fn exclusive_by_heads<T: Words, O: SegmentedOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    heads: &Buffer<u8>,
    output: &mut Buffer<T>,
) -> Result<()> {
    scan::<T, O>(stream, workspace, input, Given::Heads(heads), output, Ends::Exclusive)
}

/// As [`inclusive_by_heads`], of segments given by offsets.
///
/// # Errors
/// As [`inclusive_by_heads`]; there is one offset at least.
pub fn inclusive<T: Words, O: SegmentedOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    offsets: &Buffer<u64>,
    output: &mut Buffer<T>,
) -> Result<()> {
    scan::<T, O>(stream, workspace, input, Given::Offsets(offsets), output, Ends::Inclusive)
}

/// As [`exclusive_by_heads`], of segments given by offsets.
///
/// # Errors
/// As [`inclusive`].
pub fn exclusive<T: Words, O: SegmentedOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    offsets: &Buffer<u64>,
    output: &mut Buffer<T>,
) -> Result<()> {
    scan::<T, O>(stream, workspace, input, Given::Offsets(offsets), output, Ends::Exclusive)
}

/// Writes what each segment adds up to, the identity for an empty one.
///
/// # Errors
/// As [`inclusive`]; `sums` has one item less than there are offsets.
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
    let mut layout = Layout::new();
    let segmented = Segmented::plan::<T, O>(&mut layout, input.len(), true);
    let temp = workspace.carve(stream, &layout, "segmented reduce")?;
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { segmented.reduce::<T, O>(stream, &temp, input.slice(), starts, sums.slice_mut()) }
}

/// How segments are given.
enum Given<'a> {
    Heads(&'a Buffer<u8>),
    Offsets(&'a Buffer<u64>),
}

/// The same, checked.
enum Views<'a> {
    Heads(Slice<'a, u8>),
    Starts(Slice<'a, u64>),
}

impl<'a> Given<'a> {
    fn checked(self, stream: &Stream, num_items: usize) -> Result<Views<'a>> {
        match self {
            Given::Heads(heads) => {
                heads.check_items("heads of segments", num_items)?;
                heads.check_device(stream)?;
                Ok(Views::Heads(heads.slice()))
            }
            Given::Offsets(offsets) => Ok(Views::Starts(starts(stream, offsets)?)),
        }
    }
}

fn scan<T: Words, O: SegmentedOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    given: Given<'_>,
    output: &mut Buffer<T>,
    ends: Ends,
) -> Result<()> {
    output.check_items("items of a scan's output", input.len())?;
    input.check_device(stream)?;
    output.check_device(stream)?;
    let given = given.checked(stream, input.len())?;
    if input.is_empty() {
        return Ok(());
    }
    let mut layout = Layout::new();
    let segmented = Segmented::plan::<T, O>(&mut layout, input.len(), matches!(given, Views::Starts(_)));
    let temp = workspace.carve(stream, &layout, "segmented scan")?;
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe {
        let heads = match given {
            Views::Heads(heads) => heads,
            Views::Starts(starts) => segmented.heads(stream, &temp, starts)?,
        };
        segmented.scan::<T, O>(stream, &temp, input.slice(), heads, output.slice_mut(), ends)
    }
}
