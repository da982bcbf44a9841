//! Ray queries on the CPU, in parallel over rays.

use crate::error::{Error, Result};
use crate::memory;
use crate::parallel;
use crate::rows::Rows;
use crate::sah::hits::Hits;
use crate::sah::host_tree::HostTree;
use crate::sah::options::{RayOptions, RayTraversal};
use kauri_kernels::sah::ray::Ray;
use kauri_kernels::sah::trace::{AnyHit, ClosestHit};
use kauri_kernels::sah::traversal::{HitVisitor, traverse};
use kauri_kernels::sah::triangle::Hit;
use std::ops::Range;

/// Number of rays of a task.
const TASK_RAYS: usize = 64;

/// Entries of the short stack of a ray: on a CPU it is in memory anyway.
const STACK: usize = 32;

/// Traverses a tree by a ray.
fn trace(tree: &HostTree, ray: &Ray, visitor: &mut impl HitVisitor, options: &RayOptions) {
    // SAFETY: the tree is in host memory, and its reads are bounds-checked.
    unsafe {
        match options.traversal {
            RayTraversal::ShortStack => traverse::<_, _, STACK>(&tree, ray, visitor),
            #[cfg(feature = "research")]
            RayTraversal::Restart => traverse::<_, _, 0>(&tree, ray, visitor),
        }
    }
}

/// Returns a value for each ray.
fn map_rays<T: Send>(rays: &[Ray], map: impl Fn(&Ray) -> T + Sync) -> Result<Vec<T>> {
    parallel::collect(rays.len(), TASK_RAYS, "hits of rays", |i| map(&rays[i]))
}

/// Returns the first hit of each ray.
pub(in super::super) fn closest_hits(tree: &HostTree, rays: &[Ray], options: &RayOptions) -> Result<Hits> {
    let closest = map_rays(rays, |ray| {
        let mut closest = ClosestHit::NONE;
        trace(tree, ray, &mut closest, options);
        closest.hit
    })?;
    let mut hits = Hits::default();
    hits.extend(&closest)?;
    Ok(hits)
}

/// Returns whether each ray has a hit.
pub(in super::super) fn any_hits(tree: &HostTree, rays: &[Ray], options: &RayOptions) -> Result<Vec<bool>> {
    map_rays(rays, |ray| {
        let mut any = AnyHit::NONE;
        trace(tree, ray, &mut any, options);
        any.is_hit
    })
}

/// Returns all hits of each ray, in the order of `t`.
pub(in super::super) fn all_hits(tree: &HostTree, rays: &[Ray], options: &RayOptions) -> Result<Rows<Hit>> {
    let hits_of = |ray: &Ray| hits_of(tree, ray, options);
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
            let count_of =
                |range: Range<usize>| rays[range].iter().map(|ray| hits_of(ray).len() as u64).sum::<u64>();
            let count = parallel::reduce(rays.len(), TASK_RAYS, count_of, |a, b| a + b).unwrap_or(0);
            error.of_result(count, size_of::<Hit>() as u64)
        })?;
    }
    Ok(Rows::new(offsets, all))
}

/// Rays whose hits are gathered at a time.
const BATCH: usize = 1 << 14;

/// Returns the distinct hits of a ray, in the order of `t`.
fn hits_of(tree: &HostTree, ray: &Ray, options: &RayOptions) -> Vec<Hit> {
    struct AllHits(Vec<Hit>);
    impl HitVisitor for AllHits {
        unsafe fn visit(&mut self, hit: Hit) {
            self.0.push(hit);
        }
    }
    let mut all = AllHits(Vec::new());
    trace(tree, ray, &mut all, options);
    let mut hits = all.0;
    hits.sort_unstable_by(|a, b| a.t.total_cmp(&b.t).then(a.triangle.cmp(&b.triangle)));
    hits.dedup_by_key(|hit| hit.triangle);
    hits
}

#[cfg(test)]
mod tests {
    use crate::memory::LIMIT;
    use crate::mesh::Mesh;
    use crate::sah::{Ray, SahOptions, SahTree};
    use crate::{Device, Error};

    #[test]
    fn hits_beyond_host_memory_are_an_error_with_their_number() {
        let triangle = |z: f32| [[-1.0, -1.0, z], [3.0, -1.0, z], [-1.0, 3.0, z]];
        let vertices: Vec<_> = (0..100).flat_map(|z| triangle(z as f32)).collect();
        let mesh = Mesh::new(vertices, (0..100).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).collect()).unwrap();
        let mut tree = SahTree::build(&Device::cpu(), &mesh, &SahOptions::default()).unwrap();
        let rays = [Ray::new([0.0, 0.0, -1.0], [0.0, 0.0, 1.0]); 1000];
        LIMIT.set(100_000);
        let error = tree.all_hits(&rays).unwrap_err();
        LIMIT.set(100);
        let refit_error = tree.refit(&mesh).unwrap_err();
        LIMIT.set(u64::MAX);
        let Error::ResultTooLarge { count, bytes, memory: "host", .. } = error else { panic!("{error}") };
        assert_eq!((count, bytes), (100_000, 1_600_000));
        assert!(matches!(refit_error, Error::OutOfMemory { .. }), "{refit_error}");
        assert_eq!(tree.all_hits(&rays).unwrap().values().len(), 100_000);
    }
}
