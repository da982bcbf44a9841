//! Warp collectives.

use cuda_std::prelude::*;
use cuda_std::warp::*;

/// Writes eight words for each thread: ballot, any, all, lane id and lane masks.
#[kernel(family = "test", block = 64)]
pub unsafe fn test_votes(input: Slice<u32>, out: SliceMut<u32>, mask: u32) {
    let i = thread::index_1d() as usize;
    if mask & lane_mask_eq() != 0 {
        let predicate = input.load(i) != 0;
        out.store(8 * i, warp_vote_ballot(mask, predicate));
        out.store(8 * i + 1, warp_vote_any(mask, predicate).into());
        out.store(8 * i + 2, warp_vote_all(mask, predicate).into());
        out.store(8 * i + 3, lane_id());
        out.store(8 * i + 4, lane_mask_lt());
        out.store(8 * i + 5, lane_mask_le());
        out.store(8 * i + 6, lane_mask_gt());
        out.store(8 * i + 7, lane_mask_ge());
        sync_warp(mask);
    }
}

/// Writes four values and four flags for each thread: the four shuffles by `by` in segments of `width`.
#[kernel(family = "test", block = 64)]
#[instances(T = [u32, i32, u64, f32, f64, u128])]
pub unsafe fn test_shuffles<T: WarpShuffleValue + 'static>(
    input: Slice<T>,
    out: SliceMut<T>,
    flags: SliceMut<u32>,
    by: u32,
    width: u32,
) {
    let i = thread::index_1d() as usize;
    let value = input.load(i);
    let results = [
        warp_shuffle_idx(FULL_MASK, value, by, width),
        warp_shuffle_up(FULL_MASK, value, by, width),
        warp_shuffle_down(FULL_MASK, value, by, width),
        warp_shuffle_xor(FULL_MASK, value, by, width),
    ];
    let mut r = 0;
    while r < 4 {
        out.store(4 * i + r, results[r].0);
        flags.store(4 * i + r, results[r].1.into());
        r += 1;
    }
}

/// Writes two words for each thread: match-any, and match-all (0 for none).
#[kernel(family = "test", block = 64)]
#[instances(T = [u32, u64, f32, i64])]
pub unsafe fn test_matches<T: WarpMatchValue + 'static>(input: Slice<T>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let value = input.load(i);
    out.store(2 * i, warp_match_any(FULL_MASK, value));
    out.store(2 * i + 1, warp_match_all(FULL_MASK, value).unwrap_or(0));
}

/// Writes six words for each thread: the six reductions over the lanes of `mask`.
#[kernel(family = "test", block = 64)]
#[instances(T = [u32, i32])]
pub unsafe fn test_reductions<T: WarpReduceValue + 'static>(input: Slice<T>, out: SliceMut<T>, mask: u32) {
    let i = thread::index_1d() as usize;
    if mask & lane_mask_eq() != 0 {
        let value = input.load(i);
        out.store(6 * i, warp_reduce(mask, value, WarpReductionOp::Add));
        out.store(6 * i + 1, warp_reduce(mask, value, WarpReductionOp::Min));
        out.store(6 * i + 2, warp_reduce(mask, value, WarpReductionOp::Max));
        out.store(6 * i + 3, warp_reduce(mask, value, WarpReductionOp::And));
        out.store(6 * i + 4, warp_reduce(mask, value, WarpReductionOp::Or));
        out.store(6 * i + 5, warp_reduce(mask, value, WarpReductionOp::Xor));
    }
}
