//! Traversal of a hierarchy by a ray, the nearer child first.

use super::leaf::{Leaf, LeafTriangle};
use super::scene::Scene;
use super::slabs::SlabRay;
use super::stack::{Stack, begin, nearest_child, next};
use super::subtree::Subtree;
use crate::rays::hits::HitVisitor;
use crate::rays::ray::Ray;
use crate::rays::triangle::ShearedRay;

/// The traversal of a hierarchy by a ray, step by step.
#[derive(Clone, Copy)]
pub struct Traversal {
    slab_ray: SlabRay,
    /// The subtree that the ray is in; none if it takes the next one from the stack.
    at: Subtree,
}

impl Traversal {
    /// No ray.
    pub const NONE: Self = Self { slab_ray: SlabRay::NONE, at: Subtree::ENDED };

    /// Begins at the root, with an empty stack.
    #[inline(always)]
    pub unsafe fn new(scene: &impl Scene<Leaf = LeafTriangle>, ray: &Ray, stack: &mut impl Stack) -> Self {
        begin(stack);
        let at = if ray.is_valid() { scene.root() } else { Subtree::NONE };
        Self { slab_ray: SlabRay::new(ray, scene.extent()), at }
    }

    /// True if the ray is in a node, which is next.
    #[inline(always)]
    pub const fn is_in_node(&self) -> bool {
        self.at.is_node()
    }

    /// Takes a subtree from the stack if the ray is in none. Returns false if the ray has ended.
    #[inline(always)]
    pub unsafe fn goes_on(&mut self, stack: &mut impl Stack) -> bool {
        if self.at == Subtree::NONE {
            self.at = next(stack, self.slab_ray.end());
        }
        self.at != Subtree::ENDED
    }

    /// Goes on from a node to the nearest of the children that the ray enters. Puts the others on the stack, the nearest last.
    #[inline(always)]
    pub unsafe fn descend(&mut self, scene: &impl Scene<Leaf = LeafTriangle>, stack: &mut impl Stack) {
        let near = |bounds| self.slab_ray.enters(bounds).unwrap_or(f32::INFINITY);
        self.at = nearest_child(scene.node(self.at.index()), stack, near);
    }

    /// Visits the triangles of a leaf that the ray, which is `ray`, hits.
    #[inline(always)]
    pub unsafe fn visit(
        &mut self,
        scene: &impl Scene<Leaf = LeafTriangle>,
        ray: &Ray,
        visitor: &mut impl HitVisitor,
    ) {
        // Not kept, because other rays may need the registers.
        let sheared_ray = ShearedRay::new(ray);
        let (first, num) = (self.at.index(), self.at.num_few().unwrap_or(0));
        self.at = Subtree::NONE;
        let (mut may_hit, mut i) = (0u32, 0);
        while i < num {
            may_hit |= u32::from(sheared_ray.may_hit(scene.item(first + i).corners())) << i;
            i += 1;
        }
        while may_hit != 0 {
            let place = first + may_hit.trailing_zeros();
            may_hit &= may_hit - 1;
            let triangle = scene.item(place);
            if let Some(hit) = sheared_ray.hit(ray, triangle.id(), triangle.corners()) {
                visitor.visit(hit, place);
                self.slab_ray.limit(ray, visitor.t_limit());
            }
        }
        if self.slab_ray.is_empty() {
            self.at = Subtree::ENDED;
        }
    }
}

/// Visits the triangles that a ray hits, near ones first, up to the visitor's limit. Visits each triangle at most once.
///
/// # Safety
/// The scene is a valid hierarchy, and the stack has room for as many entries as [`stack_len`](super::stack::stack_len) says.
#[inline(always)]
pub unsafe fn traverse(
    scene: &impl Scene<Leaf = LeafTriangle>,
    ray: &Ray,
    stack: &mut impl Stack,
    visitor: &mut impl HitVisitor,
) {
    let mut traversal = Traversal::new(scene, ray, stack);
    while traversal.goes_on(stack) {
        if traversal.is_in_node() {
            traversal.descend(scene, stack);
        } else {
            traversal.visit(scene, ray, visitor);
        }
    }
}
