//! Gather and scatter: items moved from or to given indices. Items have no padding, and 4 to 64 bytes, a multiple of 4.
//!
//! Indices are `u32`. No temporary memory is needed. Accesses to the array in order are coalesced; each item of the
//! indexed array takes the 32-byte sectors that it covers.

use crate::device::{Buffer, Stream};
use crate::error::Result;
use bytemuck::NoUninit;
use cuda_std::mem::{Slice, SliceMut};
use cust_core::DeviceCopy;
use kauri_kernels::policy::PERMUTE_BLOCK_ITEMS;
use kauri_kernels::primitives::permute::{Permute, primitives_gather, primitives_scatter};
use kauri_kernels::thread::words::{Bits128, Words};

/// Sets item i of the output to item `indices[i]` of the input. Items with an index out of range keep their value. If
/// the indices are a permutation, this permutes the input.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if `output` and `indices` differ in length,
/// [`Error::WrongDevice`](crate::Error::WrongDevice), and errors of the driver.
pub fn gather<T: DeviceCopy + NoUninit>(
    stream: &Stream,
    input: &Buffer<T>,
    indices: &Buffer<u32>,
    output: &mut Buffer<T>,
) -> Result<()> {
    input.check_device(stream)?;
    indices.check_device(stream)?;
    output.check(stream, "items gathered", indices.len())?;
    permute(stream, input, indices, output, Direction::Gather)
}

/// Sets item `indices[i]` of the output to item i of the input. Indices out of range are ignored. If two indices are
/// equal, either of their items is written.
///
/// # Errors
/// Like [`gather`], for the lengths of `input` and `indices`.
pub fn scatter<T: DeviceCopy + NoUninit>(
    stream: &Stream,
    input: &Buffer<T>,
    indices: &Buffer<u32>,
    output: &mut Buffer<T>,
) -> Result<()> {
    input.check(stream, "items scattered", indices.len())?;
    indices.check_device(stream)?;
    output.check_device(stream)?;
    permute(stream, input, indices, output, Direction::Scatter)
}

/// Gathers items of 4 or 8 bytes between views.
///
/// # Safety
/// The output has as many items as there are indices. Nothing else uses the views until the stream has done the work.
pub(crate) unsafe fn gather_on<T>(
    stream: &Stream,
    input: Slice<'_, T>,
    indices: Slice<'_, u32>,
    output: SliceMut<'_, T>,
) -> Result<()> {
    const { assert!(size_of::<T>() == 4 || size_of::<T>() == 8) };
    // SAFETY: passed on to the caller.
    unsafe {
        if size_of::<T>() == 4 {
            launch::<T, u32, 1>(stream, input, indices, output, Direction::Gather)
        } else {
            launch::<T, u64, 1>(stream, input, indices, output, Direction::Gather)
        }
    }
}

/// Gathers or scatters items of `len` adjacent parts.
///
/// # Safety
/// There are as many items as indices, and the size of a part is a multiple of 4 bytes. Nothing else uses the views
/// until the stream has done the work.
pub(crate) unsafe fn permute_parts<T>(
    stream: &Stream,
    direction: Direction,
    len: usize,
    input: Slice<'_, T>,
    indices: Slice<'_, u32>,
    output: SliceMut<'_, T>,
) -> Result<()> {
    let words = size_of::<T>() / size_of::<u32>();
    // SAFETY: the same memory as words; the rest is passed on to the caller.
    unsafe {
        let input = Slice::<u32>::from_raw_parts(input.as_ptr().cast(), input.len() * words);
        let output = SliceMut::<u32>::from_raw_parts(output.as_ptr().cast(), output.len() * words);
        pieces::<u32, 0>(stream, len * words, input, indices, output, direction)
    }
}

/// The array that indices refer to.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    /// Indices refer to the input.
    Gather,
    /// Indices refer to the output.
    Scatter,
}

/// Dispatches to the kernel with the largest pieces that divide an item.
fn permute<T: DeviceCopy>(
    stream: &Stream,
    input: &Buffer<T>,
    indices: &Buffer<u32>,
    output: &mut Buffer<T>,
    direction: Direction,
) -> Result<()> {
    const {
        assert!(
            size_of::<T>().is_multiple_of(4) && size_of::<T>() <= 64,
            "items are of 4 to 64 bytes, a multiple of 4"
        )
    };
    let (input, indices, output) = (input.slice(), indices.slice(), output.slice_mut());
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe {
        match size_of::<T>() {
            4 => launch::<T, u32, 1>(stream, input, indices, output, direction),
            8 => launch::<T, u64, 1>(stream, input, indices, output, direction),
            12 => launch::<T, u32, 3>(stream, input, indices, output, direction),
            16 => launch::<T, Bits128, 1>(stream, input, indices, output, direction),
            bytes if bytes % 16 == 0 => launch::<T, Bits128, 0>(stream, input, indices, output, direction),
            bytes if bytes % 8 == 0 => launch::<T, u64, 0>(stream, input, indices, output, direction),
            _ => launch::<T, u32, 0>(stream, input, indices, output, direction),
        }
    }
}

/// # Safety
/// An item is a whole number of pieces, which is `PIECES` unless that is 0. Input and output do not overlap.
unsafe fn launch<T, P: Words, const PIECES: u32>(
    stream: &Stream,
    input: Slice<'_, T>,
    indices: Slice<'_, u32>,
    output: SliceMut<'_, T>,
    direction: Direction,
) -> Result<()> {
    let len = size_of::<T>() / size_of::<P>();
    // SAFETY: the same memory as pieces; buffers begin at multiples of 256 bytes. The rest is passed on to the caller.
    unsafe {
        let input = Slice::<P>::from_raw_parts(input.as_ptr().cast(), input.len() * len);
        let output = SliceMut::<P>::from_raw_parts(output.as_ptr().cast(), output.len() * len);
        pieces::<P, PIECES>(stream, len, input, indices, output, direction)
    }
}

/// # Safety
/// An item has `len` pieces, which is `PIECES` unless that is 0. Input and output do not overlap.
unsafe fn pieces<P: Words, const PIECES: u32>(
    stream: &Stream,
    len: usize,
    input: Slice<'_, P>,
    indices: Slice<'_, u32>,
    output: SliceMut<'_, P>,
    direction: Direction,
) -> Result<()> {
    let num_blocks = indices.len().div_ceil(PERMUTE_BLOCK_ITEMS) as u64;
    let num_indexed = match direction {
        Direction::Gather => input.len() / len,
        Direction::Scatter => output.len() / len,
    };
    let num_indexed = num_indexed as u64;
    let args = (Permute { input, indices, output, pieces: len as u32, num_indexed },);
    // SAFETY: passed on to the caller.
    unsafe {
        match direction {
            Direction::Gather => stream.launch::<primitives_gather<P, PIECES>>(num_blocks, args),
            Direction::Scatter => stream.launch::<primitives_scatter<P, PIECES>>(num_blocks, args),
        }
    }
}
