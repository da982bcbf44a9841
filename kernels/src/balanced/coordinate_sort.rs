//! Ties: points with one coordinate in common, which a radix sort by that coordinate leaves adjacent.

use super::paths::GONE;
use crate::policy::{MAX_TIES, PER_ITEM_THREADS};
use crate::thread::coord::{Coord, Float};
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Writes the key on an axis of each point of an array. One thread per position.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_keys_of_ids<C: Float>(
    coords: Slice<C>,
    dims: u32,
    axis: u32,
    ids: Slice<u32>,
    keys: SliceMut<<C as Coord>::Key>,
) {
    let Some(position) = own_item(ids.len()) else { return };
    let id = ids.load(position) as usize;
    keys.store(position, coords.load(id * dims as usize + axis as usize).key());
}

/// Words that [`balanced_settle_ties`](balanced_settle_ties()) sets. They are initialized to 0.
pub mod flags {
    /// Set to 1 if more than [`MAX_TIES`](crate::policy::MAX_TIES) points have equal keys.
    pub const MANY: usize = 0;
    /// Set to 1 if points are equal.
    pub const EQUAL: usize = 1;
    /// Number of words.
    pub const WORDS: usize = 2;
}

/// Sorts the ids of points with equal keys by the super key of the first axis. The thread of the first position of such a range sorts it by
/// insertion. Ranges of more than [`MAX_TIES`] points are not sorted. `found` has the words of [`flags`].
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_settle_ties<C: Float>(
    keys: Slice<<C as Coord>::Key>,
    ids: SliceMut<u32>,
    coords: Slice<C>,
    dims: u32,
    found: SliceMut<u32>,
) {
    let position = thread::index_1d_u64() as usize;
    if position + 1 < keys.len() {
        let key = keys.load(position);
        if keys.load(position + 1) != key || (position > 0 && keys.load(position - 1) == key) {
            return;
        }
        let mut end = position + 2;
        while end < keys.len() && end - position <= MAX_TIES && keys.load(end) == key {
            end += 1;
        }
        if end - position > MAX_TIES {
            found.atomic_store(flags::MANY, 1, Ordering::Relaxed, Scope::Device);
            return;
        }
        let (mut next, mut has_equal) = (position + 1, false);
        while next < end {
            let (id, mut to) = (ids.load(next), next);
            while to > position {
                let before = ids.load(to - 1);
                let order = compare_other_axes(coords, dims, before, id);
                // Equal points are already in the order of their ids.
                has_equal |= order == 0;
                if order <= 0 {
                    break;
                }
                ids.store(to, before);
                to -= 1;
            }
            ids.store(to, id);
            next += 1;
        }
        if has_equal {
            found.atomic_store(flags::EQUAL, 1, Ordering::Relaxed, Scope::Device);
        }
    }
}

/// Compares two points with equal first coordinates. Returns -1 if `a` comes first, 0 if they are equal, and 1 if `b` comes first.
#[inline(always)]
unsafe fn compare_other_axes<C: Float>(coords: Slice<'_, C>, dims: u32, a: u32, b: u32) -> i32 {
    let (a, b, dims) = (a as usize, b as usize, dims as usize);
    let mut axis = 1;
    while axis < dims {
        let (key_a, key_b) = (coords.load(a * dims + axis).key(), coords.load(b * dims + axis).key());
        if key_a != key_b {
            return if key_a < key_b { -1 } else { 1 };
        }
        axis += 1;
    }
    0
}

/// Marks each point that equals its predecessor in the array of the first axis: sets its path code to [`GONE`]. Counts these points.
/// `paths` and `num_equal` are initialized to 0.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_find_equal<C: Float>(
    keys: Slice<<C as Coord>::Key>,
    ids: Slice<u32>,
    coords: Slice<C>,
    dims: u32,
    paths: SliceMut<u8>,
    num_equal: SliceMut<u32>,
) {
    let position = thread::index_1d_u64() as usize;
    let mut is_equal =
        position > 0 && position < keys.len() && keys.load(position - 1) == keys.load(position);
    if is_equal {
        let id = ids.load(position);
        is_equal = compare_other_axes(coords, dims, ids.load(position - 1), id) == 0;
        if is_equal {
            paths.store(id as usize, GONE);
        }
    }
    let equal = warp::warp_vote_ballot(warp::FULL_MASK, is_equal).count_ones();
    if warp::lane_id() == 0 && equal > 0 {
        num_equal.atomic_add(0, equal, Ordering::Relaxed, Scope::Device);
    }
}
