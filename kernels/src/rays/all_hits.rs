//! All hits of rays: counted, written with duplicates, sorted by the host, and made distinct.

use super::hits::{HitVisitor, HitsMut};
use super::triangle::Hit;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::words::{join, split};
use cuda_std::float::{f32_from_key, f32_to_key};
use cuda_std::prelude::*;

/// Hits as sort keys and barycentric weights.
#[derive(Clone, Copy, KernelArgs)]
pub struct PackedHits<'a> {
    /// The order of a ray's hits: `t`, then the triangle.
    pub keys: SliceMut<'a, u64>,
    /// Barycentric weights of the second and the third corner.
    pub weights: SliceMut<'a, u64>,
}

/// Writes the hits one after the other.
pub struct WriteHits<'a> {
    /// All hits.
    pub hits: PackedHits<'a>,
    /// The index of the next one.
    pub slot: usize,
}

impl HitVisitor for WriteHits<'_> {
    #[inline(always)]
    unsafe fn visit(&mut self, hit: Hit) {
        self.hits.keys.store(self.slot, sort_key(hit));
        self.hits.weights.store(self.slot, join([hit.u.to_bits(), hit.v.to_bits(), 0, 0]));
        self.slot += 1;
    }
}

/// Returns the sort key of a hit: `t`, then the triangle.
#[inline(always)]
fn sort_key(hit: Hit) -> u64 {
    join([hit.triangle, f32_to_key(hit.t), 0, 0])
}

/// The hit of a key and its barycentric weights.
#[inline(always)]
fn hit_from(key: u64, weights: u64) -> Hit {
    let ([triangle, t, ..], [u, v, ..]) = (split(key), split(weights));
    Hit { triangle, t: f32_from_key(t), u: f32::from_bits(u), v: f32::from_bits(v) }
}

/// Visits each distinct hit of a ray, given its sorted keys. Duplicates have equal keys.
#[inline(always)]
unsafe fn for_each_distinct(
    keys: Slice<'_, u64>,
    begin: usize,
    end: usize,
    mut visit: impl FnMut(usize, u64),
) {
    let mut last = u64::MAX;
    for i in begin..end {
        let key = keys.load(i);
        if key != last {
            visit(i, key);
        }
        last = key;
    }
}

/// Counts the distinct hits of each ray, given the sorted keys; one thread per ray.
#[kernel(family = "rays", block = PER_ITEM_THREADS)]
pub unsafe fn rays_count_once(offsets: Slice<u64>, keys: Slice<u64>, counts: SliceMut<u64>) {
    let ray = thread::index_1d_u64() as usize;
    if ray + 1 < offsets.len() {
        let mut num = 0;
        for_each_distinct(keys, offsets.load(ray) as usize, offsets.load(ray + 1) as usize, |_, _| num += 1);
        counts.store(ray, num);
    }
}

/// Writes the distinct hits of each ray, given the sorted hits and the input and output offsets; one thread per ray.
#[kernel(family = "rays", block = PER_ITEM_THREADS)]
pub unsafe fn rays_move_hits(
    from: Slice<u64>,
    to: Slice<u64>,
    keys: Slice<u64>,
    weights: Slice<u64>,
    hits: HitsMut<'_>,
) {
    let ray = thread::index_1d_u64() as usize;
    if ray + 1 < from.len() {
        let mut slot = to.load(ray) as usize;
        for_each_distinct(keys, from.load(ray) as usize, from.load(ray + 1) as usize, |i, key| {
            hits.store(slot, hit_from(key, weights.load(i)));
            slot += 1;
        });
    }
}
