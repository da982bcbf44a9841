//! Segments of an array, given by where they begin.

use cuda_std::mem::Slice;

/// The last of the segments `low..=high` that begins at `i` or before; segment `low` does. Of empty segments that begin in
/// one place with others the last is never one, unless it is the last of all.
///
/// # Safety
/// `offsets` has an item for each segment.
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
