//! The subtrees of a radix tree at which an ascent begins: the largest ones with few triangles among those of a warp.

use super::clusters::MAX_CLUSTERS;
use cuda_std::prelude::*;

/// The level of a node of the radix tree: greater than those of its children. Nodes are between two neighbors, the first of which is `i`: their codes
/// differ first in the bit of the level. Equal codes are told apart by their positions.
#[inline(always)]
pub(super) unsafe fn level(codes: Slice<'_, u64>, i: u32) -> u32 {
    let bits = codes.load(i as usize) ^ codes.load(i as usize + 1);
    if bits == 0 { 32 - (i ^ (i + 1)).leading_zeros() } else { 128 - bits.leading_zeros() }
}

/// The level outside of all triangles.
const OUTSIDE: u32 = 255;

/// The bits of a level.
const LEVEL_BITS: u32 = 8;

/// The last triangle of a subtree that begins with another one.
const NONE: u32 = u32::MAX;

/// Returns the last triangle of the largest subtree that begins with the triangle of the thread, has no more than [`MAX_CLUSTERS`] triangles, all of the
/// warp, and is not part of another such one. All lanes must call, those beyond the triangles too. `lasts` is memory of the warp.
///
/// A node is the one of the greatest level in its range, which ends where levels are greater.
#[inline(always)]
pub(super) unsafe fn small_range(
    codes: Slice<'_, u64>,
    triangle: u32,
    lasts: SharedSlice<'_, u32>,
) -> Option<u32> {
    let lane = warp::lane_id();
    let (num_nodes, first_triangle) = (codes.len() as u32 - 1, triangle - lane);
    // Lane i has the node behind triangle i.
    let own = if triangle < num_nodes { level(codes, triangle) } else { OUTSIDE };
    let before = if first_triangle == 0 || first_triangle > num_nodes {
        OUTSIDE
    } else {
        level(codes, first_triangle - 1)
    };
    let (mut greater, mut equal) = (0, u32::MAX);
    let mut bit = LEVEL_BITS;
    while bit > 0 {
        bit -= 1;
        let ones = warp::warp_vote_ballot(warp::FULL_MASK, own >> bit & 1 == 1);
        if own >> bit & 1 == 0 {
            greater |= equal & ones;
            equal &= !ones;
        } else {
            equal &= ones;
        }
    }
    let (below, above) = (greater & warp::lane_mask_lt(), greater & !warp::lane_mask_lt());
    let (first, last) = (32 - below.leading_zeros(), above.trailing_zeros());
    let is_complete = last < 32 && (first > 0 || before > own);
    let is_small = is_complete && last - first < MAX_CLUSTERS;
    let small = warp::warp_vote_ballot(warp::FULL_MASK, is_small);
    // The parent of a range is the lower node of the two at its ends.
    let parent = |first: u32, last: u32| {
        let at_first = warp::shuffle_idx(warp::FULL_MASK, own, first.wrapping_sub(1) & 31);
        let at_last = warp::shuffle_idx(warp::FULL_MASK, own, last & 31);
        let at_first = if first == 0 { before } else { at_first };
        if at_last < at_first { last & 31 } else { first.wrapping_sub(1) & 31 }
    };
    let parent_of_triangle = parent(lane, lane);
    let parent_of_range = parent(first, last);
    // A parent before the first triangle is not small; neither is the last lane's node, whose number it has.
    let is_largest = |parent: u32| small >> parent & 1 == 0;
    lasts.store(lane as usize, if is_largest(parent_of_triangle) { lane } else { NONE });
    warp::sync_warp(warp::FULL_MASK);
    if is_small && is_largest(parent_of_range) {
        lasts.store(first as usize, last);
    }
    warp::sync_warp(warp::FULL_MASK);
    let last = lasts.load(lane as usize);
    // Before the memory is used again.
    warp::sync_warp(warp::FULL_MASK);
    if last == NONE { None } else { Some(first_triangle + last) }
}
