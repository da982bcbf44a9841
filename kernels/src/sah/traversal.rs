//! Traversal of a tree by a ray, front to back.

use super::node::Node;
use super::plane_ray::PlaneRay;
use crate::rays::extent::Extent;
use crate::rays::hits::HitVisitor;
use crate::rays::ray::{Interval, Ray};
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
        Self { nodes: [0; STACK], spans: [Interval { begin: 0.0, end: 0.0 }; STACK], len: 0 }
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

/// Visits the triangles that a ray hits, leaf after leaf along the ray, until the visitor's limit.
///
/// Deferred subtrees are on a short stack of `STACK` entries. Subtrees that were dropped from it are found again from the
/// root: one bit per level marks nodes whose near side is done (Laine 2010, Restart Trail for Stackless BVH Traversal).
/// Without a stack every deferred subtree is found by a restart.
///
/// # Safety
/// The scene must hold a valid tree.
#[inline(always)]
pub unsafe fn traverse<S: Scene, V: HitVisitor, const STACK: usize>(scene: &S, ray: &Ray, visitor: &mut V) {
    if !ray.is_valid() {
        return;
    }
    let extent = scene.extent();
    let (plane_ray, sheared_ray) = (PlaneRay::new(ray, extent), ShearedRay::new(ray));
    let t_range = ray.t_range();
    let whole = plane_ray.clip_to(extent.bounds, plane_ray.lengths(t_range));
    let is_near = whole.begin <= whole.end;
    if !is_near {
        return;
    }
    let mut stack = ShortStack::<STACK>::new();
    // One bit per level above the current node, the root's the highest: 1 if nothing is left on the far side.
    let (mut trail, mut level) = (0u64, 1u64 << 63);
    let (mut current, mut interval) = (0, whole);
    // The longest interval in which the ray may be on both sides of a plane with a deferred far side: a deferred subtree can
    // begin this much before the current position.
    let mut overlap = 0.0f32;
    loop {
        let mut node = scene.node(current);
        while !node.is_leaf() {
            let crossing = plane_ray.crossing(node.axis(), node.plane(), interval);
            let (below, above) = (current + 1, node.above());
            let (near, far) = if plane_ray.goes_up(node.axis()) { (below, above) } else { (above, below) };
            let beyond = Interval { begin: interval.begin.max(crossing.begin), end: interval.end };
            if crossing.begin > interval.end {
                current = near;
                trail |= level;
            } else if crossing.end < interval.begin {
                current = far;
                trail |= level;
            } else if trail & level != 0 {
                current = far;
                interval = beyond;
            } else {
                stack.push(far, beyond);
                overlap = overlap.max(crossing.end - crossing.begin);
                current = near;
                interval.end = interval.end.min(crossing.end);
            }
            level >>= 1;
            node = scene.node(current);
        }
        if !plane_ray.may_reach(visitor.t_limit(), interval.begin - overlap) {
            return;
        }
        let mut index = node.begin();
        let end = index + node.len();
        while index < end {
            let triangle = scene.reference(index);
            let corners = scene.corners(triangle);
            if sheared_ray.may_hit(corners)
                && let Some(hit) = sheared_ray.hit(ray, triangle, corners)
            {
                visitor.visit(hit, triangle);
            }
            index += 1;
        }
        loop {
            // Ascend to the nearest node with a deferred far side. The nodes between are done; the addition clears their
            // bits.
            let parent = level << 1;
            match trail.checked_add(parent) {
                Some(next) if parent != 0 => trail = next,
                _ => return,
            }
            (current, interval) = match stack.pop() {
                Some(top) => {
                    level = (trail & trail.wrapping_neg()) >> 1;
                    top
                }
                None => {
                    level = 1 << 63;
                    (0, whole)
                }
            };
            if !plane_ray.may_reach(visitor.t_limit(), interval.begin - overlap) {
                return;
            }
            // Later subtrees may begin earlier, by at most the overlap.
            if plane_ray.may_reach(visitor.t_limit(), interval.begin) {
                break;
            }
        }
    }
}
