//! Stable sorts of many independent segments in a few launches.
//!
//! A warp sorts segments of up to 32 items in registers, and puts longer ones on one of two lists. Blocks take segments
//! from the lists by ticket. They sort them in shared memory if they fit, else tile by tile through global memory.

pub mod blocks;
pub mod warps;

use cuda_std::prelude::*;

/// Returns the begin and length of segment `s`. `offsets` has the begins of all segments and the end of the last one.
/// The result never exceeds `num_items`, whatever the offsets are.
#[inline(always)]
unsafe fn segment(offsets: Slice<'_, u64>, s: usize, num_items: usize) -> (usize, usize) {
    let within = |offset: u64| if offset < num_items as u64 { offset as usize } else { num_items };
    let (begin, end) = (within(offsets.load(s)), within(offsets.load(s + 1)));
    (begin, end.saturating_sub(begin))
}
