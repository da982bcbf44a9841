//! Traversal of a hierarchy by a ray, the nearer child first.

use super::leaf::LeafTriangle;
use super::scene::Scene;
use super::slabs::SlabRay;
use super::stack::{nearest_child, next};
use super::subtree::Subtree;
use crate::rays::hits::HitVisitor;
use crate::rays::ray::Ray;
use crate::rays::stack::Stack;
use crate::rays::tracing::Traversal;
use crate::rays::triangle::ShearedRay;

/// The traversal of a hierarchy by a ray. The stack has room for as many entries as [`stack_len`](super::stack::stack_len) says.
pub struct BvhTraversal<C, K> {
    scene: C,
    stack: K,
    slab_ray: SlabRay,
    sheared_ray: ShearedRay,
    /// The subtree that the ray is in; none if it takes the next one from the stack.
    at: Subtree,
}

impl<C: Scene<Leaf = LeafTriangle>, K: Stack> BvhTraversal<C, K> {
    /// Has no ray.
    #[inline(always)]
    pub fn new(scene: C, stack: K) -> Self {
        Self { scene, stack, slab_ray: SlabRay::NONE, sheared_ray: ShearedRay::NONE, at: Subtree::ENDED }
    }
}

impl<C: Scene<Leaf = LeafTriangle>, K: Stack> Traversal for BvhTraversal<C, K> {
    // With 3, rays of a camera and random ones through the dragon take 7 % longer.
    const STEPS: usize = 2;

    /// Begins at the root, with an empty stack.
    #[inline(always)]
    unsafe fn begin(&mut self, ray: &Ray) {
        self.stack.clear();
        self.at = Subtree::ENDED;
        if ray.is_valid() {
            self.slab_ray = SlabRay::new(ray, self.scene.extent());
            self.sheared_ray = ShearedRay::new(ray);
            if !self.slab_ray.is_empty() {
                self.at = self.scene.root();
            }
        }
    }

    #[inline(always)]
    unsafe fn goes_on(&mut self) -> bool {
        if self.at == Subtree::NONE {
            self.at = next(&mut self.stack, self.slab_ray.end());
        }
        self.at != Subtree::ENDED
    }

    #[inline(always)]
    fn is_in_node(&self) -> bool {
        self.at.is_node()
    }

    /// Goes on to the nearest of the children that the ray enters. Puts the others on the stack, the nearest last.
    #[inline(always)]
    unsafe fn descend(&mut self) {
        let node = self.at.index();
        let near = self.slab_ray.enters(|axis, side| self.scene.plane(node, axis, side));
        self.at = nearest_child(self.scene.children(node), near, &mut self.stack);
    }

    #[inline(always)]
    unsafe fn visit(&mut self, ray: &Ray, visitor: &mut impl HitVisitor) {
        let (first, num) = (self.at.index(), self.at.num_few().unwrap_or(0));
        self.at = Subtree::NONE;
        // Loads coordinates in the order of the ray's axes, so that none has to be permuted.
        let axes = self.sheared_ray.axes();
        let (mut may_hit, mut i) = (0u32, 0);
        while i < num {
            let rows = axes.map(|axis| LeafTriangle::unpacked(self.scene.part(first + i, axis)).0);
            may_hit |= u32::from(self.sheared_ray.may_hit(rows)) << i;
            i += 1;
        }
        while may_hit != 0 {
            let place = first + may_hit.trailing_zeros();
            may_hit &= may_hit - 1;
            let [(x, id), (y, _), (z, _)] =
                axes.map(|axis| LeafTriangle::unpacked(self.scene.part(place, axis)));
            if let Some(hit) = self.sheared_ray.hit(ray, id, [x, y, z]) {
                visitor.visit(hit);
                self.slab_ray.limit(ray, visitor.t_limit());
            }
        }
        if self.slab_ray.is_empty() {
            self.at = Subtree::ENDED;
        }
    }
}
