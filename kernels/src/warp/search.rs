//! Search by a warp: 32 probes a round.

use cuda_std::prelude::*;

/// The first of `low..high` at which `holds` is false; `high` if there is none. It is true up to there and false from there.
///
/// # Safety
/// All lanes call, with the same arguments.
#[inline(always)]
pub unsafe fn partition_point(mut low: usize, mut high: usize, holds: impl Fn(usize) -> bool) -> usize {
    let lane = warp::lane_id() as usize;
    while low < high {
        let step = (high - low).div_ceil(32);
        let probe = low + (lane + 1) * step - 1;
        let lanes = warp::warp_vote_ballot(warp::FULL_MASK, probe < high && holds(probe));
        let lanes = lanes.count_ones() as usize;
        // Between the last probe that holds and the first that does not.
        let end = low + (lanes + 1) * step - 1;
        low += lanes * step;
        high = if end < high { end } else { high };
    }
    low
}

/// [`merge_path::split`](crate::thread::merge_path::split) by a warp.
///
/// # Safety
/// All lanes call, with the same arguments.
#[inline(always)]
pub unsafe fn merge_split(
    first_len: usize,
    second_len: usize,
    diagonal: usize,
    first_goes: impl Fn(usize, usize) -> bool,
) -> usize {
    let low = diagonal.saturating_sub(second_len);
    let high = if diagonal < first_len { diagonal } else { first_len };
    partition_point(low, high, |i| first_goes(i, diagonal - 1 - i))
}
