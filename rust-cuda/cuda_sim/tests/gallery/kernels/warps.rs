//! Warp collectives on each of their types.

use cuda_std::prelude::*;
use cuda_std::warp::*;

/// Writes four values for each thread: the shuffles by index, up, down and by exclusive or, by `by` in segments of `width`.
#[kernel(block = 32)]
#[instances(T = [u8, i16, u32, f32, i64, f64, u128, i128])]
pub unsafe fn warp_shuffles<T: WarpShuffleValue + 'static>(
    input: Slice<T>,
    out: SliceMut<T>,
    by: u32,
    width: u32,
) {
    let t = thread::thread_idx_x() as usize;
    let value = input.load(t);
    out.store(4 * t, warp_shuffle_idx(FULL_MASK, value, by, width).0);
    out.store(4 * t + 1, warp_shuffle_up(FULL_MASK, value, by, width).0);
    out.store(4 * t + 2, warp_shuffle_down(FULL_MASK, value, by, width).0);
    out.store(4 * t + 3, warp_shuffle_xor(FULL_MASK, value, by, width).0);
}

/// Writes two words for each thread: match-any, and match-all (0 for none).
#[kernel(block = 32)]
#[instances(T = [u32, i32, u64, i64, f32, f64])]
pub unsafe fn warp_matches<T: WarpMatchValue + 'static>(input: Slice<T>, out: SliceMut<u32>) {
    let t = thread::thread_idx_x() as usize;
    let value = input.load(t);
    out.store(2 * t, warp_match_any(FULL_MASK, value));
    out.store(2 * t + 1, warp_match_all(FULL_MASK, value).unwrap_or(0));
}

/// Writes six values for each thread of `mask`: the reductions by add, min, max, and, or, xor.
#[kernel(block = 32)]
#[instances(T = [u32, i32])]
pub unsafe fn warp_reductions<T: WarpReduceValue + 'static>(input: Slice<T>, out: SliceMut<T>, mask: u32) {
    let t = thread::thread_idx_x() as usize;
    if mask & lane_mask_eq() != 0 {
        let value = input.load(t);
        out.store(6 * t, warp_reduce(mask, value, WarpReductionOp::Add));
        out.store(6 * t + 1, warp_reduce(mask, value, WarpReductionOp::Min));
        out.store(6 * t + 2, warp_reduce(mask, value, WarpReductionOp::Max));
        out.store(6 * t + 3, warp_reduce(mask, value, WarpReductionOp::And));
        out.store(6 * t + 4, warp_reduce(mask, value, WarpReductionOp::Or));
        out.store(6 * t + 5, warp_reduce(mask, value, WarpReductionOp::Xor));
    }
}

/// Writes three words for each thread: ballot, any, all.
#[kernel(block = 32)]
pub unsafe fn warp_votes(input: Slice<u32>, out: SliceMut<u32>) {
    let t = thread::thread_idx_x() as usize;
    let predicate = input.load(t) != 0;
    out.store(3 * t, warp_vote_ballot(FULL_MASK, predicate));
    out.store(3 * t + 1, warp_vote_any(FULL_MASK, predicate).into());
    out.store(3 * t + 2, warp_vote_all(FULL_MASK, predicate).into());
}
