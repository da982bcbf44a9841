//! Merge path by one thread (Green, McColl, Bader 2012, *GPU Merge Path*).

use super::search::partition_point;

/// How many of the first `diagonal` items of the merge of two sorted runs are of the first run. `first_goes(i, j)` says that
/// item i of the first run comes before item j of the second: where neither has to, it does, which makes the merge stable.
#[inline(always)]
pub fn split(
    first_len: usize,
    second_len: usize,
    diagonal: usize,
    first_goes: impl Fn(usize, usize) -> bool,
) -> usize {
    let low = diagonal.saturating_sub(second_len);
    let high = if diagonal < first_len { diagonal } else { first_len };
    partition_point(low, high, |i| first_goes(i, diagonal - 1 - i))
}

/// [`split`] of runs in shared memory: arithmetic of 32 bits takes half of the instructions.
#[inline(always)]
pub fn split_short(
    first_len: u32,
    second_len: u32,
    diagonal: u32,
    first_goes: impl Fn(u32, u32) -> bool,
) -> u32 {
    let mut low = diagonal.saturating_sub(second_len);
    let mut high = if diagonal < first_len { diagonal } else { first_len };
    while low < high {
        let middle = (low + high) / 2;
        let goes = first_goes(middle, diagonal - 1 - middle);
        low = if goes { middle + 1 } else { low };
        high = if goes { high } else { middle };
    }
    low
}
