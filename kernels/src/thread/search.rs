//! Binary search by one thread.

/// Returns the first index of `low..high` at which `holds` is false, or `high`. `holds` must be true up to there and
/// false from there on.
#[inline(always)]
pub fn partition_point(mut low: usize, mut high: usize, holds: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
