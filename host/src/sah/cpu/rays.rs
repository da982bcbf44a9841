//! Rays through a tree, by all threads.

use super::super::hits::Hits;
use super::super::host::HostTree;
use super::super::options::RayOptions;
use crate::error::{Error, Result};
use crate::memory;
use crate::rows::Rows;
use kauri_kernels::sah::ray::Ray;
use kauri_kernels::sah::trace::{Any, Closest};
use kauri_kernels::sah::triangle::Hit;
use kauri_kernels::sah::walk::{Visitor, walk};
use rayon::prelude::*;

/// Sends a ray through a tree, with a high stack or none.
fn go(tree: &HostTree, ray: &Ray, visitor: &mut impl Visitor, options: &RayOptions) {
    // SAFETY: the scene is in host memory, and its reads are checked.
    unsafe {
        match options.stack {
            0 => walk::<_, _, 0>(&tree, ray, visitor),
            _ => walk::<_, _, 32>(&tree, ray, visitor),
        }
    }
}

/// A vector of one value a ray.
fn of_each<T: Copy + Send + Sync>(rays: &[Ray], none: T, of: impl Fn(&Ray) -> T + Sync) -> Result<Vec<T>> {
    let mut all = memory::vec_with_capacity(rays.len(), "hits of rays")?;
    all.resize(rays.len(), none);
    all.par_iter_mut().zip(rays).with_min_len(64).for_each(|(to, ray)| *to = of(ray));
    Ok(all)
}

/// The hit of each ray that comes first.
pub(in super::super) fn closest_hits(tree: &HostTree, rays: &[Ray], options: &RayOptions) -> Result<Hits> {
    let hits = of_each(rays, Hit::NONE, |ray| {
        let mut closest = Closest::new();
        go(tree, ray, &mut closest, options);
        closest.hit
    })?;
    Hits::from_hits(&hits)
}

/// Whether each ray hits something.
pub(in super::super) fn any_hits(tree: &HostTree, rays: &[Ray], options: &RayOptions) -> Result<Vec<bool>> {
    of_each(rays, false, |ray| {
        let mut any = Any::new();
        go(tree, ray, &mut any, options);
        any.is_hit
    })
}

/// All hits of each ray, in the order in which they come.
pub(in super::super) fn all_hits(tree: &HostTree, rays: &[Ray], options: &RayOptions) -> Result<Rows<Hit>> {
    let all_of = |ray: &Ray| all_of(tree, ray, options);
    let (mut offsets, mut all) =
        (memory::vec_with_capacity(rays.len() + 1, "hits of rays")?, Hits::default());
    offsets.push(0);
    for batch in rays.chunks(BATCH) {
        let of_batch: Vec<Vec<Hit>> = batch.par_iter().with_min_len(64).map(all_of).collect();
        let added = of_batch.iter().try_for_each(|hits| {
            all.extend(hits)?;
            offsets.push(all.len() as u64);
            Ok(())
        });
        added.map_err(|error: Error| {
            let count: u64 = rays.par_iter().map(|ray| all_of(ray).len() as u64).sum();
            error.of_result(count, count * size_of::<Hit>() as u64)
        })?;
    }
    Ok(Rows::new(offsets, all))
}

/// Rays whose hits are put together at a time.
const BATCH: usize = 1 << 14;

/// All hits of a ray.
fn all_of(tree: &HostTree, ray: &Ray, options: &RayOptions) -> Vec<Hit> {
    struct All(Vec<Hit>);
    impl Visitor for All {
        fn limit(&self) -> f32 {
            f32::INFINITY
        }
        unsafe fn visit(&mut self, hit: Hit) {
            self.0.push(hit);
        }
    }
    let mut all = All(Vec::new());
    go(tree, ray, &mut all, options);
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
    fn hits_that_host_memory_cannot_hold_are_refused_with_their_number() {
        let triangle = |z: f32| [[-1.0, -1.0, z], [3.0, -1.0, z], [-1.0, 3.0, z]];
        let vertices: Vec<_> = (0..100).flat_map(|z| triangle(z as f32)).collect();
        let mesh = Mesh::new(vertices, (0..100).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).collect()).unwrap();
        let mut tree = SahTree::build(&Device::cpu(), &mesh, &SahOptions::default()).unwrap();
        let rays = [Ray::new([0.0, 0.0, -1.0], [0.0, 0.0, 1.0]); 1000];
        LIMIT.set(100_000);
        let error = tree.all_hits(&rays).unwrap_err();
        LIMIT.set(100);
        let of_refit = tree.refit(&mesh).unwrap_err();
        LIMIT.set(u64::MAX);
        let Error::ResultTooLarge { count, bytes, memory: "host", .. } = error else { panic!("{error}") };
        assert_eq!((count, bytes), (100_000, 1_600_000));
        assert!(matches!(of_refit, Error::OutOfMemory { .. }), "{of_refit}");
        assert_eq!(tree.all_hits(&rays).unwrap().values().len(), 100_000);
    }
}
