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
