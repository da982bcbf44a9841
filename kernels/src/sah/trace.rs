//! Ray queries on a tree in device memory, one thread per ray.

use super::extent::Extent;
use super::node::Node;
use super::traversal::{HitVisitor, SHORT_STACK, Scene, traverse};
use super::triangle::Hit;
use crate::policy::SAH_RAY_THREADS;
use cuda_std::prelude::*;

/// Finds the first hit.
pub struct ClosestHit {
    /// The first hit so far.
    pub hit: Hit,
}

impl ClosestHit {
    /// No hit so far.
    pub const NONE: Self = Self { hit: Hit::NONE };
}

impl HitVisitor for ClosestHit {
    #[inline(always)]
    fn t_limit(&self) -> f32 {
        self.hit.t
    }
    #[inline(always)]
    unsafe fn visit(&mut self, hit: Hit) {
        if hit.is_before(&self.hit) {
            self.hit = hit;
        }
    }
}

/// Finds out whether there is a hit.
pub struct AnyHit {
    /// True if there was a hit.
    pub is_hit: bool,
}

impl AnyHit {
    /// No hit so far.
    pub const NONE: Self = Self { is_hit: false };
}

impl HitVisitor for AnyHit {
    #[inline(always)]
    fn t_limit(&self) -> f32 {
        if self.is_hit { f32::NEG_INFINITY } else { f32::INFINITY }
    }
    #[inline(always)]
    unsafe fn visit(&mut self, _: Hit) {
        self.is_hit = true;
    }
}

/// Hits as a structure of arrays.
#[derive(Clone, Copy, KernelArgs)]
pub struct HitsMut<'a> {
    /// Triangle ids.
    pub triangles: SliceMut<'a, u32>,
    /// Parameters of the hit points on the rays.
    pub t: SliceMut<'a, f32>,
    /// Barycentric weights of the second corners.
    pub u: SliceMut<'a, f32>,
    /// Barycentric weights of the third corners.
    pub v: SliceMut<'a, f32>,
}

impl HitsMut<'_> {
    #[inline(always)]
    pub(super) unsafe fn store(&self, i: usize, hit: Hit) {
        self.triangles.store(i, hit.triangle);
        self.t.store(i, hit.t);
        self.u.store(i, hit.u);
        self.v.store(i, hit.v);
    }
}

/// A tree in device memory.
#[derive(Clone, Copy, KernelArgs)]
pub struct DeviceTree<'a> {
    /// The [nodes](Node).
    pub nodes: Slice<'a, u64>,
    /// The triangles of all leaves.
    pub references: Slice<'a, u32>,
    /// The corners of all triangles.
    pub corners: Slice<'a, crate::sah::triangle::Corners>,
    /// The extent of all triangles: one element.
    pub extent: Slice<'a, crate::sah::extent::Extent>,
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
    pub rays: Slice<'a, crate::sah::ray::Ray>,
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
        hits.store(ray, closest.hit);
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
