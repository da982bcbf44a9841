//! Ray queries on a hierarchy in device memory.

use super::traversal::BvhTraversal;
use crate::policy::{BVH_RAY_MIN_BLOCKS, RAY_THREADS as THREADS};
use crate::rays::all_hits::PackedHits;
use crate::rays::hits::HitsMut;
use crate::rays::stack::{StackSmem, ThreadStack};
use crate::rays::tracing::{Any, Closest, Count, Task, Write};
use cuda_std::prelude::*;

/// Rays through a hierarchy.
#[derive(Clone, Copy, KernelArgs)]
pub struct BvhRays<'a> {
    /// The hierarchy.
    pub bvh: crate::bvh::scene::DeviceBvh<'a, crate::bvh::leaf::LeafTriangle>,
    /// The rays.
    pub queue: crate::rays::tracing::RayQueue<'a>,
    /// Memory for stacks of more than [`RAY_STACK`](crate::policy::RAY_STACK) entries: further entries of all threads, then the next ones.
    pub deep: SliceMut<'a, u64>,
}

impl BvhRays<'_> {
    #[inline(always)]
    unsafe fn trace(&self, smem: *mut StackSmem, task: &impl Task) {
        self.queue.trace(BvhTraversal::new(self.bvh, ThreadStack::new(smem, self.deep)), task);
    }
}

/// Writes the first hit of each ray.
#[kernel(family = "bvh", block = THREADS, min_blocks = BVH_RAY_MIN_BLOCKS, shared = StackSmem, hot)]
pub unsafe fn bvh_closest(rays: BvhRays<'_>, hits: HitsMut<'_>) {
    rays.trace(shared_mem(), &Closest(hits));
}

/// Writes 1 for each ray that has a hit, 0 for the others.
#[kernel(family = "bvh", block = THREADS, min_blocks = BVH_RAY_MIN_BLOCKS, shared = StackSmem, hot)]
pub unsafe fn bvh_any(rays: BvhRays<'_>, hits: SliceMut<u8>) {
    rays.trace(shared_mem(), &Any(hits));
}

/// Counts the hits of each ray.
#[kernel(family = "bvh", block = THREADS, min_blocks = BVH_RAY_MIN_BLOCKS, shared = StackSmem, hot)]
pub unsafe fn bvh_count_hits(rays: BvhRays<'_>, counts: SliceMut<u64>) {
    rays.trace(shared_mem(), &Count(counts));
}

/// Writes the hits of each ray from its offset on.
#[kernel(family = "bvh", block = THREADS, min_blocks = BVH_RAY_MIN_BLOCKS, shared = StackSmem, hot)]
pub unsafe fn bvh_write_hits(rays: BvhRays<'_>, offsets: Slice<u64>, hits: PackedHits<'_>) {
    rays.trace(shared_mem(), &Write { offsets, hits });
}
