//! Search by lanes of a warp: as many probes a round.

use cuda_std::prelude::*;

/// The first of `low..high` at which `holds` is false; `high` if there is none. It is true up to there and false from there.
/// Each `LANES` lanes of the warp, a power of two, search for one of their own.
///
/// # Safety
/// All lanes of the warp call; those that search together with the same arguments.
#[inline(always)]
pub unsafe fn partition_point<const LANES: u32>(
    mut low: usize,
    mut high: usize,
    holds: impl Fn(usize) -> bool,
) -> usize {
    let lane = warp::lane_id() % LANES;
    let group = warp::lane_id() - lane;
    // Groups that are done go on with the others, and find nothing more.
    while warp::warp_vote_any(warp::FULL_MASK, low < high) {
        let step = (high - low).div_ceil(LANES as usize);
        let next = low + (lane as usize + 1) * step;
        let is_true = low < high && next <= high && holds(next - 1);
        let lanes = (warp::warp_vote_ballot(warp::FULL_MASK, is_true) >> group) & (u32::MAX >> (32 - LANES));
        let lanes = lanes.count_ones() as usize;
        if low < high {
            // Between the last probe that holds and the first that does not.
            let end = low + (lanes + 1) * step - 1;
            low += lanes * step;
            high = if end < high { end } else { high };
        }
    }
    low
}

/// [`merge_path::split`](crate::thread::merge_path::split) by lanes of a warp.
///
/// # Safety
/// As [`partition_point`].
#[inline(always)]
pub unsafe fn merge_split<const LANES: u32>(
    first_len: usize,
    second_len: usize,
    diagonal: usize,
    first_goes: impl Fn(usize, usize) -> bool,
) -> usize {
    let low = diagonal.saturating_sub(second_len);
    let high = if diagonal < first_len { diagonal } else { first_len };
    partition_point::<LANES>(low, high, |i| first_goes(i, diagonal - 1 - i))
}
