//! A kernel on top of kauri's joins: of people near each other those who have most in common.
#![no_std]
#![allow(unsafe_op_in_unsafe_fn)]

use cuda_std::prelude::*;
use kauri_kernels::join::around::Lefts;
use kauri_kernels::join::rising::{OwnLaunch, offer_all};
use kauri_kernels::policy::JOIN_THREADS;
use kauri_kernels::thread::words::Bits128;

/// Interests are bits of a word; the score of a pair is how many both have.
///
/// # Safety
/// As of [`offer_all`]; there are as many words as points.
#[kernel(family = "own", block = JOIN_THREADS)]
pub unsafe fn own_shared_interests(
    codes: Slice<u64>,
    begins: Slice<u32>,
    directory: Slice<u32>,
    coords: Slice<f32>,
    ids: Slice<u32>,
    right_coords: Slice<f32>,
    right_ids: Slice<u32>,
    dims: u32,
    grid: Slice<f64>,
    shape: u32,
    bound: f64,
    first_block: u64,
    stride: u64,
    pairs: SliceMut<Bits128>,
    state: SliceMut<u64>,
    interests: Slice<u64>,
    right_interests: Slice<u64>,
) {
    let lefts = Lefts { codes, begins, directory, coords, ids };
    let launch =
        OwnLaunch { lefts, right_coords, right_ids, dims, grid, shape, bound, first_block, stride, pairs, state };
    offer_all::<f32, 2>(launch, |left, right| {
        let both = interests.load(left as usize) & right_interests.load(right as usize);
        // Nobody is a pair with himself.
        if left == right { 0 } else { u64::from(both.count_ones()) }
    });
}
