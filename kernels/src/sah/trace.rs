//! Ray queries on a tree in device memory, one thread per ray.

use super::extent::Extent;
use super::node::Node;
use super::ray::Ray;
use super::traversal::{HitVisitor, Scene, traverse};
use super::triangle::{Corners, Hit};
use crate::policy::SAH_RAY_THREADS;
use cuda_std::prelude::*;

/// Finds the first hit.
pub struct ClosestHit {
    /// The first hit so far.
    pub hit: Hit,
}

impl ClosestHit {
    /// Starts without a hit.
    #[inline(always)]
    #[expect(clippy::new_without_default, reason = "there is no use for one")]
    pub const fn new() -> Self {
        Self { hit: Hit::NONE }
    }
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
    /// Starts without a hit.
    #[inline(always)]
    #[expect(clippy::new_without_default, reason = "there is no use for one")]
    pub const fn new() -> Self {
        Self { is_hit: false }
    }
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
#[derive(Clone, Copy)]
pub(super) struct HitsMut<'a> {
    pub(super) triangles: SliceMut<'a, u32>,
    pub(super) t: SliceMut<'a, f32>,
    pub(super) u: SliceMut<'a, f32>,
    pub(super) v: SliceMut<'a, f32>,
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
#[derive(Clone, Copy)]
pub(super) struct DeviceTree<'a> {
    pub(super) nodes: Slice<'a, u64>,
    pub(super) references: Slice<'a, u32>,
    pub(super) corners: Slice<'a, Corners>,
    pub(super) extent: Slice<'a, Extent>,
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

/// Returns the ray of the thread: in sorted order, or in input order if `order` is empty.
#[inline(always)]
pub(super) unsafe fn ray_of_thread(rays: Slice<'_, Ray>, order: Slice<'_, u32>) -> Option<usize> {
    let i = thread::index_1d_u64() as usize;
    if i >= rays.len() {
        None
    } else if order.is_empty() {
        Some(i)
    } else {
        Some(order.load(i) as usize)
    }
}

/// Writes the first hit of each ray.
#[kernel(family = "sah", block = SAH_RAY_THREADS, hot)]
#[instances(PLACES = [0, 4])]
pub unsafe fn sah_closest<const PLACES: usize>(
    nodes: Slice<u64>,
    listed: Slice<u32>,
    corners: Slice<Corners>,
    extent: Slice<Extent>,
    rays: Slice<Ray>,
    order: Slice<u32>,
    triangles: SliceMut<u32>,
    t: SliceMut<f32>,
    u: SliceMut<f32>,
    v: SliceMut<f32>,
) {
    let tree = DeviceTree { nodes, references: listed, corners, extent };
    if let Some(ray) = ray_of_thread(rays, order) {
        let mut closest = ClosestHit::new();
        traverse::<_, _, PLACES>(&tree, &rays.load(ray), &mut closest);
        HitsMut { triangles, t, u, v }.store(ray, closest.hit);
    }
}

/// Writes 1 for each ray that has a hit, 0 for the others.
#[kernel(family = "sah", block = SAH_RAY_THREADS, hot)]
#[instances(PLACES = [0, 4])]
pub unsafe fn sah_any<const PLACES: usize>(
    nodes: Slice<u64>,
    listed: Slice<u32>,
    corners: Slice<Corners>,
    extent: Slice<Extent>,
    rays: Slice<Ray>,
    order: Slice<u32>,
    hits: SliceMut<u8>,
) {
    let tree = DeviceTree { nodes, references: listed, corners, extent };
    if let Some(ray) = ray_of_thread(rays, order) {
        let mut any = AnyHit::new();
        traverse::<_, _, PLACES>(&tree, &rays.load(ray), &mut any);
        hits.store(ray, any.is_hit as u8);
    }
}
