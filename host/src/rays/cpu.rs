//! Ray queries on the CPU, in parallel over rays.

use super::hits::Hits;
use super::options::RayOptions;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel;
use crate::rows::Rows;
use kauri_kernels::rays::hits::{AnyHit, ClosestHit, HitVisitor};
use kauri_kernels::rays::ray::Ray;
use kauri_kernels::rays::stack::{Entry, Stack};
use kauri_kernels::rays::triangle::Hit;
use std::ops::Range;

/// Number of rays of a task.
const TASK_RAYS: usize = 64;

/// Entries of a stack before it grows: more than rays in usual meshes need.
const USUAL_STACK: usize = 64;

/// A stack that grows.
pub(crate) struct VecStack(Vec<Entry>);

impl VecStack {
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(USUAL_STACK))
    }
}

impl Stack for VecStack {
    unsafe fn push(&mut self, entry: Entry) {
        self.0.push(entry);
    }
    unsafe fn pop(&mut self) -> Option<Entry> {
        self.0.pop()
    }
    unsafe fn clear(&mut self) {
        self.0.clear();
    }
}

/// An index in host memory.
pub(crate) trait HostScene: Sync {
    /// Visits the triangles that a ray hits.
    fn trace(&self, ray: &Ray, visitor: &mut impl HitVisitor, options: &RayOptions);
}

/// Ray queries of any [`HostScene`].
pub trait CpuRays {
    /// Returns the first hit of each ray.
    fn closest_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Hits>;
    /// Returns whether each ray has a hit.
    fn any_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Vec<bool>>;
    /// Returns all hits of each ray, in the order of `t`.
    fn all_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Rows<Hit>>;
}

/// Returns a value for each ray.
fn map_rays<T: Send>(rays: &[Ray], map: impl Fn(&Ray) -> T + Sync) -> Result<Vec<T>> {
    parallel::collect(rays.len(), TASK_RAYS, "hits of rays", |i| map(&rays[i]))
}

impl<S: HostScene> CpuRays for S {
    fn closest_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Hits> {
        let closest = map_rays(rays, |ray| {
            let mut closest = ClosestHit::NONE;
            self.trace(ray, &mut closest, options);
            closest.0
        })?;
        let mut hits = Hits::default();
        hits.extend(&closest)?;
        Ok(hits)
    }

    fn any_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Vec<bool>> {
        map_rays(rays, |ray| {
            let mut any = AnyHit::NONE;
            self.trace(ray, &mut any, options);
            any.is_hit
        })
    }

    fn all_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Rows<Hit>> {
        let hits_of = |ray: &Ray| hits_of(self, ray, options);
        let (mut offsets, mut all) =
            (memory::vec_with_capacity(rays.len() + 1, "hits of rays")?, Hits::default());
        offsets.push(0);
        for batch in rays.chunks(BATCH) {
            let batch_hits = parallel::map(batch.len(), TASK_RAYS, |i| hits_of(&batch[i]));
            let added = batch_hits.iter().try_for_each(|hits| {
                all.extend(hits)?;
                offsets.push(all.len() as u64);
                Ok(())
            });
            added.map_err(|error: Error| {
                let count_of = |range: Range<usize>| {
                    rays[range].iter().map(|ray| hits_of(ray).len() as u64).sum::<u64>()
                };
                let count = parallel::reduce(rays.len(), TASK_RAYS, count_of, |a, b| a + b).unwrap_or(0);
                error.of_result(count, size_of::<Hit>() as u64)
            })?;
        }
        Ok(Rows::new(offsets, all))
    }
}

/// Rays whose hits are gathered at a time.
const BATCH: usize = 1 << 14;

/// Returns the distinct hits of a ray, in the order of `t`.
fn hits_of(scene: &impl HostScene, ray: &Ray, options: &RayOptions) -> Vec<Hit> {
    struct AllHits(Vec<Hit>);
    impl HitVisitor for AllHits {
        unsafe fn visit(&mut self, hit: Hit) {
            self.0.push(hit);
        }
    }
    let mut all = AllHits(Vec::new());
    scene.trace(ray, &mut all, options);
    let mut hits = all.0;
    hits.sort_unstable_by(|a, b| a.t.total_cmp(&b.t).then(a.triangle.cmp(&b.triangle)));
    hits.dedup_by_key(|hit| hit.triangle);
    hits
}
