//! Searches by several lanes of a warp: each round makes a probe per lane.

use cuda_std::prelude::*;

/// Returns the first index of `low..high` at which `holds` is false, or `high`. `holds` must be true up to there and
/// false from there on. Each group of `LANES` lanes, a power of two, makes one search.
///
/// # Safety
/// All lanes of the warp call; the lanes of a group pass the same arguments.
#[inline(always)]
pub unsafe fn partition_point<const LANES: u32>(
    mut low: usize,
    mut high: usize,
    holds: impl Fn(usize) -> bool,
) -> usize {
    let lane = warp::lane_id() % LANES;
    let group = warp::lane_id() - lane;
    // Groups that are done keep voting with the others, and change nothing.
    while warp::warp_vote_any(warp::FULL_MASK, low < high) {
        let step = (high - low).div_ceil(LANES as usize);
        let next = low + (lane as usize + 1) * step;
        let is_true = low < high && next <= high && holds(next - 1);
        let lanes = (warp::warp_vote_ballot(warp::FULL_MASK, is_true) >> group) & (u32::MAX >> (32 - LANES));
        let lanes = lanes.count_ones() as usize;
        if low < high {
            // The result is between the last probe that holds and the first that does not.
            let end = low + (lanes + 1) * step - 1;
            low += lanes * step;
            high = if end < high { end } else { high };
        }
    }
    low
}

/// [`merge_path::split`](crate::thread::merge_path::split) by `LANES` lanes of a warp.
///
/// # Safety
/// As [`partition_point`].
#[inline(always)]
pub unsafe fn merge_split<const LANES: u32>(
    first_len: usize,
    second_len: usize,
    diagonal: usize,
    takes_first: impl Fn(usize, usize) -> bool,
) -> usize {
    let low = diagonal.saturating_sub(second_len);
    let high = if diagonal < first_len { diagonal } else { first_len };
    partition_point::<LANES>(low, high, |i| takes_first(i, diagonal - 1 - i))
}
