//! Traversal of a tree by a ray, front to back.

use super::node::Node;
use super::plane_ray::PlaneRay;
use crate::rays::extent::Extent;
use crate::rays::hits::HitVisitor;
use crate::rays::ray::{Interval, Ray};
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

/// Entries of the short stack of a GPU's ray.
pub const SHORT_STACK: usize = 4;

/// The short stack: the most recent deferred subtrees, in registers. A push moves all entries.
struct ShortStack<const STACK: usize> {
    nodes: [u32; STACK],
    spans: [Interval; STACK],
    len: usize,
}

impl<const STACK: usize> ShortStack<STACK> {
    #[inline(always)]
    const fn new() -> Self {
        Self { nodes: [0; STACK], spans: [Interval::ZERO; STACK], len: 0 }
    }

    /// Drops the oldest entry if the stack is full.
    #[inline(always)]
    fn push(&mut self, node: u32, interval: Interval) {
        let mut i = STACK;
        while i > 1 {
            i -= 1;
            self.nodes[i] = self.nodes[i - 1];
            self.spans[i] = self.spans[i - 1];
        }
        if STACK > 0 {
            self.nodes[0] = node;
            self.spans[0] = interval;
            self.len = if self.len < STACK { self.len + 1 } else { STACK };
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<(u32, Interval)> {
        if STACK == 0 || self.len == 0 {
            return None;
        }
        let top = (self.nodes[0], self.spans[0]);
        for i in 1..STACK {
            self.nodes[i - 1] = self.nodes[i];
            self.spans[i - 1] = self.spans[i];
        }
        self.len -= 1;
        Some(top)
    }
}

/// The traversal of a tree by a ray.
///
/// Deferred subtrees are on a short stack of `STACK` entries. Subtrees that were dropped from it are found again from the
/// root: one bit per level marks nodes whose near side is done (Laine 2010, Restart Trail for Stackless BVH Traversal).
/// Without a stack every deferred subtree is found by a restart.
pub struct SahTraversal<S, const STACK: usize> {
    scene: S,
    plane_ray: PlaneRay,
    sheared_ray: ShearedRay,
    stack: ShortStack<STACK>,
    /// One bit per level above the current node, the root's the highest: 1 if nothing is left on the far side.
    trail: u64,
    /// The bit of the current node's level; 0 after the ray has ended.
    level: u64,
    /// The current node; a leaf is without triangles when the ray has visited them.
    node: Node,
    current: u32,
    /// The part of the ray in the current node.
    interval: Interval,
    /// The part of the ray in the root.
    whole: Interval,
    /// The longest interval in which the ray may be on both sides of a plane with a deferred far side: a deferred subtree can
    /// begin this much before the current position.
    overlap: f32,
    /// The `t` beyond which hits are not needed.
    t_limit: f32,
}

/// A leaf whose triangles the ray has visited.
const VISITED: Node = Node::leaf(0, 0);

impl<S: Scene, const STACK: usize> SahTraversal<S, STACK> {
    /// Has no ray. The scene is a valid tree.
    #[inline(always)]
    pub fn new(scene: S) -> Self {
        Self {
            scene,
            plane_ray: PlaneRay::NONE,
            sheared_ray: ShearedRay::NONE,
            stack: ShortStack::new(),
            trail: 0,
            level: 0,
            node: VISITED,
            current: 0,
            interval: Interval::ZERO,
            whole: Interval::ZERO,
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
    fn end(&mut self) {
        (self.node, self.level) = (VISITED, 0);
    }

    /// False if neither the current node nor a deferred one has a hit that is needed: later subtrees may begin earlier, by at most the overlap.
    #[inline(always)]
    fn may_hit(&self) -> bool {
        self.plane_ray.may_reach(self.t_limit, self.interval.begin - self.overlap)
    }
}

impl<S: Scene, const STACK: usize> Traversal for SahTraversal<S, STACK> {
    const STEPS: usize = 4;

    #[inline(always)]
    unsafe fn begin(&mut self, ray: &Ray) {
        let extent = self.scene.extent();
        self.plane_ray = PlaneRay::new(ray, extent);
        self.sheared_ray = ShearedRay::new(ray);
        self.whole = self.plane_ray.clip_to(extent.bounds, self.plane_ray.lengths(ray.t_range()));
        (self.interval, self.overlap, self.t_limit) = (self.whole, 0.0, f32::INFINITY);
        (self.stack.len, self.trail, self.level) = (0, 0, 1 << 63);
        let is_near = self.whole.begin <= self.whole.end;
        if ray.is_valid() && is_near {
            self.go_to(0);
        } else {
            self.end();
        }
    }

    #[inline(always)]
    unsafe fn goes_on(&mut self) -> bool {
        while self.node.is_empty() {
            // Ascend to the nearest node with a deferred far side. The nodes between are done; the addition clears their
            // bits.
            let parent = self.level << 1;
            let (trail, is_over) = self.trail.overflowing_add(parent);
            if parent == 0 || is_over {
                self.end();
                return false;
            }
            self.trail = trail;
            let node;
            (node, self.interval) = match self.stack.pop() {
                Some(top) => {
                    self.level = (trail & trail.wrapping_neg()) >> 1;
                    top
                }
                None => {
                    self.level = 1 << 63;
                    (0, self.whole)
                }
            };
            if !self.may_hit() {
                self.end();
                return false;
            }
            if self.plane_ray.may_reach(self.t_limit, self.interval.begin) {
                self.go_to(node);
            }
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
        let beyond = Interval { begin: interval.begin.max(crossing.begin), end: interval.end };
        let next = if crossing.begin > interval.end {
            self.trail |= self.level;
            near
        } else if crossing.end < interval.begin {
            self.trail |= self.level;
            far
        } else if self.trail & self.level != 0 {
            self.interval = beyond;
            far
        } else {
            self.stack.push(far, beyond);
            self.overlap = self.overlap.max(crossing.end - crossing.begin);
            self.interval.end = interval.end.min(crossing.end);
            near
        };
        self.level >>= 1;
        self.go_to(next);
    }

    #[inline(always)]
    unsafe fn visit(&mut self, ray: &Ray, visitor: &mut impl HitVisitor) {
        if !self.may_hit() {
            return self.end();
        }
        let mut index = self.node.begin();
        let end = index + self.node.len();
        self.node = VISITED;
        while index < end {
            let triangle = self.scene.reference(index);
            let corners = self.scene.corners(triangle);
            if self.sheared_ray.may_hit(corners)
                && let Some(hit) = self.sheared_ray.hit(ray, triangle, corners)
            {
                visitor.visit(hit, triangle);
            }
            index += 1;
        }
        self.t_limit = visitor.t_limit();
    }

    #[inline(always)]
    unsafe fn corners(&self, triangle: u32) -> [[f32; 3]; 3] {
        self.scene.corners(triangle)
    }
}
