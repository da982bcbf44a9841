//! Removals: a check of the ids that changes nothing, then a copy of the points that stay.

use super::insert::{PointWords, copy_point};
use crate::policy::PER_ITEM_THREADS;
use crate::query::sums::SummedBits;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Clears the bits of points to remove, and finds the least id that is not the id of a point or that occurs twice; one thread per id.
/// `has_point` and `stays` have a bit for each id given, at first the same bits. `least` is `u64::MAX` at first.
#[kernel(family = "rtree", block = PER_ITEM_THREADS)]
pub unsafe fn rtree_mark(
    ids: Slice<u32>,
    num_ids: u32,
    has_point: Slice<u32>,
    stays: SliceMut<u32>,
    least: SliceMut<u64>,
) {
    let Some(i) = own_item(ids.len()) else { return };
    let id = ids.load(i);
    let (word, bit) = (id as usize / 32, 1_u32 << (id % 32));
    let is_point = id < num_ids && has_point.load(word) & bit != 0;
    if !is_point || stays.atomic_and(word, !bit, Ordering::Relaxed, Scope::Device) & bit == 0 {
        least.atomic_min(0, id.into(), Ordering::Relaxed, Scope::Device);
    }
}

/// Writes a bit for each slot whose point stays; one warp per word of 32 slots.
#[kernel(family = "rtree", block = PER_ITEM_THREADS)]
pub unsafe fn rtree_slots_that_stay(ids: Slice<u32>, stays: Slice<u32>, slots: SliceMut<u32>) {
    let slot = thread::index_1d_u64() as usize;
    let mut slot_stays = false;
    if slot < ids.len() {
        let id = ids.load(slot);
        slot_stays = stays.load(id as usize / 32) >> (id % 32) & 1 != 0;
    }
    let word = warp::warp_vote_ballot(warp::FULL_MASK, slot_stays);
    if warp::lane_id() == 0 && slot < ids.len() {
        slots.store(slot / 32, word);
    }
}

/// Copies the points that stay; one thread per slot.
#[kernel(family = "rtree", block = PER_ITEM_THREADS)]
pub unsafe fn rtree_remove(
    tree: PointWords<'_>,
    slots: SummedBits<'_>,
    words_of_point: u32,
    coords: SliceMut<u32>,
    ids: SliceMut<u32>,
) {
    let Some(slot) = own_item(tree.ids.len()) else { return };
    let (stays, before) = slots.get(slot);
    if stays {
        ids.store(before as usize, tree.ids.load(slot));
        copy_point(tree.coords, slot, words_of_point, coords, before as usize);
    }
}
