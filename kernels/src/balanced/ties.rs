//! Points that a radix sort by one coordinate left side by side because they agree on it.

use super::paths::GONE;
use crate::policy::{MAX_TIES, PER_ITEM_THREADS};
use crate::thread::coord::Coord;
use cuda_std::prelude::*;

/// Writes the key on an axis of each of the points of an array; a thread a place.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_keys_of_ids<C: Coord>(
    coords: Slice<C>,
    dims: u32,
    axis: u32,
    ids: Slice<u32>,
    keys: SliceMut<<C as Coord>::Key>,
) {
    let place = thread::index_1d_u64() as usize;
    if place < ids.len() {
        let id = ids.load(place) as usize;
        keys.store(place, coords.load(id * dims as usize + axis as usize).key());
    }
}

/// What [`balanced_settle_ties`](balanced_settle_ties()) tells, in words that start as 0.
pub mod told {
    /// Becomes 1 if more than [`MAX_TIES`](crate::policy::MAX_TIES) points agree.
    pub const MANY: usize = 0;
    /// Becomes 1 if points are equal.
    pub const EQUAL: usize = 1;
    /// Number of words.
    pub const WORDS: usize = 2;
}

/// Puts the ids of points of equal keys in the order of the super key of the first axis, a thread the first place of them. More than
/// [`MAX_TIES`] are left as they are.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_settle_ties<C: Coord>(
    keys: Slice<<C as Coord>::Key>,
    ids: SliceMut<u32>,
    coords: Slice<C>,
    dims: u32,
    told: SliceMut<u32>,
) {
    let place = thread::index_1d_u64() as usize;
    if place + 1 < keys.len() {
        let key = keys.load(place);
        if keys.load(place + 1) != key || (place > 0 && keys.load(place - 1) == key) {
            return;
        }
        let mut end = place + 2;
        while end < keys.len() && end - place <= MAX_TIES && keys.load(end) == key {
            end += 1;
        }
        if end - place > MAX_TIES {
            told.atomic_store(told::MANY, 1, Ordering::Relaxed, Scope::Device);
            return;
        }
        let (mut next, mut has_equal) = (place + 1, false);
        while next < end {
            let (id, mut to) = (ids.load(next), next);
            while to > place {
                let before = ids.load(to - 1);
                let order = order_beyond_the_first_axis(coords, dims, before, id);
                // Equal points are in the order of their ids already.
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
            told.atomic_store(told::EQUAL, 1, Ordering::Relaxed, Scope::Device);
        }
    }
}

/// -1, 0 or 1 as a point comes before another, is equal to it or comes behind it, if they agree on the first axis.
#[inline(always)]
unsafe fn order_beyond_the_first_axis<C: Coord>(coords: Slice<'_, C>, dims: u32, a: u32, b: u32) -> i32 {
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

/// Tells points of the array sorted on the first axis that are equal to the one before, in their paths, and counts them. `paths` and
/// `num_equal` start as 0.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_find_equal<C: Coord>(
    keys: Slice<<C as Coord>::Key>,
    ids: Slice<u32>,
    coords: Slice<C>,
    dims: u32,
    paths: SliceMut<u8>,
    num_equal: SliceMut<u32>,
) {
    let place = thread::index_1d_u64() as usize;
    let mut is_equal = place > 0 && place < keys.len() && keys.load(place - 1) == keys.load(place);
    if is_equal {
        let id = ids.load(place);
        is_equal = order_beyond_the_first_axis(coords, dims, ids.load(place - 1), id) == 0;
        if is_equal {
            paths.store(id as usize, GONE);
        }
    }
    let equal = warp::warp_vote_ballot(warp::FULL_MASK, is_equal).count_ones();
    if warp::lane_id() == 0 && equal > 0 {
        num_equal.atomic_add(0, equal, Ordering::Relaxed, Scope::Device);
    }
}
