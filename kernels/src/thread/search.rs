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

/// Returns the [`partition_point`] of `low..end` by an exponential search, for a point that is usually near `low`.
#[inline(always)]
pub fn partition_point_near(mut low: usize, end: usize, holds: impl Fn(usize) -> bool) -> usize {
    let mut step = 1;
    while low + step <= end && holds(low + step - 1) {
        low += step;
        step *= 2;
    }
    partition_point(low, if low + step - 1 < end { low + step - 1 } else { end }, holds)
}
