//! Sort of points by super key on the CPU; see [the GPU version](crate::research::primitives::sort_points).

use kauri_kernels::thread::coord::Float;
use rayon::prelude::*;
use std::cmp::Ordering;

/// Sorts points by the super key that begins on axis `axis`. Returns their coordinates on this axis, and their ids.
///
/// # Panics
/// Panics if there is no such axis, or if there are 2^32 points or more.
pub fn sort_points<C: Float, const D: usize>(points: &[[C; D]], axis: usize) -> (Vec<C>, Vec<u32>) {
    assert!(axis < D, "axis {axis} does not exist: points have {D} coordinates");
    let end = u32::try_from(points.len()).expect("at most 2^32 - 1 points");
    let mut ids: Vec<u32> = (0..end).collect();
    let key = |id: u32, offset: usize| points[id as usize][(axis + offset) % D].key();
    ids.par_sort_unstable_by(|&a, &b| {
        let by_axes = (0..D).map(|offset| key(a, offset).cmp(&key(b, offset)));
        by_axes.fold(Ordering::Equal, Ordering::then).then(a.cmp(&b))
    });
    (ids.iter().map(|&id| points[id as usize][axis]).collect(), ids)
}
