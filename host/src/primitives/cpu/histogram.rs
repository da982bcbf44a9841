//! Histograms on the CPU; see [the GPU version](crate::primitives::histogram).

use kauri_kernels::primitives::histogram::{BinnedCoord, Bins};
use kauri_kernels::thread::radix_key::{RADIX, RADIX_BITS, RadixKey};
use rayon::prelude::*;

/// Items of a task.
const CHUNK: usize = 1 << 16;

/// Returns the number of items in each of `num_bins` bins of equal width from `low` to `high`.
pub fn even<C: BinnedCoord>(input: &[C], low: f64, high: f64, num_bins: usize) -> Vec<u64> {
    let bins = Bins { low: C::from_f64(low), high: C::from_f64(high), num_bins };
    count(input, num_bins, |&x, counts| {
        if let Some(bin) = bins.of(x) {
            counts[bin] += 1;
        }
    })
}

/// Returns the number of keys with each value of each byte, the lowest byte first: 256 counts per byte.
pub fn digits<K: RadixKey>(keys: &[K]) -> Vec<u64> {
    count(keys, RADIX * size_of::<K>(), |key, counts| {
        for digit in 0..size_of::<K>() {
            counts[digit * RADIX + (key.low_bits(digit as u32 * RADIX_BITS) as usize & (RADIX - 1))] += 1;
        }
    })
}

fn count<T: Sync>(input: &[T], num_counts: usize, visit: impl Fn(&T, &mut [u64]) + Sync) -> Vec<u64> {
    let chunks = input.par_chunks(CHUNK).map(|items| {
        let mut counts = vec![0; num_counts];
        items.iter().for_each(|item| visit(item, &mut counts));
        counts
    });
    let add = |mut a: Vec<u64>, b: Vec<u64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    chunks.reduce(|| vec![0; num_counts], add)
}
