//! Traversal of a hierarchy by a ray, the nearer child first.

use super::leaf::LeafTriangle;
use super::node::{Node, WIDTH};
use super::slabs::SlabRay;
use super::subtree::Subtree;
use crate::rays::extent::Extent;
use crate::rays::hits::HitVisitor;
use crate::rays::ray::Ray;
use crate::rays::triangle::ShearedRay;
use crate::thread::words::{join, split};

/// A hierarchy, in any memory.
pub trait Scene {
    /// Returns the extent of all triangles.
    unsafe fn extent(&self) -> Extent;
    /// Returns the root.
    unsafe fn root(&self) -> Subtree;
    /// Returns a node.
    unsafe fn node(&self, node: u32) -> Node;
    /// Returns a triangle, by its place in the leaves.
    unsafe fn triangle(&self, place: u32) -> LeafTriangle;
}

/// The subtrees that a ray still has to visit, with the lengths at which it enters them.
pub trait Stack {
    /// Drops all entries.
    unsafe fn clear(&mut self);
    /// Adds a subtree.
    unsafe fn push(&mut self, entry: u64);
    /// Takes the entry that was added last, of which there is at least one.
    unsafe fn pop(&mut self) -> u64;
}

/// The traversal of a hierarchy by a ray, step by step.
#[derive(Clone, Copy)]
pub struct Traversal {
    slab_ray: SlabRay,
    /// The subtree that the ray is in; none if it takes the next one from the stack.
    at: Subtree,
}

/// The first entry of a stack is before every limit, and says that the ray has ended.
const LAST: Entry = (f32::NEG_INFINITY, Subtree::ENDED);

/// A child of a node, and the length at which a ray enters it: infinite if it misses it.
type Entry = (f32, Subtree);

/// Puts the entry that comes first before the other.
#[inline(always)]
fn in_order(a: Entry, b: Entry) -> (Entry, Entry) {
    if b.0 < a.0 { (b, a) } else { (a, b) }
}

impl Traversal {
    /// No ray.
    pub const NONE: Self = Self { slab_ray: SlabRay::NONE, at: Subtree::ENDED };

    /// Begins at the root, with an empty stack.
    #[inline(always)]
    pub unsafe fn new(scene: &impl Scene, ray: &Ray, stack: &mut impl Stack) -> Self {
        stack.clear();
        push(stack, LAST);
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
        while self.at == Subtree::NONE {
            let [subtree, at, ..] = split(stack.pop());
            // Nothing is beyond a limit that is NaN, and the last entry not beyond any.
            let is_beyond = f32::from_bits(at) > self.slab_ray.end();
            if !is_beyond {
                self.at = Subtree(subtree);
            }
        }
        self.at != Subtree::ENDED
    }

    /// Goes on from a node to the nearest of the children that the ray enters. Puts the others on the stack, the nearest last.
    #[inline(always)]
    pub unsafe fn descend(&mut self, scene: &impl Scene, stack: &mut impl Stack) {
        let node = scene.node(self.at.index());
        let entry = |i: usize| {
            let begin = self.slab_ray.enters(node.boxes[i]).unwrap_or(f32::INFINITY);
            (if node.children[i] == Subtree::NONE { f32::INFINITY } else { begin }, node.children[i])
        };
        let ((a, b), (c, d)) = (in_order(entry(0), entry(1)), in_order(entry(2), entry(3)));
        let ((a, c), (b, d)) = (in_order(a, c), in_order(b, d));
        let (b, c) = in_order(b, c);
        push(stack, d);
        push(stack, c);
        push(stack, b);
        self.at = if a.0 < f32::INFINITY { a.1 } else { Subtree::NONE };
    }

    /// Visits the triangles of a leaf that the ray, which is `ray`, hits.
    #[inline(always)]
    pub unsafe fn visit(&mut self, scene: &impl Scene, ray: &Ray, visitor: &mut impl HitVisitor) {
        // Not kept, because other rays may need the registers.
        let sheared_ray = ShearedRay::new(ray);
        let (first, num) = (self.at.index(), self.at.num_few().unwrap_or(0));
        self.at = Subtree::NONE;
        let (mut may_hit, mut i) = (0u32, 0);
        while i < num {
            may_hit |= u32::from(sheared_ray.may_hit(scene.triangle(first + i).corners())) << i;
            i += 1;
        }
        while may_hit != 0 {
            let place = first + may_hit.trailing_zeros();
            may_hit &= may_hit - 1;
            let triangle = scene.triangle(place);
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

/// Adds a child of a node to the stack, unless the ray misses it.
#[inline(always)]
unsafe fn push(stack: &mut impl Stack, (at, child): Entry) {
    if at < f32::INFINITY {
        stack.push(join([child.0, at.to_bits(), 0, 0]));
    }
}

/// Visits the triangles that a ray hits, near ones first, up to the visitor's limit. Visits each triangle at most once.
///
/// # Safety
/// The scene is a valid hierarchy, and the stack has room for as many entries as [`stack_len`] says.
#[inline(always)]
pub unsafe fn traverse(scene: &impl Scene, ray: &Ray, stack: &mut impl Stack, visitor: &mut impl HitVisitor) {
    let mut traversal = Traversal::new(scene, ray, stack);
    while traversal.goes_on(stack) {
        if traversal.is_in_node() {
            traversal.descend(scene, stack);
        } else {
            traversal.visit(scene, ray, visitor);
        }
    }
}

/// Returns the most entries of a stack in a hierarchy with this number of levels of nodes: all children but one, and the first entry.
pub const fn stack_len(height: u32) -> usize {
    (WIDTH - 1) * height as usize + 1
}
