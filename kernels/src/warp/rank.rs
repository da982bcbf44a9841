//! Matching of lanes with equal digits.

use crate::thread::radix_key::RADIX_BITS;
use cuda_std::prelude::*;

/// Returns the mask of the lanes with the caller's digit.
///
/// # Safety
/// All lanes call.
#[inline(always)]
pub unsafe fn lanes_with_digit(digit: u32) -> u32 {
    lanes_with_bits::<RADIX_BITS>(digit)
}

/// Returns the mask of the lanes whose lowest `BITS` bits equal those of the caller's digit, with one ballot per bit.
///
/// # Safety
/// All lanes call.
#[inline(always)]
pub unsafe fn lanes_with_bits<const BITS: u32>(digit: u32) -> u32 {
    // Collects the lanes that differ in some bit. In this form one predicate serves the vote and the selection, and a
    // bit takes four instructions.
    let mut others = 0;
    for bit in 0..BITS {
        let is_clear = digit & (1 << bit) == 0;
        let clear = warp::warp_vote_ballot(warp::FULL_MASK, is_clear);
        others |= clear ^ if is_clear { warp::FULL_MASK } else { 0 };
    }
    !others
}
