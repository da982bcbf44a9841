//! Histograms: each block counts in its shared memory, then adds its counts to the global ones.

use crate::block::tile::{self, THREADS, row_begin, tile_items};
use crate::policy::{MAX_BINS, STREAM_ROWS as ROWS};
use crate::thread::coord::Float;
use crate::thread::radix_key::{RADIX, RADIX_BITS, RadixKey};
use crate::thread::words::Words;
use cuda_std::prelude::*;

/// Adds to `counts`, which start at 0, the number of items in each of `counts.len()` bins of equal width from `low` to
/// `high`. Items outside of `low <= x < high` and NaN are not counted.
#[kernel(family = "primitives-moves", block = THREADS, shared = HistogramSmem)]
#[instances(C = [f32, f64])]
pub unsafe fn primitives_histogram<C: BinnedCoord>(
    input: Slice<C>,
    counts: SliceMut<u64>,
    low: f64,
    high: f64,
) {
    let num_bins = counts.len();
    let bins = Bins { low: C::from_f64(low), high: C::from_f64(high), num_bins };
    Histogram { counts }.run(input, num_bins, |x, counts| {
        if let Some(bin) = bins.of(x) {
            count(counts, bin)
        }
    })
}

/// Adds to `counts`, which start at 0, the number of keys per value of every digit: `RADIX` counts per digit, the
/// lowest digit first.
#[kernel(family = "primitives-moves", block = THREADS, shared = HistogramSmem)]
#[instances(K = [u32, u64])]
pub unsafe fn primitives_digit_histogram<K: RadixKey + Words>(input: Slice<K>, counts: SliceMut<u64>) {
    Histogram { counts }.run(input, counts.len(), |key, counts| {
        for digit in 0..size_of::<K>() {
            count(counts, digit * RADIX + (key.low_bits(digit as u32 * RADIX_BITS) as usize & (RADIX - 1)));
        }
    })
}

/// A coordinate type with histograms.
pub trait BinnedCoord: Float + Words {
    /// Truncates a nonnegative number.
    fn to_bin(self) -> usize;
    /// Converts a number of bins exactly; there are at most 4096.
    fn from_bins(num_bins: usize) -> Self;
    /// Returns the quotient.
    fn divided_by(self, by: Self) -> Self;
}

macro_rules! binned {
    ($($t:ty)*) => { $(
        impl BinnedCoord for $t {
            #[inline(always)]
            fn to_bin(self) -> usize {
                self as u32 as usize
            }
            #[inline(always)]
            fn from_bins(num_bins: usize) -> Self {
                num_bins as u32 as $t
            }
            #[inline(always)]
            fn divided_by(self, by: Self) -> Self {
                self / by
            }
        }
    )* };
}
binned!(f32 f64);

/// Bins of equal width.
#[derive(Clone, Copy, Debug)]
pub struct Bins<C> {
    /// The lower end of the first bin.
    pub low: C,
    /// The upper end of the last bin, exclusive.
    pub high: C,
    /// The number of bins.
    pub num_bins: usize,
}

impl<C: BinnedCoord> Bins<C> {
    /// Returns the bin of `x`: (x - low) / (high - low) times the number of bins, truncated, in this order of
    /// operations. `None` for NaN and for values outside of `low <= x < high`.
    #[inline(always)]
    pub fn of(&self, x: C) -> Option<usize> {
        // Written this way, the condition also rejects NaN.
        if !(x >= self.low && x < self.high) {
            return None;
        }
        let part = (x - self.low).divided_by(self.high - self.low);
        let bin = (part * C::from_bins(self.num_bins)).to_bin();
        // Rounding can reach the number of bins.
        Some(if bin < self.num_bins { bin } else { self.num_bins - 1 })
    }
}

/// Shared memory of a histogram.
#[repr(C)]
pub struct HistogramSmem {
    counts: [u32; MAX_BINS],
}

/// Adds one to a bin.
#[inline(always)]
unsafe fn count(counts: SharedSlice<'_, u32>, bin: usize) {
    counts.atomic_add(bin, 1, Ordering::Relaxed, Scope::Block);
}

/// One block's part of the counting.
struct Histogram<'a> {
    counts: SliceMut<'a, u64>,
}

impl Histogram<'_> {
    /// Calls `visit` for each of the block's items with the block's counts, then adds these to the global counts.
    #[inline(always)]
    unsafe fn run<T: Words>(
        self,
        input: Slice<'_, T>,
        num_bins: usize,
        visit: impl Fn(T, SharedSlice<'_, u32>),
    ) {
        let counts = shared_field!(shared_mem::<HistogramSmem>(), counts);
        let thread = thread::thread_idx_x() as usize;
        let mut bin = thread;
        while bin < num_bins {
            counts.store(bin, 0);
            bin += THREADS;
        }
        thread::sync_threads();
        let stride = thread::grid_dim_x() as usize * tile_items::<T, ROWS>();
        let mut begin = thread::block_idx_x() as usize * tile_items::<T, ROWS>();
        while begin < input.len() {
            let items = tile::load::<T, ROWS>(input, begin, T::ZEROS);
            for row in 0..ROWS {
                for e in 0..T::PER_16 {
                    if begin + row_begin::<T, ROWS>(row) + e < input.len() {
                        visit(items[row][e], counts);
                    }
                }
            }
            begin += stride;
        }
        thread::sync_threads();
        let mut bin = thread;
        while bin < num_bins {
            let count = counts.load(bin);
            // With clustered data, most bins of a block are empty.
            if count != 0 {
                self.counts.atomic_add(bin, count.into(), Ordering::Relaxed, Scope::Device);
            }
            bin += THREADS;
        }
    }
}
