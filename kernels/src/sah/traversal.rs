//! Traversal of a tree by a ray, front to back.

use super::node::{MAX_DEPTH, Node};
use super::plane_ray::PlaneRay;
use crate::rays::extent::Extent;
use crate::rays::hits::HitVisitor;
use crate::rays::ray::{Interval, Ray};
use crate::rays::stack::{Entry, Stack};
use crate::rays::tracing::Traversal;
use crate::rays::triangle::ShearedRay;

/// A tree and its triangles, in any memory.
pub trait Scene {
    /// Returns the extent of all triangles.
    unsafe fn extent(&self) -> Extent;
    /// Returns a node; node 0 is the root.
    unsafe fn node(&self, node: u32) -> Node;
    /// Returns a primitive reference: the triangle at an index of the leaves' list.
    unsafe fn reference(&self, index: u32) -> u32;
    /// Returns the corners of a triangle.
    unsafe fn corners(&self, triangle: u32) -> [[f32; 3]; 3];
}

/// The far sides of planes that a ray has still to visit.
pub trait Deferred {
    /// Begins at the root, where the part of the ray is `whole`.
    unsafe fn begin(&mut self, whole: Interval);
    /// Ends the ray: nothing is left.
    unsafe fn end(&mut self);
    /// Goes on from a node to the only child that the ray meets.
    unsafe fn pass(&mut self);
    /// Goes on from a node to the near child, and defers the far one, in which the ray is up to `end`. Returns false if the near one is done, and
    /// the ray goes on to the far one.
    unsafe fn defer(&mut self, far: u32, end: f32) -> bool;
    /// Returns the next node and the part of the ray there, which begins at `begin` or later, unless nothing is left.
    unsafe fn next(&mut self, begin: f32) -> Option<(u32, Interval)>;
}

/// Far sides on a stack, which has room for [`STACK_LEN`] entries. Their numbers tell where the ray leaves them.
pub struct FarSides<K>(pub K);

/// The most entries of a stack: a far side for each level above a leaf.
pub const STACK_LEN: usize = MAX_DEPTH as usize;

impl<K: Stack> Deferred for FarSides<K> {
    #[inline(always)]
    unsafe fn begin(&mut self, _: Interval) {
        self.end();
    }
    #[inline(always)]
    unsafe fn end(&mut self) {
        self.0.clear();
    }
    #[inline(always)]
    unsafe fn pass(&mut self) {}
    #[inline(always)]
    unsafe fn defer(&mut self, far: u32, end: f32) -> bool {
        self.0.push(Entry { at: end, subtree: far });
        true
    }
    #[inline(always)]
    unsafe fn next(&mut self, begin: f32) -> Option<(u32, Interval)> {
        self.0.pop().map(|Entry { at, subtree }| (subtree, Interval { begin, end: at }))
    }
}

/// No memory: every far side is found again from the root. One bit per level marks nodes whose near side is done (Laine 2010, Restart Trail for
/// Stackless BVH Traversal).
pub struct RestartTrail {
    /// One bit per level above the current node, the root's the highest: 1 if nothing is left on the far side.
    trail: u64,
    /// The bit of the current node's level; 0 after the ray has ended.
    level: u64,
    whole: Interval,
}

impl RestartTrail {
    /// No ray.
    pub const NONE: Self = Self { trail: 0, level: 0, whole: Interval::ZERO };
}

impl Deferred for RestartTrail {
    #[inline(always)]
    unsafe fn begin(&mut self, whole: Interval) {
        *self = Self { trail: 0, level: 1 << 63, whole };
    }
    #[inline(always)]
    unsafe fn end(&mut self) {
        self.level = 0;
    }
    #[inline(always)]
    unsafe fn pass(&mut self) {
        self.trail |= self.level;
        self.level >>= 1;
    }
    #[inline(always)]
    unsafe fn defer(&mut self, _: u32, _: f32) -> bool {
        let is_near_done = self.trail & self.level != 0;
        self.level >>= 1;
        !is_near_done
    }
    #[inline(always)]
    unsafe fn next(&mut self, _: f32) -> Option<(u32, Interval)> {
        // The parent, or the nearest node above it with a far side that is left: the nodes between are done, and the addition clears their bits.
        let parent = self.level << 1;
        let (trail, is_over) = self.trail.overflowing_add(parent);
        if parent == 0 || is_over {
            self.level = 0;
            return None;
        }
        (self.trail, self.level) = (trail, 1 << 63);
        Some((0, self.whole))
    }
}

/// The traversal of a tree by a ray.
pub struct SahTraversal<S, D> {
    scene: S,
    deferred: D,
    plane_ray: PlaneRay,
    sheared_ray: ShearedRay,
    /// The current node; a leaf is without triangles when the ray has visited them.
    node: Node,
    current: u32,
    /// The part of the ray in the current node.
    interval: Interval,
    /// The longest interval in which the ray may be on both sides of a plane with a deferred far side: a deferred subtree can
    /// begin this much before the current position.
    overlap: f32,
    /// The `t` beyond which hits are not needed.
    t_limit: f32,
}

/// A leaf whose triangles the ray has visited.
const VISITED: Node = Node::leaf(0, 0);

impl<S: Scene, D: Deferred> SahTraversal<S, D> {
    /// Has no ray. The scene is a valid tree.
    #[inline(always)]
    pub unsafe fn new(scene: S, mut deferred: D) -> Self {
        deferred.end();
        Self {
            scene,
            deferred,
            plane_ray: PlaneRay::NONE,
            sheared_ray: ShearedRay::NONE,
            node: VISITED,
            current: 0,
            interval: Interval::ZERO,
            overlap: 0.0,
            t_limit: f32::INFINITY,
        }
    }

    #[inline(always)]
    unsafe fn go_to(&mut self, node: u32) {
        self.current = node;
        self.node = self.scene.node(node);
    }

    #[inline(always)]
    unsafe fn end(&mut self) {
        self.node = VISITED;
        self.deferred.end();
    }
}

impl<S: Scene, D: Deferred> Traversal for SahTraversal<S, D> {
    const STEPS: usize = 4;

    #[inline(always)]
    unsafe fn begin(&mut self, ray: &Ray) {
        let extent = self.scene.extent();
        self.plane_ray = PlaneRay::new(ray, extent);
        self.sheared_ray = ShearedRay::new(ray);
        let whole = self.plane_ray.clip_to(extent.bounds, self.plane_ray.lengths(ray.t_range()));
        (self.interval, self.overlap, self.t_limit) = (whole, 0.0, f32::INFINITY);
        self.deferred.begin(whole);
        let is_near = whole.begin <= whole.end;
        if ray.is_valid() && is_near {
            self.go_to(0);
        } else {
            self.end();
        }
    }

    #[inline(always)]
    unsafe fn goes_on(&mut self) -> bool {
        while self.node.is_empty() {
            // The remaining subtrees begin where the last leaf ends, or earlier by at most the overlap.
            let begin = self.interval.end.min(f32::MAX) - self.overlap;
            let Some((node, interval)) = self.deferred.next(begin) else { return false };
            if !self.plane_ray.may_reach(self.t_limit, begin) {
                self.end();
                return false;
            }
            self.interval = interval;
            self.go_to(node);
        }
        true
    }

    #[inline(always)]
    fn is_in_node(&self) -> bool {
        !self.node.is_leaf()
    }

    /// Goes on to the child on the near side of the plane, or to the other one if the ray is only there.
    #[inline(always)]
    unsafe fn descend(&mut self) {
        let (axis, interval) = (self.node.axis(), self.interval);
        let crossing = self.plane_ray.crossing(axis, self.node.plane(), interval);
        let (below, above) = (self.current + 1, self.node.above());
        let (near, far) = if self.plane_ray.goes_up(axis) { (below, above) } else { (above, below) };
        let next = if crossing.begin > interval.end {
            self.deferred.pass();
            near
        } else if crossing.end < interval.begin {
            self.deferred.pass();
            far
        } else if self.deferred.defer(far, interval.end) {
            self.overlap = self.overlap.max(crossing.end - crossing.begin);
            self.interval.end = interval.end.min(crossing.end);
            near
        } else {
            self.interval.begin = interval.begin.max(crossing.begin);
            far
        };
        self.go_to(next);
    }

    #[inline(always)]
    unsafe fn visit(&mut self, ray: &Ray, visitor: &mut impl HitVisitor) {
        if !self.plane_ray.may_reach(self.t_limit, self.interval.begin - self.overlap) {
            return self.end();
        }
        let mut index = self.node.begin();
        let end = index + self.node.len();
        self.node = VISITED;
        while index < end {
            let triangle = self.scene.reference(index);
            let rows = self.sheared_ray.rows(self.scene.corners(triangle));
            if self.sheared_ray.may_hit(rows)
                && let Some(hit) = self.sheared_ray.hit(ray, triangle, rows)
            {
                visitor.visit(hit);
            }
            index += 1;
        }
        self.t_limit = visitor.t_limit();
    }
}
