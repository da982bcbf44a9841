//! Traversal of a tree by a ray, front to back.

use super::extent::Extent;
use super::node::Node;
use super::ray::{Lines, Ray, Span};
use super::triangle::{Hit, Shear};

/// A tree and its triangles, in any memory.
pub trait Scene {
    /// Returns the extent of all triangles.
    unsafe fn extent(&self) -> Extent;
    /// Returns a node; node 0 is the root.
    unsafe fn node(&self, node: u32) -> Node;
    /// Returns a primitive reference: the triangle at an index of the leaves' list.
    unsafe fn listed(&self, place: u32) -> u32;
    /// Returns the corners of a triangle.
    unsafe fn corners(&self, triangle: u32) -> [[f32; 3]; 3];
}

/// A callback for hits.
pub trait Visitor {
    /// Returns the `t` beyond which hits are not needed.
    fn limit(&self) -> f32;
    /// Called for each hit, once for each leaf in which the ray meets the triangle.
    unsafe fn visit(&mut self, hit: Hit);
}

/// The short stack: the most recent deferred subtrees, in registers. A push moves all entries.
struct ShortStack<const PLACES: usize> {
    nodes: [u32; PLACES],
    spans: [Span; PLACES],
    len: usize,
}

impl<const PLACES: usize> ShortStack<PLACES> {
    #[inline(always)]
    const fn new() -> Self {
        Self { nodes: [0; PLACES], spans: [Span { begin: 0.0, end: 0.0 }; PLACES], len: 0 }
    }

    /// Drops the oldest entry if the stack is full.
    #[inline(always)]
    fn push(&mut self, node: u32, span: Span) {
        let mut i = PLACES;
        while i > 1 {
            i -= 1;
            self.nodes[i] = self.nodes[i - 1];
            self.spans[i] = self.spans[i - 1];
        }
        if PLACES > 0 {
            self.nodes[0] = node;
            self.spans[0] = span;
            self.len = if self.len < PLACES { self.len + 1 } else { PLACES };
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<(u32, Span)> {
        if PLACES == 0 || self.len == 0 {
            return None;
        }
        let top = (self.nodes[0], self.spans[0]);
        let mut i = 1;
        while i < PLACES {
            self.nodes[i - 1] = self.nodes[i];
            self.spans[i - 1] = self.spans[i];
            i += 1;
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
/// The scene holds a tree.
#[inline(always)]
pub unsafe fn walk<S: Scene, V: Visitor, const PLACES: usize>(scene: &S, ray: &Ray, visitor: &mut V) {
    if !ray.is_valid() {
        return;
    }
    let extent = scene.extent();
    let (lines, shear) = (Lines::new(ray, extent), Shear::new(ray));
    let asked = ray.asked();
    let all = lines.within(extent.bounds, lines.lengths(asked));
    let is_near = all.begin <= all.end;
    if !is_near {
        return;
    }
    let mut stack = ShortStack::<PLACES>::new();
    // One bit per level above the current node, the root's the highest: 1 if nothing is left on the far side.
    let (mut trail, mut level) = (0u64, 1u64 << 63);
    let (mut place, mut span) = (0, all);
    // The longest interval in which the ray may be on both sides of a plane with a deferred far side: a deferred subtree can
    // begin this much before the current position.
    let mut overlap = 0.0f32;
    loop {
        let mut node = scene.node(place);
        while !node.is_leaf() {
            let crossing = lines.crossing(node.axis(), node.plane(), span);
            let (below, above) = (place + 1, node.above());
            let (near, far) = if lines.goes_up(node.axis()) { (below, above) } else { (above, below) };
            let beyond = Span { begin: span.begin.max(crossing.begin), end: span.end };
            if crossing.begin > span.end {
                place = near;
                trail |= level;
            } else if crossing.end < span.begin {
                place = far;
                trail |= level;
            } else if trail & level != 0 {
                place = far;
                span = beyond;
            } else {
                stack.push(far, beyond);
                overlap = overlap.max(crossing.end - crossing.begin);
                place = near;
                span.end = span.end.min(crossing.end);
            }
            level >>= 1;
            node = scene.node(place);
        }
        if !lines.may_reach(visitor.limit(), span.begin - overlap) {
            return;
        }
        let mut listed = node.begin();
        let end = listed + node.len();
        while listed < end {
            let triangle = scene.listed(listed);
            if let Some(hit) = shear.hit(triangle, scene.corners(triangle), asked) {
                visitor.visit(hit);
            }
            listed += 1;
        }
        loop {
            // Ascend to the nearest node with a deferred far side. The nodes between are done; the addition clears their
            // bits.
            let parent = level << 1;
            match trail.checked_add(parent) {
                Some(next) if parent != 0 => trail = next,
                _ => return,
            }
            (place, span) = match stack.pop() {
                Some(top) => {
                    level = (trail & trail.wrapping_neg()) >> 1;
                    top
                }
                None => {
                    level = 1 << 63;
                    (0, all)
                }
            };
            if !lines.may_reach(visitor.limit(), span.begin - overlap) {
                return;
            }
            // Later subtrees may begin earlier, by at most the overlap.
            if lines.may_reach(visitor.limit(), span.begin) {
                break;
            }
        }
    }
}
