//! The items whose bounding boxes intersect boxes.

use super::leaf::*;
use super::search::{Query, Searches};
use crate::policy::{BVH_RAY_MIN_BLOCKS, RAY_THREADS as THREADS};
use crate::rays::aabb::Aabb;
use crate::rays::stack::StackSmem;
use cuda_std::prelude::*;

/// Takes the ids of items.
pub trait Take {
    /// Takes an id.
    unsafe fn take(&mut self, id: u32);
}

/// A query for the items whose bounding boxes have a point in common with a box.
pub struct Overlap<T> {
    /// The box.
    pub bounds: Aabb,
    /// Takes the items.
    pub take: T,
}

impl<L: Leaf, T: Take> Query<L> for Overlap<T> {
    #[inline(always)]
    fn near(&self, bounds: Aabb) -> f32 {
        if self.bounds.intersects(bounds) { 0.0 } else { f32::INFINITY }
    }

    #[inline(always)]
    fn limit(&self) -> f32 {
        0.0
    }

    #[inline(always)]
    unsafe fn item(&mut self, item: L) {
        if self.bounds.intersects(item.bounds()) {
            self.take.take(item.id());
        }
    }
}

/// Counts items.
pub struct Count(pub u64);

impl Take for Count {
    #[inline(always)]
    unsafe fn take(&mut self, _: u32) {
        self.0 += 1;
    }
}

/// Counts the items of each box.
#[kernel(family = "bvh", block = THREADS, min_blocks = BVH_RAY_MIN_BLOCKS, shared = StackSmem)]
#[instances(L = [LeafTriangle, LeafBox])]
pub unsafe fn bvh_count_overlaps<L: Leaf>(
    searches: Searches<'_, L>,
    boxes: Slice<Aabb>,
    counts: SliceMut<u64>,
) {
    let begin = |i| Overlap { bounds: boxes.load(i), take: Count(0) };
    searches.each(shared_mem(), boxes.len(), begin, |i, overlap| counts.store(i, overlap.take.0));
}

/// Writes ids.
struct Write<'a> {
    ids: SliceMut<'a, u32>,
    slot: usize,
}

impl Take for Write<'_> {
    #[inline(always)]
    unsafe fn take(&mut self, id: u32) {
        self.ids.store(self.slot, id);
        self.slot += 1;
    }
}

/// Writes the ids of the items of each box from its offset on.
#[kernel(family = "bvh", block = THREADS, min_blocks = BVH_RAY_MIN_BLOCKS, shared = StackSmem)]
#[instances(L = [LeafTriangle, LeafBox])]
pub unsafe fn bvh_write_overlaps<L: Leaf>(
    searches: Searches<'_, L>,
    boxes: Slice<Aabb>,
    offsets: Slice<u64>,
    ids: SliceMut<u32>,
) {
    let begin = |i| Overlap { bounds: boxes.load(i), take: Write { ids, slot: offsets.load(i) as usize } };
    searches.each(shared_mem(), boxes.len(), begin, |_, _| ());
}
