//! Prefix sums and reductions over a warp.

use super::shuffle::{shuffle_idx, shuffle_up, shuffle_xor};
use crate::thread::operator::{Operator, Sum};
use crate::thread::words::Words;
use cuda_std::prelude::*;

/// Returns the inclusive prefix sum over lanes.
///
/// # Safety
/// All lanes call.
#[inline(always)]
pub unsafe fn inclusive_sum(value: u32) -> u32 {
    inclusive::<u32, Sum>(value)
}

/// Returns the inclusive scan over lanes with operator `O`, in lane order.
///
/// # Safety
/// All lanes call.
#[inline(always)]
pub unsafe fn inclusive<T: Words, O: Operator<T>>(value: T) -> T {
    let mut sum = value;
    let mut delta = 1;
    while delta < 32 {
        let below = shuffle_up(sum, delta);
        if warp::lane_id() >= delta {
            sum = O::combine(below, sum);
        }
        delta *= 2;
    }
    sum
}

/// Returns the segmented inclusive scan: values combine back to the nearest lane whose bit is set in `heads`.
///
/// # Safety
/// All lanes call, with the same `heads`.
#[inline(always)]
pub unsafe fn inclusive_since<T: Words, O: Operator<T>>(value: T, heads: u32) -> T {
    let lane = warp::lane_id();
    // The scan reaches down to this lane: the nearest head, or lane 0.
    let from = 31 - (heads & warp::lane_mask_le() | 1).leading_zeros();
    let mut sum = value;
    let mut delta = 1;
    while delta < 32 {
        let below = shuffle_up(sum, delta);
        if lane >= from + delta {
            sum = O::combine(below, sum);
        }
        delta *= 2;
    }
    sum
}

/// Turns an inclusive scan into the exclusive scan and the total.
///
/// # Safety
/// All lanes call.
#[inline(always)]
pub unsafe fn exclusive_of<T: Words, O: Operator<T>>(inclusive: T) -> (T, T) {
    let below = shuffle_up(inclusive, 1);
    let total = shuffle_idx(inclusive, 31);
    (if warp::lane_id() > 0 { below } else { O::IDENTITY }, total)
}

/// Returns the values of all lanes combined in lane order, to every lane.
///
/// # Safety
/// All lanes call.
#[inline(always)]
pub unsafe fn reduce<T: Words, O: Operator<T>>(value: T) -> T {
    let mut sum = value;
    let mut bit = 1;
    while bit < 32 {
        let other = shuffle_xor(sum, bit);
        sum = if warp::lane_id() & bit == 0 { O::combine(sum, other) } else { O::combine(other, sum) };
        bit *= 2;
    }
    sum
}
