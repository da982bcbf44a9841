//! Generators of arrays: a constant, an arithmetic sequence, noise. They need no temporary memory and write each item
//! once.

use super::item::Item;
use crate::device::{Buffer, Stream};
use crate::error::Result;
use cuda_std::mem::SliceMut;
use kauri_kernels::block::tile::tile_items;
use kauri_kernels::policy::STREAM_ROWS;
pub use kauri_kernels::primitives::generate::splitmix64;
use kauri_kernels::primitives::generate::{primitives_fill, primitives_iota, primitives_noise};
use kauri_kernels::thread::words::{Words, join};

/// An unsigned number: `u32` or `u64`. Only kauri implements it.
///
/// ```
/// use kauri::device::{Buffer, Stream};
/// use kauri::primitives::generate::{self, Number};
/// fn zeros<T: Number>(stream: &Stream, numbers: &mut Buffer<T>, zero: T) -> kauri::Result<()> {
///     generate::iota(stream, zero, zero, numbers)
/// }
/// # let _ = zeros::<u32>;
/// ```
pub trait Number: Words + sealed::Sealed {}
impl Number for u32 {}
impl Number for u64 {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// Sets every item to `value`.
///
/// # Errors
/// [`Error::WrongDevice`](crate::Error::WrongDevice), and errors of the driver.
pub fn fill<T: Item>(stream: &Stream, value: T, output: &mut Buffer<T>) -> Result<()> {
    output.check_device(stream)?;
    let words = bytemuck::cast::<T, T::Bits>(value).to_words();
    let args = (output.bits_mut(), join(words), join([words[2], words[3], 0, 0]));
    let num_tiles = args.0.len().div_ceil(tile_items::<T::Bits, STREAM_ROWS>()) as u64;
    // SAFETY: the buffer waits for the device before it is freed.
    unsafe { stream.launch::<primitives_fill<T::Bits>>(num_tiles, args) }
}

/// Sets item i to `first + i * step`, modulo 2^32 or 2^64.
///
/// # Errors
/// Like [`fill`].
pub fn iota<T: Number>(stream: &Stream, first: T, step: T, output: &mut Buffer<T>) -> Result<()> {
    output.check_device(stream)?;
    let num_tiles = output.len().div_ceil(tile_items::<T, STREAM_ROWS>()) as u64;
    let args = (output.slice_mut(), join(first.to_words()), join(step.to_words()));
    // SAFETY: as in `fill`.
    unsafe { stream.launch::<primitives_iota<T>>(num_tiles, args) }
}

/// Sets item i of a view to `first + i`.
///
/// # Safety
/// Nothing else uses the view until the stream has done the work. The view is aligned like an allocation.
pub(crate) unsafe fn iota_on(stream: &Stream, first: u32, output: SliceMut<'_, u32>) -> Result<()> {
    let num_tiles = output.len().div_ceil(tile_items::<u32, STREAM_ROWS>()) as u64;
    // SAFETY: passed on to the caller.
    unsafe { stream.launch::<primitives_iota<u32>>(num_tiles, (output, first.into(), 1)) }
}

/// Sets item i to [`splitmix64`] of `seed + i`, truncated to the item's size. The values are the same on every device;
/// they are meant for tests and benchmarks.
///
/// # Errors
/// Like [`fill`].
pub fn noise<T: Number>(stream: &Stream, seed: u64, output: &mut Buffer<T>) -> Result<()> {
    output.check_device(stream)?;
    let num_tiles = output.len().div_ceil(tile_items::<T, STREAM_ROWS>()) as u64;
    // SAFETY: as in `fill`.
    unsafe { stream.launch::<primitives_noise<T>>(num_tiles, (output.slice_mut(), seed)) }
}
