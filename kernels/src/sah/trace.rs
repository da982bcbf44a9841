//! Rays through a tree in device memory, a thread a ray.

use super::extent::Extent;
use super::node::Node;
use super::ray::Ray;
use super::triangle::{Corners, Hit};
use super::walk::{Scene, Visitor, walk};
use crate::policy::{PER_ITEM_THREADS, SAH_RAY_THREADS};
use crate::thread::words::{join, split};
use cuda_std::float::{f32_from_key, f32_to_key};
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
    keys: SliceMut<'a, u64>,
    weights: SliceMut<'a, u64>,
    place: usize,
}

impl Visitor for Write<'_> {
    #[inline(always)]
    fn limit(&self) -> f32 {
        f32::INFINITY
    }
    #[inline(always)]
    unsafe fn visit(&mut self, hit: Hit) {
        self.keys.store(self.place, key(hit));
        self.weights.store(self.place, join([hit.u.to_bits(), hit.v.to_bits(), 0, 0]));
        self.place += 1;
    }
}

/// What the hits of a ray are sorted by: where they are, then their triangles.
#[inline(always)]
fn key(hit: Hit) -> u64 {
    join([hit.triangle, f32_to_key(hit.t), 0, 0])
}

/// The hit that has a key, and these weights of corners.
#[inline(always)]
fn hit_of(key: u64, weights: u64) -> Hit {
    let ([triangle, t, ..], [u, v, ..]) = (split(key), split(weights));
    Hit { triangle, t: f32_from_key(t), u: f32::from_bits(u), v: f32::from_bits(v) }
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
}

/// A tree in device memory.
#[derive(Clone, Copy)]
struct Tree<'a> {
    nodes: Slice<'a, u64>,
    listed: Slice<'a, u32>,
    corners: Slice<'a, Corners>,
    extent: Slice<'a, Extent>,
}

impl Scene for Tree<'_> {
    #[inline(always)]
    unsafe fn extent(&self) -> Extent {
        self.extent.load(0)
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
    let tree = Tree { nodes, listed, corners, extent };
    if let Some(ray) = own(rays, order) {
        let mut closest = Closest::new();
        walk::<_, _, PLACES>(&tree, &rays.load(ray), &mut closest);
        HitsMut { triangles, t, u, v }.store(ray, closest.hit);
    }
}

/// Writes 1 for each ray that hits something, 0 for the others.
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
    let tree = Tree { nodes, listed, corners, extent };
    if let Some(ray) = own(rays, order) {
        let mut any = Any::new();
        walk::<_, _, PLACES>(&tree, &rays.load(ray), &mut any);
        hits.store(ray, any.is_hit as u8);
    }
}

/// Writes how many hits each ray has, with those that come several times.
#[kernel(family = "sah", block = SAH_RAY_THREADS, hot)]
#[instances(PLACES = [0, 4])]
pub unsafe fn sah_count_hits<const PLACES: usize>(
    nodes: Slice<u64>,
    listed: Slice<u32>,
    corners: Slice<Corners>,
    extent: Slice<Extent>,
    rays: Slice<Ray>,
    order: Slice<u32>,
    counts: SliceMut<u64>,
) {
    let tree = Tree { nodes, listed, corners, extent };
    if let Some(ray) = own(rays, order) {
        let mut count = Count { num: 0 };
        walk::<_, _, PLACES>(&tree, &rays.load(ray), &mut count);
        counts.store(ray, count.num.into());
    }
}

/// Writes the hits of each ray from its offset on, as they come: keys to sort them by, and what else there is of them.
#[kernel(family = "sah", block = SAH_RAY_THREADS, hot)]
#[instances(PLACES = [0, 4])]
pub unsafe fn sah_write_hits<const PLACES: usize>(
    nodes: Slice<u64>,
    listed: Slice<u32>,
    corners: Slice<Corners>,
    extent: Slice<Extent>,
    rays: Slice<Ray>,
    order: Slice<u32>,
    offsets: Slice<u64>,
    keys: SliceMut<u64>,
    weights: SliceMut<u64>,
) {
    let tree = Tree { nodes, listed, corners, extent };
    if let Some(ray) = own(rays, order) {
        let mut write = Write { keys, weights, place: offsets.load(ray) as usize };
        walk::<_, _, PLACES>(&tree, &rays.load(ray), &mut write);
    }
}

/// Goes through the sorted keys of a ray's hits, and visits each hit once: the same triangle is hit in the same place.
#[inline(always)]
unsafe fn each_once(keys: Slice<'_, u64>, begin: usize, end: usize, mut visit: impl FnMut(usize, u64)) {
    let (mut i, mut last) = (begin, u64::MAX);
    while i < end {
        let key = keys.load(i);
        if key != last {
            visit(i, key);
        }
        last = key;
        i += 1;
    }
}

/// Writes how many hits each ray has, of which these are the sorted keys; a thread a ray.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_count_once(offsets: Slice<u64>, keys: Slice<u64>, counts: SliceMut<u64>) {
    let ray = thread::index_1d_u64() as usize;
    if ray + 1 < offsets.len() {
        let mut num = 0;
        each_once(keys, offsets.load(ray) as usize, offsets.load(ray + 1) as usize, |_, _| num += 1);
        counts.store(ray, num);
    }
}

/// Writes the hits of each ray once, given the sorted ones, where they begin, and where they are to; a thread a ray.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_move_hits(
    from: Slice<u64>,
    to: Slice<u64>,
    keys: Slice<u64>,
    weights: Slice<u64>,
    triangles: SliceMut<u32>,
    t: SliceMut<f32>,
    u: SliceMut<f32>,
    v: SliceMut<f32>,
) {
    let ray = thread::index_1d_u64() as usize;
    if ray + 1 < from.len() {
        let (hits, mut place) = (HitsMut { triangles, t, u, v }, to.load(ray) as usize);
        each_once(keys, from.load(ray) as usize, from.load(ray + 1) as usize, |i, key| {
            hits.store(place, hit_of(key, weights.load(i)));
            place += 1;
        });
    }
}
