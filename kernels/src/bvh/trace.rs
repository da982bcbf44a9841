//! Ray queries on a hierarchy in device memory. Warps take rays until all are traced.

use super::scene::Scene;
use super::stack::{StackSmem, ThreadStack};
use super::traversal::Traversal;
use crate::policy::{BVH_IDLE, BVH_RAY_MIN_BLOCKS, BVH_RAY_THREADS as THREADS};
use crate::rays::all_hits::{PackedHits, WriteHits};
use crate::rays::hits::{AnyHit, ClosestHit, CountHits, HitVisitor, HitsMut};
use cuda_std::prelude::*;

/// Rays through a hierarchy.
#[derive(Clone, Copy, KernelArgs)]
pub struct BvhRays<'a> {
    /// The hierarchy.
    pub bvh: crate::bvh::scene::DeviceBvh<'a, crate::bvh::leaf::LeafTriangle>,
    /// The rays, less than 2^32 minus 32 for each warp of the launch.
    pub rays: Slice<'a, crate::rays::ray::Ray>,
    /// The order in which rays are traced; empty for the input order.
    pub order: Slice<'a, u32>,
    /// The number of rays that warps have taken: 0 at the start.
    pub taken: SliceMut<'a, u32>,
    /// Memory for stacks of more than [`BVH_STACK`](crate::policy::BVH_STACK) entries: further entries of all threads, then the next ones.
    pub deep: SliceMut<'a, u64>,
}

/// A use of the hits of rays.
trait Task {
    type Visitor: HitVisitor;
    /// Begins a ray.
    unsafe fn begin(&self, ray: usize) -> Self::Visitor;
    /// Ends it.
    unsafe fn end(&self, ray: usize, visitor: &Self::Visitor);
}

/// No ray.
const NONE: u32 = u32::MAX;

impl BvhRays<'_> {
    /// Traces rays until all are taken.
    ///
    /// A lane traces a ray. All lanes of a warp do together what most of them need next: a step from a node, or the triangles of a leaf. When
    /// enough lanes have ended their rays, these take new ones (Aila, Laine 2009: Understanding the Efficiency of Ray Traversal on GPUs).
    #[inline(always)]
    unsafe fn trace<T: Task>(&self, task: &T) {
        let mut stack = ThreadStack::new(shared_mem(), self.deep);
        let num_rays = self.rays.len() as u32;
        let mut ray = NONE;
        let mut traversal = Traversal::NONE;
        let mut visitor = task.begin(0);
        let mut are_left = true;
        loop {
            let goes_on = traversal.goes_on(&mut stack);
            let done = warp::warp_vote_ballot(warp::FULL_MASK, !goes_on);
            let num_in_nodes = warp::warp_vote_ballot(warp::FULL_MASK, traversal.is_in_node()).count_ones();
            let num_done = done.count_ones();
            if num_done == 32 || num_done >= BVH_IDLE && are_left {
                if !goes_on && ray != NONE {
                    task.end(ray as usize, &visitor);
                    ray = NONE;
                }
                if !are_left {
                    return;
                }
                let mut first = 0;
                if warp::lane_id() == 0 {
                    first = self.taken.atomic_add(0, num_done, Ordering::Relaxed, Scope::Device);
                }
                first = warp::shuffle_idx(warp::FULL_MASK, first, 0);
                are_left = first + num_done < num_rays;
                let i = first + (done & warp::lane_mask_lt()).count_ones();
                if !goes_on && i < num_rays {
                    ray = if self.order.is_empty() { i } else { self.order.load(i as usize) };
                    traversal = Traversal::new(&self.bvh, &self.rays.load(ray as usize), &mut stack);
                    visitor = task.begin(ray as usize);
                }
            } else if 2 * num_in_nodes >= 32 - num_done {
                if traversal.is_in_node() {
                    traversal.descend(&self.bvh, &mut stack);
                }
                // Again, since a vote takes time.
                if traversal.is_in_node() {
                    traversal.descend(&self.bvh, &mut stack);
                }
            } else if goes_on && !traversal.is_in_node() {
                traversal.visit(&self.bvh, &self.rays.load(ray as usize), &mut visitor);
            }
        }
    }
}

struct Closest<'a> {
    rays: BvhRays<'a>,
    hits: HitsMut<'a>,
}

impl Task for Closest<'_> {
    type Visitor = ClosestHit;
    #[inline(always)]
    unsafe fn begin(&self, _: usize) -> ClosestHit {
        ClosestHit::NONE
    }
    #[inline(always)]
    unsafe fn end(&self, ray: usize, closest: &ClosestHit) {
        let BvhRays { rays, bvh, .. } = &self.rays;
        self.hits.store(ray, closest.hit(&rays.load(ray), |place| bvh.item(place).corners()));
    }
}

/// Writes the first hit of each ray.
#[kernel(family = "bvh", block = THREADS, min_blocks = BVH_RAY_MIN_BLOCKS, shared = StackSmem, hot)]
pub unsafe fn bvh_closest(rays: BvhRays<'_>, hits: HitsMut<'_>) {
    rays.trace(&Closest { rays, hits });
}

struct Any<'a>(SliceMut<'a, u8>);

impl Task for Any<'_> {
    type Visitor = AnyHit;
    #[inline(always)]
    unsafe fn begin(&self, _: usize) -> AnyHit {
        AnyHit::NONE
    }
    #[inline(always)]
    unsafe fn end(&self, ray: usize, any: &AnyHit) {
        self.0.store(ray, any.is_hit.into());
    }
}

/// Writes 1 for each ray that has a hit, 0 for the others.
#[kernel(family = "bvh", block = THREADS, min_blocks = BVH_RAY_MIN_BLOCKS, shared = StackSmem, hot)]
pub unsafe fn bvh_any(rays: BvhRays<'_>, hits: SliceMut<u8>) {
    rays.trace(&Any(hits));
}

struct Count<'a>(SliceMut<'a, u64>);

impl Task for Count<'_> {
    type Visitor = CountHits;
    #[inline(always)]
    unsafe fn begin(&self, _: usize) -> CountHits {
        CountHits::NONE
    }
    #[inline(always)]
    unsafe fn end(&self, ray: usize, count: &CountHits) {
        self.0.store(ray, count.num.into());
    }
}

/// Counts the hits of each ray.
#[kernel(family = "bvh", block = THREADS, min_blocks = BVH_RAY_MIN_BLOCKS, shared = StackSmem, hot)]
pub unsafe fn bvh_count_hits(rays: BvhRays<'_>, counts: SliceMut<u64>) {
    rays.trace(&Count(counts));
}

struct Write<'a> {
    offsets: Slice<'a, u64>,
    hits: PackedHits<'a>,
}

impl<'a> Task for Write<'a> {
    type Visitor = WriteHits<'a>;
    #[inline(always)]
    unsafe fn begin(&self, ray: usize) -> WriteHits<'a> {
        WriteHits { hits: self.hits, slot: self.offsets.load(ray) as usize }
    }
    #[inline(always)]
    unsafe fn end(&self, _: usize, _: &WriteHits<'a>) {}
}

/// Writes the hits of each ray from its offset on.
#[kernel(family = "bvh", block = THREADS, min_blocks = BVH_RAY_MIN_BLOCKS, shared = StackSmem, hot)]
pub unsafe fn bvh_write_hits(rays: BvhRays<'_>, offsets: Slice<u64>, hits: PackedHits<'_>) {
    rays.trace(&Write { offsets, hits });
}
