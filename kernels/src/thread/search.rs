//! Binary search by one thread.

/// The first of `low..high` at which `holds` is false; `high` if there is none. It is true up to there and false from there.
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
