//! Histograms: the number of items in each of up to 4096 bins of equal width, or with each value of each byte. Each
//! item is read once; no temporary memory is needed; counts are `u64`.

use crate::device::{Buffer, Stream};
use crate::error::{Error, Result};
use kauri_kernels::block::tile::tile_items;
use kauri_kernels::policy::{FOLD_MAX_BLOCKS, MAX_BINS, STREAM_ROWS};
pub use kauri_kernels::primitives::histogram::BinnedCoord;
use kauri_kernels::primitives::histogram::{primitives_digit_histogram, primitives_histogram};
use kauri_kernels::thread::radix_key::{RADIX, RadixKey};
use kauri_kernels::thread::words::Words;

/// Counts the items in each of `counts.len()` bins of equal width from `low` to `high`, which are rounded to the items'
/// type. Items outside of `low <= x < high` and NaN are not counted; an empty range counts nothing.
///
/// The bin of x is (x - low) / (high - low) times the number of bins, truncated. It is computed in the items' type in
/// this order, and clamped to the last bin where rounding exceeds it.
///
/// # Errors
/// [`Error::Shape`] unless there are 1 to 4096 counts, [`Error::WrongDevice`], and errors of the driver.
pub fn even<C: BinnedCoord>(
    stream: &Stream,
    input: &Buffer<C>,
    low: f64,
    high: f64,
    counts: &mut Buffer<u64>,
) -> Result<()> {
    if counts.is_empty() || counts.len() > MAX_BINS {
        let (expected, got) = (MAX_BINS as u64, counts.len() as u64);
        return Err(Error::Shape { what: "bins of a histogram, at most", expected, got });
    }
    input.check_device(stream)?;
    counts.fill_bytes(stream, 0)?;
    // SAFETY: buffers wait for the device before they are freed.
    unsafe {
        let args = (input.slice(), counts.slice_mut(), low, high);
        stream.launch::<primitives_histogram<C>>(num_blocks::<C>(input.len()), args)
    }
}

/// Counts every value of every byte of the keys, the lowest byte first: 256 counts per byte.
///
/// # Errors
/// [`Error::Shape`] unless there are 256 counts per byte of a key, [`Error::WrongDevice`], and errors of the driver.
pub fn digits<K: RadixKey + Words>(
    stream: &Stream,
    keys: &Buffer<K>,
    counts: &mut Buffer<u64>,
) -> Result<()> {
    counts.check_items("counts of digits", RADIX * size_of::<K>())?;
    keys.check_device(stream)?;
    counts.fill_bytes(stream, 0)?;
    // SAFETY: as above.
    unsafe {
        let args = (keys.slice(), counts.slice_mut());
        stream.launch::<primitives_digit_histogram<K>>(num_blocks::<K>(keys.len()), args)
    }
}

/// Returns the number of blocks: one per tile, up to a maximum.
fn num_blocks<T: Words>(num_items: usize) -> u64 {
    num_items.div_ceil(tile_items::<T, STREAM_ROWS>()).min(FOLD_MAX_BLOCKS) as u64
}
