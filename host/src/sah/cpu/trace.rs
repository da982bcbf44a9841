//! Ray queries on the CPU.

use crate::rays::RayOptions;
use crate::rays::cpu::{HostScene, VecStack};
use crate::rays::options::RayTraversal;
use crate::sah::host_tree::HostTree;
use kauri_kernels::rays::hits::HitVisitor;
use kauri_kernels::rays::ray::Ray;
use kauri_kernels::rays::tracing::traverse;
#[cfg(feature = "research")]
use kauri_kernels::sah::traversal::RestartTrail;
use kauri_kernels::sah::traversal::{FarSides, SahTraversal};

impl HostScene for HostTree {
    fn trace(&self, ray: &Ray, visitor: &mut impl HitVisitor, options: &RayOptions) {
        // SAFETY: the tree is in host memory, and its reads are bounds-checked.
        unsafe {
            match options.traversal {
                RayTraversal::Stack => {
                    traverse(&mut SahTraversal::new(self, FarSides(VecStack::new())), ray, visitor);
                }
                #[cfg(feature = "research")]
                RayTraversal::Restart => {
                    traverse(&mut SahTraversal::new(self, RestartTrail::NONE), ray, visitor);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::LIMIT;
    use crate::mesh::Mesh;
    use crate::rays::{Ray, RayIndex};
    use crate::{Device, Error, SahOptions, SahTree};

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
