//! Inserts: new points in the order of their codes are merged into the points of a tree.

use crate::policy::PER_ITEM_THREADS;
use crate::query::buckets::BucketLayout;
use crate::query::grid::GridPoints;
use crate::query::sums::SummedBits;
use crate::thread::coord::Coord;
use crate::thread::items::own_item;
use crate::thread::search::partition_point;
use cuda_std::prelude::*;

/// Sets the bit of the new slot of each new point; one thread per new point. The new points are in the order of their codes, and follow
/// the points of the tree with the same code.
#[kernel(family = "rtree", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32], D = [2, 3, 8])]
pub unsafe fn rtree_new_slots<C: Coord, const D: usize>(
    tree: GridPoints<'_, C>,
    first_codes: Slice<u64>,
    num_slots: u32,
    codes: Slice<u64>,
    is_new: SliceMut<u32>,
) {
    let Some(i) = own_item(codes.len()) else { return };
    let (code, layout) = (codes.load(i), BucketLayout::left_balanced(num_slots));
    let end = partition_point(0, first_codes.len(), |bucket| first_codes.load(bucket) <= code) as u32;
    let before = if end == 0 {
        0
    } else {
        let [begin, end] = [end - 1, end].map(|bucket| layout.begin(bucket, layout.levels) as usize);
        let grid = tree.grid::<D>();
        partition_point(begin, end, |slot| tree.code(&grid, slot) <= code)
    };
    let slot = before + i;
    is_new.atomic_or(slot / 32, 1 << (slot % 32), Ordering::Relaxed, Scope::Device);
}

/// Points with their ids, as words of 4 bytes.
#[derive(Clone, Copy, KernelArgs)]
pub struct PointWords<'a> {
    /// The coordinates, point after point.
    pub coords: Slice<'a, u32>,
    /// The ids, or for new points the numbers.
    pub ids: Slice<'a, u32>,
}

/// Merges the points of a tree and new ones; one thread per slot of the result. The new points take the slots with a set bit, in the order of
/// `new.ids`; the id of a new point is its number after `first_id`.
#[kernel(family = "rtree", block = PER_ITEM_THREADS)]
pub unsafe fn rtree_insert(
    tree: PointWords<'_>,
    new: PointWords<'_>,
    first_id: u32,
    is_new: SummedBits<'_>,
    words_of_point: u32,
    coords: SliceMut<u32>,
    ids: SliceMut<u32>,
) {
    let Some(slot) = own_item(ids.len()) else { return };
    let (slot_is_new, new_before) = is_new.get(slot);
    let (from, id, place) = if slot_is_new {
        let number = new.ids.load(new_before as usize);
        (new.coords, first_id + number, number as usize)
    } else {
        let place = slot - new_before as usize;
        (tree.coords, tree.ids.load(place), place)
    };
    ids.store(slot, id);
    copy_point(from, place, words_of_point, coords, slot);
}

/// Copies a point of `words` words from one place to another.
#[inline(always)]
pub(super) unsafe fn copy_point(
    from: Slice<'_, u32>,
    place: usize,
    words: u32,
    to: SliceMut<'_, u32>,
    slot: usize,
) {
    let words = words as usize;
    for word in 0..words {
        to.store(slot * words + word, from.load(place * words + word));
    }
}

/// Writes the ids of new points: their numbers after `first_id`; one thread per point.
#[kernel(family = "rtree", block = PER_ITEM_THREADS)]
pub unsafe fn rtree_new_ids(numbers: Slice<u32>, first_id: u32, ids: SliceMut<u32>) {
    if let Some(i) = own_item(ids.len()) {
        ids.store(i, first_id + numbers.load(i));
    }
}
