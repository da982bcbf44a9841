//! Slots for new points. New points are sorted by their bucket; the n-th one of a bucket takes its n-th free slot, so slots do not depend on
//! timing. Points without a slot overflow: they go to an index of their own.

use crate::policy::PER_ITEM_THREADS;
use crate::query::buckets::{BucketLayout, NO_POINT};
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Stands for the slot of a point that finds none.
pub const NO_SLOT: u32 = u32::MAX;

/// The points that find no slot, in any order.
#[derive(Clone, Copy, KernelArgs)]
pub struct Overflow<'a> {
    /// Their numbers.
    pub items: SliceMut<'a, u32>,
    /// How many they are: one number, 0 at first.
    pub num: SliceMut<'a, u32>,
}

/// Finds the slot of each new point in a tree with gaps, or [`NO_SLOT`]; one thread per point. `buckets` and `items` are the buckets and the
/// numbers of the points, sorted by bucket. `ids` are those of the slots.
#[kernel(family = "dynamic", block = PER_ITEM_THREADS)]
pub unsafe fn dynamic_find_slots(
    buckets: Slice<u32>,
    items: Slice<u32>,
    ids: Slice<u32>,
    bucket_len: u32,
    slots: SliceMut<u32>,
    overflow: Overflow<'_>,
) {
    let Some(i) = own_item(items.len()) else { return };
    let (bucket, item) = (buckets.load(i), items.load(i));
    let layout = BucketLayout::new(ids.len() as u32, bucket_len);
    let (begin, end) = (layout.begin(bucket, layout.levels), layout.begin(bucket + 1, layout.levels));
    // The number of new points before this one in the bucket. More than there are slots need not be counted.
    let mut before = 0;
    while before < (end - begin) as usize && before < i && buckets.load(i - before - 1) == bucket {
        before += 1;
    }
    let mut slot = begin;
    while slot < end {
        if ids.load(slot as usize) == NO_POINT {
            if before == 0 {
                break;
            }
            before -= 1;
        }
        slot += 1;
    }
    if slot < end {
        slots.store(item as usize, slot);
    } else {
        slots.store(item as usize, NO_SLOT);
        let at = overflow.num.atomic_add(0, 1, Ordering::Relaxed, Scope::Device);
        overflow.items.store(at as usize, item);
    }
}

/// New points and their slots in an index.
#[derive(Clone, Copy, KernelArgs)]
pub struct Given<'a> {
    /// The slot of each point, or [`NO_SLOT`].
    pub slots: Slice<'a, u32>,
    /// The numbers of the points; empty if point `i` has number `i`.
    pub items: Slice<'a, u32>,
    /// The ids of the slots.
    pub ids: SliceMut<'a, u32>,
}

impl Given<'_> {
    #[inline(always)]
    unsafe fn give(&self, i: usize, first_id: u32) {
        if i < self.slots.len() && self.slots.load(i) != NO_SLOT {
            let item = if self.items.is_empty() { i as u32 } else { self.items.load(i) };
            self.ids.store(self.slots.load(i) as usize, first_id + item);
        }
    }
}

/// Gives new points their ids in their slots, in two indexes at once: from then on queries find them. Point number `i` has id
/// `first_id + i`. One thread per point.
#[kernel(family = "dynamic", block = PER_ITEM_THREADS)]
pub unsafe fn dynamic_give_ids(main: Given<'_>, overflow: Given<'_>, first_id: u32) {
    let i = thread::index_1d_u64() as usize;
    main.give(i, first_id);
    overflow.give(i, first_id);
}
