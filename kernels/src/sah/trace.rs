//! Ray queries on a tree in device memory, one thread per ray.

use super::node::Node;
use super::traversal::{SHORT_STACK, Scene, traverse};
use crate::policy::SAH_RAY_THREADS;
use crate::rays::all_hits::{PackedHits, WriteHits};
use crate::rays::extent::Extent;
use crate::rays::hits::{AnyHit, ClosestHit, CountHits, HitVisitor, HitsMut};
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
    pub rays: Slice<'a, crate::rays::ray::Ray>,
    /// The order in which threads take the rays; empty for the input order.
    pub order: Slice<'a, u32>,
}

impl TreeRays<'_> {
    /// Traverses the tree by the ray of the thread, if it has one. Returns the index of the ray and its visitor, which
    /// `start` makes for that index.
    #[inline(always)]
    pub(super) unsafe fn trace<V: HitVisitor, const STACK: usize>(
        &self,
        start: impl FnOnce(usize) -> V,
    ) -> Option<(usize, V)> {
        let i = thread::index_1d_u64() as usize;
        if i >= self.rays.len() {
            return None;
        }
        let ray = if self.order.is_empty() { i } else { self.order.load(i) as usize };
        let mut visitor = start(ray);
        traverse::<_, _, STACK>(&self.tree, &self.rays.load(ray), &mut visitor);
        Some((ray, visitor))
    }
}

#[inline(always)]
unsafe fn closest<const STACK: usize>(rays: TreeRays<'_>, hits: HitsMut<'_>) {
    if let Some((ray, closest)) = rays.trace::<_, STACK>(|_| ClosestHit::NONE) {
        let hit = closest.hit(&rays.rays.load(ray), |triangle| rays.tree.corners(triangle));
        hits.store(ray, hit);
    }
}

#[inline(always)]
unsafe fn any<const STACK: usize>(rays: TreeRays<'_>, hits: SliceMut<'_, u8>) {
    if let Some((ray, any)) = rays.trace::<_, STACK>(|_| AnyHit::NONE) {
        hits.store(ray, any.is_hit.into());
    }
}

/// Writes the first hit of each ray.
#[kernel(family = "sah", block = SAH_RAY_THREADS, hot)]
pub unsafe fn sah_closest(rays: TreeRays<'_>, hits: HitsMut<'_>) {
    closest::<SHORT_STACK>(rays, hits);
}

/// Writes 1 for each ray that has a hit, 0 for the others.
#[kernel(family = "sah", block = SAH_RAY_THREADS, hot)]
pub unsafe fn sah_any(rays: TreeRays<'_>, hits: SliceMut<u8>) {
    any::<SHORT_STACK>(rays, hits);
}

/// Writes the first hit of each ray, by a traversal without a stack.
#[kernel(family = "research-sah", block = SAH_RAY_THREADS, hot)]
pub unsafe fn sah_closest_restart(rays: TreeRays<'_>, hits: HitsMut<'_>) {
    closest::<0>(rays, hits);
}

/// Writes 1 for each ray that has a hit, 0 for the others, by a traversal without a stack.
#[kernel(family = "research-sah", block = SAH_RAY_THREADS, hot)]
pub unsafe fn sah_any_restart(rays: TreeRays<'_>, hits: SliceMut<u8>) {
    any::<0>(rays, hits);
}

#[inline(always)]
unsafe fn count<const STACK: usize>(rays: TreeRays<'_>, counts: SliceMut<'_, u64>) {
    if let Some((ray, count)) = rays.trace::<_, STACK>(|_| CountHits::NONE) {
        counts.store(ray, count.num.into());
    }
}

#[inline(always)]
unsafe fn write<const STACK: usize>(rays: TreeRays<'_>, offsets: Slice<'_, u64>, hits: PackedHits<'_>) {
    rays.trace::<_, STACK>(|ray| WriteHits { hits, slot: offsets.load(ray) as usize });
}

/// Counts the hits of each ray, with duplicates from several leaves.
#[kernel(family = "sah", block = SAH_RAY_THREADS, hot)]
pub unsafe fn sah_count_hits(rays: TreeRays<'_>, counts: SliceMut<u64>) {
    count::<SHORT_STACK>(rays, counts);
}

/// Writes the hits of each ray from its offset on, with duplicates.
#[kernel(family = "sah", block = SAH_RAY_THREADS, hot)]
pub unsafe fn sah_write_hits(rays: TreeRays<'_>, offsets: Slice<u64>, hits: PackedHits<'_>) {
    write::<SHORT_STACK>(rays, offsets, hits);
}

/// Counts the hits of each ray, with duplicates, by a traversal without a stack.
#[kernel(family = "research-sah", block = SAH_RAY_THREADS, hot)]
pub unsafe fn sah_count_hits_restart(rays: TreeRays<'_>, counts: SliceMut<u64>) {
    count::<0>(rays, counts);
}

/// Writes the hits of each ray from its offset on, with duplicates, by a traversal without a stack.
#[kernel(family = "research-sah", block = SAH_RAY_THREADS, hot)]
pub unsafe fn sah_write_hits_restart(rays: TreeRays<'_>, offsets: Slice<u64>, hits: PackedHits<'_>) {
    write::<0>(rays, offsets, hits);
}
