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
    unsafe { permute_parts(stream, Direction::Gather, 1, input, indices, output) }
}

/// The array that indices refer to.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    /// Indices refer to the input.
    Gather,
    /// Indices refer to the output.
    Scatter,
}

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
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { permute_parts(stream, direction, 1, input.slice(), indices.slice(), output.slice_mut()) }
}

/// Gathers or scatters items of `len` adjacent parts, by the kernel with the largest pieces that items and arrays are aligned to.
///
/// # Safety
/// There are as many items as indices, and the size of a part is a multiple of 4 bytes. Input and output do not overlap. Nothing else uses
/// the views until the stream has done the work.
pub(crate) unsafe fn permute_parts<T>(
    stream: &Stream,
    direction: Direction,
    len: usize,
    input: Slice<'_, T>,
    indices: Slice<'_, u32>,
    output: SliceMut<'_, T>,
) -> Result<()> {
    let bytes = len * size_of::<T>();
    let addresses = input.as_ptr() as usize | output.as_ptr() as usize;
    let alignment = 1 << (bytes | addresses).trailing_zeros().min(4);
    // SAFETY: passed on to the caller.
    unsafe {
        match (bytes, alignment) {
            (4, _) => items::<T, u32, 1>(stream, bytes, input, indices, output, direction),
            (12, _) => items::<T, u32, 3>(stream, bytes, input, indices, output, direction),
            (8, 8) => items::<T, u64, 1>(stream, bytes, input, indices, output, direction),
            (16, 16) => items::<T, Bits128, 1>(stream, bytes, input, indices, output, direction),
            (_, 16) => items::<T, Bits128, 0>(stream, bytes, input, indices, output, direction),
            (_, 8) => items::<T, u64, 0>(stream, bytes, input, indices, output, direction),
            _ => items::<T, u32, 0>(stream, bytes, input, indices, output, direction),
        }
    }
}

/// Moves items of `bytes` bytes, which may be several elements.
///
/// # Safety
/// An item is a whole number of pieces, which is `PIECES` unless that is 0, and the arrays are aligned to a piece. Otherwise the
/// requirements of [`permute_parts`].
unsafe fn items<T, P: Words, const PIECES: u32>(
    stream: &Stream,
    bytes: usize,
    input: Slice<'_, T>,
    indices: Slice<'_, u32>,
    output: SliceMut<'_, T>,
    direction: Direction,
) -> Result<()> {
    let num_pieces = |num_elements: usize| num_elements * size_of::<T>() / size_of::<P>();
    // SAFETY: the same memory as pieces.
    let (input, output) = unsafe {
        let input = Slice::<P>::from_raw_parts(input.as_ptr().cast(), num_pieces(input.len()));
        (input, SliceMut::<P>::from_raw_parts(output.as_ptr().cast(), num_pieces(output.len())))
    };
    let pieces = bytes / size_of::<P>();
    let num_indexed = match direction {
        Direction::Gather => input.len() / pieces,
        Direction::Scatter => output.len() / pieces,
    };
    let args = (Permute { input, indices, output, pieces: pieces as u32, num_indexed: num_indexed as u64 },);
    let num_blocks = indices.len().div_ceil(PERMUTE_BLOCK_ITEMS) as u64;
    // SAFETY: passed on to the caller.
    unsafe {
        match direction {
            Direction::Gather => stream.launch::<primitives_gather<P, PIECES>>(num_blocks, args),
            Direction::Scatter => stream.launch::<primitives_scatter<P, PIECES>>(num_blocks, args),
        }
    }
}
