//! Kernels on top of kauri's kernels: the pairs of nearby people with the most common interests, and photon density.
#![no_std]
#![allow(unsafe_op_in_unsafe_fn)]

pub mod photons;

use cuda_std::prelude::*;
use kauri_kernels::join::threshold::{CustomScoreLaunch, offer_pairs};
use kauri_kernels::policy::JOIN_THREADS;

/// Offers pairs of people, scored by the number of common interests. Each bit of a person's word is an interest.
///
/// # Safety
/// The conditions of [`offer_pairs`] hold, and there is a word of interests for each person.
#[kernel(family = "own", block = JOIN_THREADS)]
pub unsafe fn own_shared_interests(
    launch: CustomScoreLaunch<'_, f32>,
    interests: Slice<u64>,
    right_interests: Slice<u64>,
) {
    offer_pairs::<f32, 2>(launch, |left, right| {
        let both = interests.load(left as usize) & right_interests.load(right as usize);
        // Both sets are the same people: a person paired with themself gets the lowest score.
        if left == right { 0 } else { u64::from(both.count_ones()) }
    });
}
