//! Ray queries on a tree in device memory.

use super::node::Node;
use super::traversal::{FarSides, RestartTrail, SahTraversal, Scene};
use crate::policy::{RAY_THREADS, SAH_RAY_MIN_BLOCKS};
use crate::rays::all_hits::PackedHits;
use crate::rays::extent::Extent;
use crate::rays::hits::HitsMut;
use crate::rays::stack::{StackSmem, ThreadStack};
use crate::rays::tracing::{Any, Closest, Count, Task, Write};
use cuda_std::prelude::*;

/// A tree in device memory.
#[derive(Clone, Copy, KernelArgs)]
pub struct DeviceTree<'a> {
    /// The [nodes](Node).
    pub nodes: Slice<'a, u64>,
    /// The triangles of all leaves.
    pub references: Slice<'a, u32>,
    /// The corners of all triangles.
    pub corners: Slice<'a, crate::rays::triangle::Corners>,
    /// The extent of all triangles: one element.
    pub extent: Slice<'a, crate::rays::extent::Extent>,
}

impl Scene for DeviceTree<'_> {
    #[inline(always)]
    unsafe fn extent(&self) -> Extent {
        self.extent.load(0)
    }
    #[inline(always)]
    unsafe fn node(&self, node: u32) -> Node {
        Node(self.nodes.load_readonly(node as usize))
    }
    #[inline(always)]
    unsafe fn reference(&self, index: u32) -> u32 {
        self.references.load_readonly(index as usize)
    }
    #[inline(always)]
    unsafe fn corners(&self, triangle: u32) -> [[f32; 3]; 3] {
        self.corners.load(triangle as usize).positions()
    }
}

/// Rays through a tree.
#[derive(Clone, Copy, KernelArgs)]
pub struct TreeRays<'a> {
    /// The tree.
    pub tree: crate::sah::trace::DeviceTree<'a>,
    /// The rays.
    pub queue: crate::rays::tracing::RayQueue<'a>,
    /// Memory for stacks of more than [`RAY_STACK`](crate::policy::RAY_STACK) entries: further entries of all threads, then the next ones.
    pub deep: SliceMut<'a, u64>,
}

impl TreeRays<'_> {
    #[inline(always)]
    unsafe fn trace(&self, smem: *mut StackSmem, task: &impl Task) {
        let far_sides = FarSides(ThreadStack::new(smem, self.deep));
        self.queue.trace(SahTraversal::new(self.tree, far_sides), task);
    }

    #[inline(always)]
    unsafe fn trace_by_restarts(&self, task: &impl Task) {
        self.queue.trace(SahTraversal::new(self.tree, RestartTrail::NONE), task);
    }
}

/// Writes the first hit of each ray.
#[kernel(family = "sah", block = RAY_THREADS, min_blocks = SAH_RAY_MIN_BLOCKS, shared = StackSmem, hot)]
pub unsafe fn sah_closest(rays: TreeRays<'_>, hits: HitsMut<'_>) {
    rays.trace(shared_mem(), &Closest(hits));
}

/// Writes 1 for each ray that has a hit, 0 for the others.
#[kernel(family = "sah", block = RAY_THREADS, min_blocks = SAH_RAY_MIN_BLOCKS, shared = StackSmem, hot)]
pub unsafe fn sah_any(rays: TreeRays<'_>, hits: SliceMut<u8>) {
    rays.trace(shared_mem(), &Any(hits));
}

/// Counts the hits of each ray, with duplicates from several leaves.
#[kernel(family = "sah", block = RAY_THREADS, min_blocks = SAH_RAY_MIN_BLOCKS, shared = StackSmem, hot)]
pub unsafe fn sah_count_hits(rays: TreeRays<'_>, counts: SliceMut<u64>) {
    rays.trace(shared_mem(), &Count(counts));
}

/// Writes the hits of each ray from its offset on, with duplicates.
#[kernel(family = "sah", block = RAY_THREADS, min_blocks = SAH_RAY_MIN_BLOCKS, shared = StackSmem, hot)]
pub unsafe fn sah_write_hits(rays: TreeRays<'_>, offsets: Slice<u64>, hits: PackedHits<'_>) {
    rays.trace(shared_mem(), &Write { offsets, hits });
}

/// Writes the first hit of each ray, by a traversal without a stack.
#[kernel(family = "research-sah", block = RAY_THREADS, min_blocks = SAH_RAY_MIN_BLOCKS, hot)]
pub unsafe fn sah_closest_restart(rays: TreeRays<'_>, hits: HitsMut<'_>) {
    rays.trace_by_restarts(&Closest(hits));
}

/// Writes 1 for each ray that has a hit, 0 for the others, by a traversal without a stack.
#[kernel(family = "research-sah", block = RAY_THREADS, min_blocks = SAH_RAY_MIN_BLOCKS, hot)]
pub unsafe fn sah_any_restart(rays: TreeRays<'_>, hits: SliceMut<u8>) {
    rays.trace_by_restarts(&Any(hits));
}

/// Counts the hits of each ray, with duplicates, by a traversal without a stack.
#[kernel(family = "research-sah", block = RAY_THREADS, min_blocks = SAH_RAY_MIN_BLOCKS, hot)]
pub unsafe fn sah_count_hits_restart(rays: TreeRays<'_>, counts: SliceMut<u64>) {
    rays.trace_by_restarts(&Count(counts));
}

/// Writes the hits of each ray from its offset on, with duplicates, by a traversal without a stack.
#[kernel(family = "research-sah", block = RAY_THREADS, min_blocks = SAH_RAY_MIN_BLOCKS, hot)]
pub unsafe fn sah_write_hits_restart(rays: TreeRays<'_>, offsets: Slice<u64>, hits: PackedHits<'_>) {
    rays.trace_by_restarts(&Write { offsets, hits });
}
