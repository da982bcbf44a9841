//! Expand: the last two steps of count, scan, emit. Of the number of outputs of each segment [`offsets`] makes where they
//! begin; [`expand`] says of every output which segment it is of, and which of its outputs: load-balancing search
//! (Baxter 2013, *moderngpu*).
//!
//! Any number of segments below 2^32, of any lengths, empty ones too, and any number of outputs. How many there are stays on
//! the device, as the last offset; room for outputs is what the caller gives, and a flag says if it was too little. So the
//! host need not wait; or it reads the last offset and makes exactly the room that is needed.

use super::operator::Sum;
use super::scan::{Ends, Scan};
use crate::device::{Buffer, Layout, Stream, Workspace};
use crate::error::{Error, Result};
use kauri_kernels::primitives::expand::{TILE, primitives_expand, primitives_expand_counts};
use kauri_kernels::warp::look_back::Decoupled;

/// Bytes of temporary memory for the offsets of that many segments.
pub fn plan(num_segments: usize) -> u64 {
    let mut layout = Layout::new();
    Scan::plan::<u64, Decoupled>(&mut layout, num_segments + 1);
    layout.bytes()
}

/// Sets the offsets, one more than there are segments, to where each segment begins and, the last, to the number of outputs.
///
/// # Errors
/// [`Error::Shape`] if they are not as many, [`Error::WrongDevice`], [`Error::OutOfMemory`], or the driver's.
pub fn offsets(
    stream: &Stream,
    workspace: &mut Workspace,
    counts: &Buffer<u32>,
    offsets: &mut Buffer<u64>,
) -> Result<()> {
    offsets.check_items("offsets, one more than counts", counts.len() + 1)?;
    counts.check_device(stream)?;
    offsets.check_device(stream)?;
    let mut layout = Layout::new();
    let scan = Scan::plan::<u64, Decoupled>(&mut layout, offsets.len());
    let temp = workspace.carve(stream, &layout, "offsets of segments")?;
    let offsets = offsets.slice_mut();
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe {
        let args = (counts.slice(), offsets);
        stream.launch_items::<primitives_expand_counts>(offsets.len() as u64, args)?;
        scan.run::<u64, Sum, Decoupled>(stream, &temp, offsets.read_only(), offsets, Ends::Exclusive)
    }
}

/// Sets for each output its segment and its number in the segment, from 0, as far as there is room, and `overflow`, one word,
/// to 1 if there are more outputs than that, else to 0. What lies behind the last output keeps its value.
///
/// `offsets` has one item more than there are segments, ascending from 0; the last is the number of outputs. (With other
/// offsets what is written is undefined.) `indices` may be empty, if they are not wanted.
///
/// # Errors
/// [`Error::Shape`] if there is no offset, there are other indices than segments, or not one flag;
/// [`Error::TooManyItems`] for 2^32 segments, [`Error::WrongDevice`], or the driver's.
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
    overflow.check_items("overflow flags", 1)?;
    offsets.check_device(stream)?;
    segments.check_device(stream)?;
    indices.check_device(stream)?;
    overflow.check_device(stream)?;
    let Some(num_segments) = offsets.len().checked_sub(1) else {
        return Err(Error::Shape { what: "offsets, one more than segments", expected: 1, got: 0 });
    };
    let (count, max) = (num_segments as u64, u32::MAX.into());
    if count > max {
        return Err(Error::TooManyItems { what: "segments", count, max });
    }
    let num_tiles = (segments.len() + num_segments).div_ceil(TILE).max(1) as u64;
    let args = (offsets.slice(), segments.slice_mut(), indices.slice_mut(), overflow.slice_mut());
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { stream.launch::<primitives_expand>(num_tiles, args) }
}
