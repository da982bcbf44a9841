//! Search in the segments of an array, which are given by their begin offsets.

use cuda_std::mem::Slice;

/// Returns the last of the segments `low..=high` that begins at or before item `i`; segment `low` must. An empty
/// segment that shares its begin with a later segment is never returned.
///
/// # Safety
/// `offsets` has an entry per segment.
#[inline(always)]
pub unsafe fn segment_of(offsets: Slice<u64>, i: u64, mut low: usize, mut high: usize) -> usize {
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if offsets.load(middle) <= i {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}
