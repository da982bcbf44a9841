//! Merge path by one thread (Green, McColl, Bader 2012, *GPU Merge Path*).

use super::search::partition_point;

/// Returns how many of the first `diagonal` items of the merge of two sorted runs come from the first run.
/// `takes_first(i, j)` is true if item `i` of the first run comes before item `j` of the second. It must be true for
/// equal items, which makes the merge stable.
#[inline(always)]
pub fn split(
    first_len: usize,
    second_len: usize,
    diagonal: usize,
    takes_first: impl Fn(usize, usize) -> bool,
) -> usize {
    let low = diagonal.saturating_sub(second_len);
    let high = if diagonal < first_len { diagonal } else { first_len };
    partition_point(low, high, |i| takes_first(i, diagonal - 1 - i))
}

/// [`split`] for runs in shared memory: 32-bit arithmetic takes half as many instructions.
#[inline(always)]
pub fn split_u32(
    first_len: u32,
    second_len: u32,
    diagonal: u32,
    takes_first: impl Fn(u32, u32) -> bool,
) -> u32 {
    let mut low = diagonal.saturating_sub(second_len);
    let mut high = if diagonal < first_len { diagonal } else { first_len };
    while low < high {
        let middle = (low + high) / 2;
        let is_first = takes_first(middle, diagonal - 1 - middle);
        low = if is_first { middle + 1 } else { low };
        high = if is_first { high } else { middle };
    }
    low
}
