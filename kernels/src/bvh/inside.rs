//! Whether points are inside a mesh: a ray from a point inside leaves the mesh once more than it enters.

use super::leaf::LeafTriangle;
use super::scene::Scene;
use super::search::{Query, Searches, search};
use crate::policy::RAY_THREADS as THREADS;
use crate::rays::aabb::{Aabb, component};
use crate::rays::stack::{Stack, StackSmem};
use cuda_std::prelude::*;

/// A query for the triangles that the ray from a point along an axis crosses.
///
/// Whether a ray crosses a triangle is whether it passes an odd number of its sides on one side, as in a plane (Shimrat 1962, Algorithm 112:
/// Position of Point Relative to Polygon). The decision for a side depends on its two corners alone, in an order of their own. So triangles
/// with a common side agree, and the number of triangles of a closed mesh that a line crosses is even, also through corners and sides.
struct Crossings {
    point: [f32; 3],
    axis: u32,
    is_odd: bool,
}

impl Crossings {
    /// Returns the coordinate on the axis of the ray, and those on the next two axes.
    #[inline(always)]
    fn turned(&self, at: [f32; 3]) -> [f32; 3] {
        let [x, y, z] = at;
        component([[x, y, z], [y, z, x], [z, x, y]], self.axis)
    }

    /// True if the line through the point along the last axis passes the side from `a` to `b` on its low side.
    #[inline(always)]
    fn passes(&self, a: [f32; 3], b: [f32; 3]) -> bool {
        let ([_, py, pz], [_, ay, az], [_, by, bz]) = (self.turned(self.point), a, b);
        if (az > pz) == (bz > pz) {
            return false;
        }
        // The lower end first.
        let ([ay, az], [by, bz]) = if az < bz { ([ay, az], [by, bz]) } else { ([by, bz], [ay, az]) };
        let [ay, az, by, bz, py, pz] = [ay, az, by, bz, py, pz].map(f64::from);
        (by - ay) * (pz - az) > (py - ay) * (bz - az)
    }
}

impl Query<LeafTriangle> for Crossings {
    #[inline(always)]
    fn near(&self, bounds: Aabb) -> f32 {
        let (point, low, high) = (self.turned(self.point), self.turned(bounds.low), self.turned(bounds.high));
        let is_passed = high[0] >= point[0]
            && low[1] <= point[1]
            && point[1] <= high[1]
            && low[2] <= point[2]
            && point[2] <= high[2];
        if is_passed { 0.0 } else { f32::INFINITY }
    }

    #[inline(always)]
    fn limit(&self) -> f32 {
        0.0
    }

    #[inline(always)]
    unsafe fn item(&mut self, item: LeafTriangle) {
        let [a, b, c] = item.corners().map(|corner| self.turned(corner));
        if self.passes(a, b) ^ self.passes(b, c) ^ self.passes(c, a) {
            self.is_odd ^= is_beyond(self.turned(self.point), [a, b, c]);
        }
    }
}

/// True if the line through the point along the first axis meets the triangle beyond the point. The line meets the triangle.
#[inline(always)]
fn is_beyond(point: [f32; 3], corners: [[f32; 3]; 3]) -> bool {
    let [point, a, b, c] = [point, corners[0], corners[1], corners[2]].map(|at| at.map(f64::from));
    let (p, q, r) = (from(point, a), from(point, b), from(point, c));
    // The sum of the corners' first coordinates, weighted by the areas opposite to them in the plane of the other two axes.
    let (u, v, w) = (area(q, r), area(r, p), area(p, q));
    let (along, all) = (u * p[0] + v * q[0] + w * r[0], u + v + w);
    if all > 0.0 { along > 0.0 } else { along < 0.0 }
}

#[inline(always)]
fn from([a, b, c]: [f64; 3], [d, e, f]: [f64; 3]) -> [f64; 3] {
    [d - a, e - b, f - c]
}

/// Twice the area of the triangle of two points and the origin, in the plane of the last two axes.
#[inline(always)]
fn area([_, a, b]: [f64; 3], [_, c, d]: [f64; 3]) -> f64 {
    a * d - b * c
}

/// Returns whether most of the three rays along the axes say that a point is inside. In a closed mesh all say the same.
///
/// # Safety
/// As for [`search`].
#[inline(always)]
pub unsafe fn is_inside(
    scene: &impl Scene<Leaf = LeafTriangle>,
    stack: &mut impl Stack,
    point: [f32; 3],
) -> bool {
    let mut num_inside = 0;
    let mut axis = 0;
    while axis < 3 {
        let mut crossings = Crossings { point, axis, is_odd: false };
        search(scene, stack, &mut crossings);
        num_inside += u32::from(crossings.is_odd);
        axis += 1;
    }
    num_inside >= 2
}

/// Writes 1 for each point that is inside the mesh, 0 for the others.
#[kernel(family = "bvh", block = THREADS, shared = StackSmem)]
pub unsafe fn bvh_inside(
    searches: Searches<'_, LeafTriangle>,
    points: Slice<[f32; 3]>,
    inside: SliceMut<u8>,
) {
    searches.each_with_stack(shared_mem(), points.len(), |i, stack| {
        inside.store(i, is_inside(&searches.bvh, stack, points.load(i)).into());
    });
}
