//! Removal of points by their ids: a check that changes nothing, then the removal itself.

use crate::policy::PER_ITEM_THREADS;
use crate::query::buckets::NO_POINT;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Marks the points with these ids, and finds the least id that is not the id of a point or that occurs twice; one thread per id. `removed`
/// and `marked` have a bit for each of `num_ids` ids. `least` is `u64::MAX` at first.
#[kernel(family = "dynamic", block = PER_ITEM_THREADS)]
pub unsafe fn dynamic_mark(
    ids: Slice<u32>,
    num_ids: u32,
    removed: Slice<u32>,
    marked: SliceMut<u32>,
    least: SliceMut<u64>,
) {
    let Some(i) = own_item(ids.len()) else { return };
    let id = ids.load(i);
    let (word, bit) = (id as usize / 32, 1 << (id % 32));
    let is_point = id < num_ids && removed.load(word) & bit == 0;
    if !is_point || marked.atomic_or(word, bit, Ordering::Relaxed, Scope::Device) & bit != 0 {
        least.atomic_min(0, id.into(), Ordering::Relaxed, Scope::Device);
    }
}

/// Removes the marked points: adds their bits to those of removed points, and frees their slots in two indexes. One thread per word of bits
/// and per slot.
#[kernel(family = "dynamic", block = PER_ITEM_THREADS)]
pub unsafe fn dynamic_remove(
    marked: Slice<u32>,
    removed: SliceMut<u32>,
    ids: SliceMut<u32>,
    overflow_ids: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    if i < marked.len() {
        removed.store(i, removed.load(i) | marked.load(i));
    }
    free(i, marked, ids);
    free(i, marked, overflow_ids);
}

/// Frees a slot if its point is marked.
#[inline(always)]
unsafe fn free(slot: usize, marked: Slice<'_, u32>, ids: SliceMut<'_, u32>) {
    if slot < ids.len() {
        let id = ids.load(slot);
        if id != NO_POINT && marked.load(id as usize / 32) >> (id % 32) & 1 != 0 {
            ids.store(slot, NO_POINT);
        }
    }
}
