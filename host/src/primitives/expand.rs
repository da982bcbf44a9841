//! Expand, the last two steps of count, scan, emit: [`offsets`] turns the number of outputs of each segment into the
//! begin of its outputs; [`expand`] finds, for each output, its segment and its index within it, by load-balancing
//! search (Baxter 2013, *moderngpu*).
//!
//! There may be any number of segments below 2^32, of any lengths including 0, and any number of outputs. Their number
//! stays on the device, as the last offset. The caller chooses the capacity, and a flag reports an overflow: the host
//! need not wait. Alternatively it reads the last offset and allocates the exact capacity.

use super::operator::Sum;
use super::planned::{bytes_of, carve};
use super::scan::{Scan, ScanKind};
use crate::device::{Buffer, Layout, Stream, Temp, Workspace};
use crate::error::{Error, Result, check_count};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::primitives::expand::{Expand, TILE, primitives_expand, primitives_expand_counts};
use kauri_kernels::warp::look_back::Decoupled;

/// The temporary memory of the offsets of segments.
pub(crate) struct Offsets(Scan);

impl Offsets {
    /// Plans the offsets of `num_segments` segments.
    pub(crate) fn plan(layout: &mut Layout, num_segments: usize) -> Self {
        Self(Scan::plan::<u64, Decoupled>(layout, num_segments + 1))
    }

    /// Writes the begin of each segment and, at the end, the sum of the counts.
    ///
    /// # Safety
    /// `counts` has an entry for each planned segment, and `offsets` has one entry more. Nothing else uses them until the stream has done the work.
    pub(crate) unsafe fn run(
        &self,
        temp: &Temp<'_>,
        counts: Slice<'_, u32>,
        offsets: SliceMut<'_, u64>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            let args = (counts, offsets);
            temp.stream.launch_items::<primitives_expand_counts>(offsets.len() as u64, args)?;
            self.0.run::<u64, Sum, Decoupled>(temp, offsets.read_only(), offsets, ScanKind::Exclusive)
        }
    }
}

/// Returns the bytes of temporary memory for the offsets of `num_segments` segments.
pub fn plan(num_segments: usize) -> u64 {
    bytes_of(|layout| Offsets::plan(layout, num_segments))
}

/// Writes the begin of each segment and, at the end, the number of outputs: one offset more than there are segments.
///
/// # Errors
/// [`Error::Shape`] if `offsets` has another length, [`Error::WrongDevice`], [`Error::OutOfMemory`], and errors of the
/// driver.
pub fn offsets(
    stream: &Stream,
    workspace: &mut Workspace,
    counts: &Buffer<u32>,
    offsets: &mut Buffer<u64>,
) -> Result<()> {
    counts.check_device(stream)?;
    offsets.check(stream, "offsets, one more than counts", counts.len() + 1)?;
    let plan = |layout: &mut _| Offsets::plan(layout, counts.len());
    let (plan, temp) = carve(stream, workspace, "offsets of segments", plan)?;
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { plan.run(&temp, counts.slice(), offsets.slice_mut()) }
}

/// Writes each output's segment and its index in the segment, from 0, up to the capacity of `segments`. Sets
/// `overflow`, one word, to 1 if there are more outputs, else to 0. Entries behind the last output keep their value.
///
/// `offsets` has one entry more than there are segments, ascending from 0; the last one is the number of outputs. (With
/// other offsets the output is undefined.) `indices` may be empty if it is not needed.
///
/// # Errors
/// [`Error::Shape`] if `offsets` is empty, `indices` is neither empty nor as long as `segments`, or `overflow` has not
/// one word; [`Error::TooManyItems`] for 2^32 segments, [`Error::WrongDevice`], and errors of the driver.
pub fn expand(
    stream: &Stream,
    offsets: &Buffer<u64>,
    segments: &mut Buffer<u32>,
    indices: &mut Buffer<u32>,
    overflow: &mut Buffer<u32>,
) -> Result<()> {
    if !indices.is_empty() {
        indices.check_items("indices of outputs", segments.len())?;
    }
    overflow.check(stream, "overflow flags", 1)?;
    offsets.check_device(stream)?;
    segments.check_device(stream)?;
    indices.check_device(stream)?;
    let Some(num_segments) = offsets.len().checked_sub(1) else {
        return Err(Error::Shape { what: "offsets, one more than segments", expected: 1, got: 0 });
    };
    check_count("segments", num_segments as u64, u32::MAX.into())?;
    let num_tiles = (segments.len() + num_segments).div_ceil(TILE).max(1) as u64;
    let (segments, indices) = (segments.slice_mut(), indices.slice_mut());
    let expand = Expand { offsets: offsets.slice(), segments, indices, overflow: overflow.slice_mut() };
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { stream.launch::<primitives_expand>(num_tiles, (expand,)) }
}
