//! Histograms of all digits in one pass over the keys, and the exclusive sums of each digit's counts.

use crate::policy::{HISTOGRAM_COPIES, HISTOGRAM_ITEMS, HISTOGRAM_THREADS, histogram_tile};
use crate::thread::items::strided;
use crate::thread::radix_key::{DigitReader, RADIX, RADIX_BITS, RadixKey, SortBy, digit_mask};
use cuda_std::prelude::*;

/// Shared memory of [`primitives_radix_sort_histogram()`].
#[repr(C)]
pub struct HistogramSmem<K: RadixKey> {
    /// The lanes of a warp spread over [`HISTOGRAM_COPIES`] copies of each counter.
    counts: K::Counters,
    is_last: [u32; 1],
}

/// For each digit of the bits that are sorted by, the lowest first, writes a row of 256 offsets to `digit_begins`: where
/// the items with each value of the digit begin in the order by that digit. `digit_begins` and `num_done` are zeroed
/// before. Works with any number of blocks.
#[kernel(family = "primitives-radix-sort", hot, block = HISTOGRAM_THREADS, shared = HistogramSmem<K>)]
#[instances(K = [u32, u64], FOLDED = [false, true])]
pub unsafe fn primitives_radix_sort_histogram<K: RadixKey, const FOLDED: bool>(
    keys: Slice<K>,
    digit_begins: SliceMut<u64>,
    num_done: SliceMut<u32>,
    by: SortBy,
) {
    let reader = DigitReader::new(by.order);
    Histogram::<K, FOLDED> { keys, digit_begins, num_done, by, reader }.run()
}

/// One block's part of the counting.
struct Histogram<'a, K, const FOLDED: bool> {
    keys: Slice<'a, K>,
    digit_begins: SliceMut<'a, u64>,
    num_done: SliceMut<'a, u32>,
    by: SortBy,
    reader: DigitReader<K, FOLDED>,
}

impl<K: RadixKey, const FOLDED: bool> Histogram<'_, K, FOLDED> {
    const DIGITS: usize = size_of::<K>();
    const TILE: usize = histogram_tile(size_of::<K>());
    const ITEMS: usize = Self::TILE / HISTOGRAM_THREADS;

    #[inline(always)]
    unsafe fn run(self) {
        let smem = shared_mem::<HistogramSmem<K>>();
        let (counts, is_last) = (shared_field!(smem, counts), shared_field!(smem, is_last));
        let t = thread::thread_idx_x() as usize;
        let num_counts = self.digit_begins.len();
        for i in strided(t, num_counts * HISTOGRAM_COPIES, HISTOGRAM_THREADS) {
            counts.store(i, 0);
        }
        thread::sync_threads();

        for tile in strided(
            thread::block_idx_x() as usize * Self::TILE,
            self.keys.len(),
            thread::grid_dim_x() as usize * Self::TILE,
        ) {
            self.count_tile(tile + t, counts);
        }
        thread::sync_threads();

        for i in strided(t, num_counts, HISTOGRAM_THREADS) {
            let mut count = 0;
            for copy in 0..HISTOGRAM_COPIES {
                count += counts.load(i * HISTOGRAM_COPIES + copy);
            }
            if count != 0 {
                self.digit_begins.atomic_add(i, count.into(), Ordering::Relaxed, Scope::Device);
            }
        }
        thread::sync_threads();

        // The last block to finish sees all counts: its atomic addition to `num_done` follows the additions of every
        // block.
        if t == 0 {
            let num_done = self.num_done.atomic_add(0, 1, Ordering::AcqRel, Scope::Device) + 1;
            is_last.store(0, (num_done == thread::grid_dim_x()).into());
        }
        thread::sync_threads();
        if is_last.load(0) != 0 {
            let mut row = t / 32;
            while row * RADIX < num_counts {
                exclusive_sums(self.digit_begins.part(row * RADIX, RADIX));
                row += HISTOGRAM_THREADS / 32;
            }
        }
    }

    #[inline(always)]
    unsafe fn count_tile(&self, first: usize, counts: SharedSlice<'_, u32>) {
        let last = first + (Self::ITEMS - 1) * HISTOGRAM_THREADS;
        if last < self.keys.len() {
            // All loads are in flight before the first key is counted.
            let mut keys = [K::ZERO; HISTOGRAM_ITEMS];
            for item in 0..Self::ITEMS {
                keys[item] = self.keys.load(first + item * HISTOGRAM_THREADS);
            }
            for item in 0..Self::ITEMS {
                self.count(keys[item], counts);
            }
        } else {
            for i in strided(first, self.keys.len(), HISTOGRAM_THREADS) {
                self.count(self.keys.load(i), counts);
            }
        }
    }

    #[inline(always)]
    unsafe fn count(&self, key: K, counts: SharedSlice<'_, u32>) {
        let key = self.reader.loaded(key);
        let copy = thread::thread_idx_x() as usize % HISTOGRAM_COPIES;
        for pass in 0..Self::DIGITS {
            let shift = self.by.begin_bit + pass as u32 * RADIX_BITS;
            if shift < self.by.end_bit {
                let digit = self.reader.digit(key, shift, digit_mask(self.by.end_bit - shift)) as usize;
                let count = (pass * RADIX + digit) * HISTOGRAM_COPIES + copy;
                counts.atomic_add(count, 1, Ordering::Relaxed, Scope::Block);
            }
        }
    }
}

/// Replaces each count by the sum of the counts before it; executed by one warp.
#[inline(always)]
unsafe fn exclusive_sums(counts: SliceMut<'_, u64>) {
    const LANE_DIGITS: usize = RADIX / 32;
    let lane = warp::lane_id() as usize;
    let mut before_digit = [0; LANE_DIGITS];
    let mut sum = 0u64;
    for i in 0..LANE_DIGITS {
        before_digit[i] = sum;
        sum += counts.load(lane * LANE_DIGITS + i);
    }
    let mut before = sum;
    let mut delta = 1;
    while delta < 32 {
        let below = warp::shuffle_up(warp::FULL_MASK, before, delta as u32);
        if lane >= delta {
            before += below;
        }
        delta *= 2;
    }
    for i in 0..LANE_DIGITS {
        counts.store(lane * LANE_DIGITS + i, before - sum + before_digit[i]);
    }
}
