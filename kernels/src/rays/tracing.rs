//! Ray queries by warps that take rays until all are traced.

use super::all_hits::{PackedHits, WriteHits};
use super::hits::{AnyHit, ClosestHit, CountHits, HitVisitor, HitsMut};
use super::ray::Ray;
use crate::policy::RAY_IDLE;
use cuda_std::prelude::*;

/// The traversal of an index by a ray, step by step.
pub trait Traversal {
    /// The steps from a node that follow each other before a warp decides what most of its lanes do next.
    const STEPS: usize;
    /// Begins a ray.
    unsafe fn begin(&mut self, ray: &Ray);
    /// Takes the next subtree if the ray is in none. Returns false if the ray has ended, or none has begun.
    unsafe fn goes_on(&mut self) -> bool;
    /// True if the ray is in a node that is not a leaf.
    fn is_in_node(&self) -> bool;
    /// Goes on from this node to one of its children.
    unsafe fn descend(&mut self);
    /// Visits the triangles of a leaf that the ray, which is `ray`, hits.
    unsafe fn visit(&mut self, ray: &Ray, visitor: &mut impl HitVisitor);
}

/// Visits the triangles that a ray hits, near leaves first, up to the visitor's limit.
///
/// # Safety
/// The traversal is one of a valid index.
#[inline(always)]
pub unsafe fn traverse(traversal: &mut impl Traversal, ray: &Ray, visitor: &mut impl HitVisitor) {
    traversal.begin(ray);
    while traversal.goes_on() {
        if traversal.is_in_node() {
            traversal.descend();
        } else {
            traversal.visit(ray, visitor);
        }
    }
}

/// Rays that warps take.
#[derive(Clone, Copy, KernelArgs)]
pub struct RayQueue<'a> {
    /// The rays, less than 2^32 minus 32 for each warp of the launch.
    pub rays: Slice<'a, crate::rays::ray::Ray>,
    /// The order in which rays are traced; empty for the input order.
    pub order: Slice<'a, u32>,
    /// The number of rays that warps have taken: 0 at the start.
    pub taken: SliceMut<'a, u32>,
}

/// A use of the hits of rays.
pub trait Task {
    /// Takes the hits of a ray.
    type Visitor: HitVisitor;
    /// Begins a ray.
    unsafe fn begin(&self, ray: usize) -> Self::Visitor;
    /// Ends a ray.
    unsafe fn end(&self, ray: usize, visitor: &Self::Visitor);
}

/// No ray.
const NONE: u32 = u32::MAX;

impl RayQueue<'_> {
    /// Traces rays until all are taken.
    ///
    /// A lane traces a ray. All lanes of a warp do together what most of them need next: a step from a node, or the triangles of a leaf. When
    /// enough lanes have ended their rays, these take new ones (Aila, Laine 2009: Understanding the Efficiency of Ray Traversal on GPUs).
    #[inline(always)]
    pub unsafe fn trace<T: Traversal>(&self, mut traversal: T, task: &impl Task) {
        let num_rays = self.rays.len() as u32;
        let mut ray = NONE;
        let mut visitor = task.begin(0);
        let mut are_left = true;
        loop {
            let goes_on = traversal.goes_on();
            let done = warp::warp_vote_ballot(warp::FULL_MASK, !goes_on);
            let is_in_node = traversal.is_in_node();
            let num_in_nodes = warp::warp_vote_ballot(warp::FULL_MASK, is_in_node).count_ones();
            let num_done = done.count_ones();
            if num_done == 32 || num_done >= RAY_IDLE && are_left {
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
                    traversal.begin(&self.rays.load(ray as usize));
                    visitor = task.begin(ray as usize);
                }
            } else if 2 * num_in_nodes >= 32 - num_done {
                // Several, since a vote takes time.
                let mut step = 0;
                while step < T::STEPS {
                    if traversal.is_in_node() {
                        traversal.descend();
                    }
                    step += 1;
                }
            } else if goes_on && !is_in_node {
                traversal.visit(&self.rays.load(ray as usize), &mut visitor);
            }
        }
    }
}

/// Writes the first hit of each ray.
pub struct Closest<'a>(pub HitsMut<'a>);

impl Task for Closest<'_> {
    type Visitor = ClosestHit;
    #[inline(always)]
    unsafe fn begin(&self, _: usize) -> ClosestHit {
        ClosestHit::NONE
    }
    #[inline(always)]
    unsafe fn end(&self, ray: usize, closest: &ClosestHit) {
        self.0.store(ray, closest.0);
    }
}

/// Writes 1 for each ray that has a hit, 0 for the others.
pub struct Any<'a>(pub SliceMut<'a, u8>);

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

/// Counts the hits of each ray.
pub struct Count<'a>(pub SliceMut<'a, u64>);

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

/// Writes the hits of each ray from its offset on.
pub struct Write<'a> {
    /// The offsets of the rays.
    pub offsets: Slice<'a, u64>,
    /// The hits of all rays.
    pub hits: PackedHits<'a>,
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
