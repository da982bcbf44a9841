//! The subtrees of a radix tree at which an ascent begins: the largest ones with few triangles. A warp finds those of its triangles, and of some on
//! both sides, without other warps.

use super::clusters::MAX_CLUSTERS;
use cuda_std::prelude::*;

/// The triangles on each side of a warp's whose codes it reads: more than a range of few has.
const MARGIN: u32 = 32;

/// The differences that a warp reads.
pub const WINDOW: usize = 32 + 2 * MARGIN as usize;

/// The codes of triangles differ by more than all others before the first triangle and behind the last one.
const MOST: u64 = u64::MAX;

/// Returns how much the codes of triangle `i` and the next one differ. Equal codes are told apart by their positions: they differ less than codes,
/// which have less than 64 bits.
#[inline(always)]
pub(super) unsafe fn difference(codes: Slice<'_, u64>, i: u32) -> u64 {
    let bits = codes.load(i as usize) ^ codes.load(i as usize + 1);
    if bits == 0 { (i ^ (i + 1)).into() } else { bits | 1 << 63 }
}

/// Returns the first and the last triangle of the largest subtree that has the triangle of the thread, and no more than [`MAX_CLUSTERS`] triangles.
/// All lanes must call, those beyond the triangles too. `differences` is memory of the warp.
#[inline(always)]
pub(super) unsafe fn small_range(
    codes: Slice<'_, u64>,
    triangle: u32,
    differences: SharedSlice<'_, u64>,
) -> (u32, u32) {
    let lane = warp::lane_id();
    // The window may begin before the first triangle: numbers wrap around.
    let begin = (triangle - lane).wrapping_sub(MARGIN);
    let num_differences = codes.len() as u32 - 1;
    for part in 0..WINDOW as u32 / 32 {
        let at = 32 * part + lane;
        let i = begin.wrapping_add(at);
        let difference = if i < num_differences { difference(codes, i) } else { MOST };
        differences.store(at as usize, difference);
    }
    warp::sync_warp(warp::FULL_MASK);
    let behind = |i: u32| differences.load(i.wrapping_sub(begin) as usize);
    let before = |i: u32| behind(i.wrapping_sub(1));
    let (mut first, mut last) = (triangle, triangle);
    loop {
        // The range of the parent.
        let (at_first, at_last) = (before(first), behind(last));
        let (mut begin, mut end) = (first, last);
        if at_last < at_first {
            end += 1;
            while end - begin < MAX_CLUSTERS && behind(end) < at_last {
                end += 1;
            }
        } else if at_first < MOST {
            begin -= 1;
            while end - begin < MAX_CLUSTERS && before(begin) < at_first {
                begin -= 1;
            }
        } else {
            return (first, last);
        }
        if end - begin >= MAX_CLUSTERS {
            return (first, last);
        }
        (first, last) = (begin, end);
    }
}
