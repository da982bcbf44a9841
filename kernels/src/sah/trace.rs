//! Rays through a tree in device memory, a thread a ray.

use super::aabb::Aabb;
use super::node::Node;
use super::ray::Ray;
use super::triangle::{Corners, Hit};
use super::walk::{Scene, Visitor, walk};
use crate::policy::{PER_ITEM_THREADS, SAH_RAY_THREADS};
use cuda_std::prelude::*;

/// Keeps the hit that comes first.
pub struct Closest {
    /// It, so far.
    pub hit: Hit,
}

impl Closest {
    /// None so far.
    #[inline(always)]
    #[expect(clippy::new_without_default, reason = "there is no use for one")]
    pub const fn new() -> Self {
        Self { hit: Hit::NONE }
    }
}

impl Visitor for Closest {
    #[inline(always)]
    fn limit(&self) -> f32 {
        self.hit.t
    }
    #[inline(always)]
    unsafe fn visit(&mut self, hit: Hit) {
        if hit.is_before(&self.hit) {
            self.hit = hit;
        }
    }
}

/// Looks for any hit.
pub struct Any {
    /// True if there was one.
    pub is_hit: bool,
}

impl Any {
    /// None so far.
    #[inline(always)]
    #[expect(clippy::new_without_default, reason = "there is no use for one")]
    pub const fn new() -> Self {
        Self { is_hit: false }
    }
}

impl Visitor for Any {
    #[inline(always)]
    fn limit(&self) -> f32 {
        if self.is_hit { f32::NEG_INFINITY } else { f32::INFINITY }
    }
    #[inline(always)]
    unsafe fn visit(&mut self, _: Hit) {
        self.is_hit = true;
    }
}

/// Counts the hits: as often as a triangle is in leaves on the way.
struct Count {
    num: u32,
}

impl Visitor for Count {
    #[inline(always)]
    fn limit(&self) -> f32 {
        f32::INFINITY
    }
    #[inline(always)]
    unsafe fn visit(&mut self, _: Hit) {
        self.num += 1;
    }
}

/// Writes the hits behind each other.
struct Write<'a> {
    hits: HitsMut<'a>,
    place: usize,
}

impl Visitor for Write<'_> {
    #[inline(always)]
    fn limit(&self) -> f32 {
        f32::INFINITY
    }
    #[inline(always)]
    unsafe fn visit(&mut self, hit: Hit) {
        self.hits.store(self.place, hit);
        self.place += 1;
    }
}

/// Hits, an array for each of their parts.
#[derive(Clone, Copy)]
struct HitsMut<'a> {
    triangles: SliceMut<'a, u32>,
    t: SliceMut<'a, f32>,
    u: SliceMut<'a, f32>,
    v: SliceMut<'a, f32>,
}

impl HitsMut<'_> {
    #[inline(always)]
    unsafe fn store(&self, i: usize, hit: Hit) {
        self.triangles.store(i, hit.triangle);
        self.t.store(i, hit.t);
        self.u.store(i, hit.u);
        self.v.store(i, hit.v);
    }
    #[inline(always)]
    unsafe fn load(&self, i: usize) -> Hit {
        Hit { triangle: self.triangles.load(i), t: self.t.load(i), u: self.u.load(i), v: self.v.load(i) }
    }
}

/// A tree in device memory.
#[derive(Clone, Copy)]
struct Tree<'a> {
    nodes: Slice<'a, u64>,
    listed: Slice<'a, u32>,
    corners: Slice<'a, Corners>,
    bounds: Slice<'a, Aabb>,
}

impl Scene for Tree<'_> {
    #[inline(always)]
    unsafe fn bounds(&self) -> Aabb {
        self.bounds.load(0)
    }
    #[inline(always)]
    unsafe fn node(&self, node: u32) -> Node {
        Node(self.nodes.load_readonly(node as usize))
    }
    #[inline(always)]
    unsafe fn listed(&self, place: u32) -> u32 {
        self.listed.load_readonly(place as usize)
    }
    #[inline(always)]
    unsafe fn corners(&self, triangle: u32) -> [[f32; 3]; 3] {
        self.corners.load(triangle as usize).places()
    }
}

/// The ray that a thread has: in the order given, or that of the rays.
#[inline(always)]
unsafe fn own(rays: Slice<'_, Ray>, order: Slice<'_, u32>) -> Option<usize> {
    let i = thread::index_1d_u64() as usize;
    if i >= rays.len() {
        None
    } else if order.is_empty() {
        Some(i)
    } else {
        Some(order.load(i) as usize)
    }
}

/// Writes the hit of each ray that comes first.
#[kernel(family = "sah", block = SAH_RAY_THREADS, hot)]
#[instance(0)]
#[instance(4)]
#[instance(8)]
pub unsafe fn sah_closest<const PLACES: usize>(
    nodes: Slice<u64>,
    listed: Slice<u32>,
    corners: Slice<Corners>,
    bounds: Slice<Aabb>,
    rays: Slice<Ray>,
    order: Slice<u32>,
    triangles: SliceMut<u32>,
    t: SliceMut<f32>,
    u: SliceMut<f32>,
    v: SliceMut<f32>,
) {
    let tree = Tree { nodes, listed, corners, bounds };
    if let Some(ray) = own(rays, order) {
        let mut closest = Closest::new();
        walk::<_, _, PLACES>(&tree, &rays.load(ray), &mut closest);
        HitsMut { triangles, t, u, v }.store(ray, closest.hit);
    }
}

/// Writes 1 for each ray that hits something, 0 for the others.
#[kernel(family = "sah", block = SAH_RAY_THREADS, hot)]
#[instance(0)]
#[instance(4)]
#[instance(8)]
pub unsafe fn sah_any<const PLACES: usize>(
    nodes: Slice<u64>,
    listed: Slice<u32>,
    corners: Slice<Corners>,
    bounds: Slice<Aabb>,
    rays: Slice<Ray>,
    order: Slice<u32>,
    hits: SliceMut<u8>,
) {
    let tree = Tree { nodes, listed, corners, bounds };
    if let Some(ray) = own(rays, order) {
        let mut any = Any::new();
        walk::<_, _, PLACES>(&tree, &rays.load(ray), &mut any);
        hits.store(ray, any.is_hit as u8);
    }
}

/// Writes how many hits each ray has, with those that come several times.
#[kernel(family = "sah", block = SAH_RAY_THREADS, hot)]
#[instance(0)]
#[instance(4)]
#[instance(8)]
pub unsafe fn sah_count_hits<const PLACES: usize>(
    nodes: Slice<u64>,
    listed: Slice<u32>,
    corners: Slice<Corners>,
    bounds: Slice<Aabb>,
    rays: Slice<Ray>,
    order: Slice<u32>,
    counts: SliceMut<u64>,
) {
    let tree = Tree { nodes, listed, corners, bounds };
    if let Some(ray) = own(rays, order) {
        let mut count = Count { num: 0 };
        walk::<_, _, PLACES>(&tree, &rays.load(ray), &mut count);
        counts.store(ray, count.num.into());
    }
}

/// Writes the hits of each ray from its offset on: in their order, each once; and how many these are.
#[kernel(family = "sah", block = SAH_RAY_THREADS, hot)]
#[instance(0)]
#[instance(4)]
#[instance(8)]
pub unsafe fn sah_write_hits<const PLACES: usize>(
    nodes: Slice<u64>,
    listed: Slice<u32>,
    corners: Slice<Corners>,
    bounds: Slice<Aabb>,
    rays: Slice<Ray>,
    order: Slice<u32>,
    offsets: Slice<u64>,
    triangles: SliceMut<u32>,
    t: SliceMut<f32>,
    u: SliceMut<f32>,
    v: SliceMut<f32>,
    counts: SliceMut<u64>,
) {
    let tree = Tree { nodes, listed, corners, bounds };
    if let Some(ray) = own(rays, order) {
        let (hits, begin) = (HitsMut { triangles, t, u, v }, offsets.load(ray) as usize);
        let mut write = Write { hits, place: begin };
        walk::<_, _, PLACES>(&tree, &rays.load(ray), &mut write);
        counts.store(ray, in_order(hits, begin, write.place) as u64);
    }
}

/// Puts hits in their order, of equal ones a single one; how many these are. They nearly are in order: those of a leaf come after those of the leaves
/// before it, but for triangles that reach into several.
#[inline(always)]
unsafe fn in_order(hits: HitsMut<'_>, begin: usize, end: usize) -> usize {
    let (mut len, mut i) = (0, begin);
    while i < end {
        let hit = hits.load(i);
        let mut place = begin + len;
        while place > begin && hit.is_before(&hits.load(place - 1)) {
            place -= 1;
        }
        let is_there = place > begin && hits.load(place - 1).triangle == hit.triangle;
        if !is_there {
            let mut free = begin + len;
            while free > place {
                hits.store(free, hits.load(free - 1));
                free -= 1;
            }
            hits.store(place, hit);
            len += 1;
        }
        i += 1;
    }
    len
}

/// Moves the hits of each ray to where they begin without those that came several times.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_move_hits(
    from: Slice<u64>,
    to: Slice<u64>,
    triangles: Slice<u32>,
    t: Slice<f32>,
    u: Slice<f32>,
    v: Slice<f32>,
    to_triangles: SliceMut<u32>,
    to_t: SliceMut<f32>,
    to_u: SliceMut<f32>,
    to_v: SliceMut<f32>,
) {
    let ray = thread::index_1d_u64() as usize;
    if ray + 1 < to.len() {
        let (from, begin, end) = (from.load(ray) as usize, to.load(ray) as usize, to.load(ray + 1) as usize);
        let mut i = begin;
        while i < end {
            let at = from + (i - begin);
            to_triangles.store(i, triangles.load(at));
            to_t.store(i, t.load(at));
            to_u.store(i, u.load(at));
            to_v.store(i, v.load(at));
            i += 1;
        }
    }
}
