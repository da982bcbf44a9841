//! A kernel on top of kauri's joins: the pairs of nearby people with the most common interests.
#![no_std]
#![allow(unsafe_op_in_unsafe_fn)]

use cuda_std::prelude::*;
use kauri_kernels::join::threshold::{CustomScoreLaunch, offer_pairs};
use kauri_kernels::policy::JOIN_THREADS;

/// Interests are bits of a word; the score of a pair is how many both have.
///
/// # Safety
/// Those of [`offer_pairs`]; there is a word of interests for each point.
#[kernel(family = "own", block = JOIN_THREADS)]
pub unsafe fn own_shared_interests(
    launch: CustomScoreLaunch<'_, f32>,
    interests: Slice<u64>,
    right_interests: Slice<u64>,
) {
    offer_pairs::<f32, 2>(launch, |left, right| {
        let both = interests.load(left as usize) & right_interests.load(right as usize);
        // Nobody is a pair with himself.
        if left == right { 0 } else { u64::from(both.count_ones()) }
    });
}
