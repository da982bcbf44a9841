//! The way of a ray through a tree, from front to back.

use super::extent::Extent;
use super::node::Node;
use super::ray::{Lines, Ray, Span};
use super::triangle::{Hit, Shear};

/// A tree and its triangles in some memory.
pub trait Scene {
    /// The extent of all triangles.
    unsafe fn extent(&self) -> Extent;
    /// A node; the first is the root.
    unsafe fn node(&self, node: u32) -> Node;
    /// A triangle on the list of all leaves.
    unsafe fn listed(&self, place: u32) -> u32;
    /// The corners of a triangle.
    unsafe fn corners(&self, triangle: u32) -> [[f32; 3]; 3];
}

/// Who is told of hits.
pub trait Visitor {
    /// Hits behind this one are of no interest.
    fn limit(&self) -> f32;
    /// The ray hits a triangle. One that is in several leaves may come once for each of them.
    unsafe fn visit(&mut self, hit: Hit);
}

/// Subtrees to come back to, the last ones that were left, in registers: a push moves all.
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

    /// Where there is no room, the oldest is forgotten.
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

/// Tells a visitor of the triangles that a ray hits, leaf after leaf along the ray, until its limit.
///
/// What is left for later is on a short stack, `PLACES` high. Subtrees that were pushed out of it are found again from the root: a bit a level
/// says which nodes are done on their near side (Laine 2010, Restart Trail for Stackless BVH Traversal); with a stack of no places all are.
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
    // Of each level above the current one: 1 if nothing is left to do on the far side. The highest bit is the root's.
    let (mut trail, mut level) = (0u64, 1u64 << 63);
    let (mut place, mut span) = (0, all);
    // Of planes with something left behind them: how long the ray may be on both sides. So much earlier than now it may be there.
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
            // Up to the nearest node that has something left on its far side: those between are done, and their bits are cleared.
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
            // Later subtrees may begin earlier, by no more than the overlap.
            if lines.may_reach(visitor.limit(), span.begin) {
                break;
            }
        }
    }
}
