//! Where a ray hits a triangle, without a gap between triangles that share an edge.

use super::aabb::{greatest_axis, of_axis};
use super::ray::{Ray, Span};
use crate::plain::plain;

/// The corners of a triangle, as they are fetched: 16 bytes each.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corners([[f32; 4]; 3]);

plain! { Corners { [[f32; 4]; 3] } }

impl Corners {
    /// These. There is one zero among them: what compares numbers as bits sees equal ones.
    #[inline(always)]
    pub fn new([a, b, c]: [[f32; 3]; 3]) -> Self {
        Self([a, b, c].map(|[x, y, z]| [x + 0.0, y + 0.0, z + 0.0, 0.0]))
    }

    /// Where they are.
    #[inline(always)]
    pub fn places(self) -> [[f32; 3]; 3] {
        self.0.map(|[x, y, z, _]| [x, y, z])
    }
}

/// Where a ray hits a triangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The triangle.
    pub triangle: u32,
    /// How far the ray goes there, in its directions.
    pub t: f32,
    /// How much of the second corner is in the place: `(1 - u - v) * a + u * b + v * c`.
    pub u: f32,
    /// How much of the third.
    pub v: f32,
}

impl Hit {
    /// In place of a triangle: none was hit.
    pub const NO_TRIANGLE: u32 = u32::MAX;

    /// No hit: behind all others.
    pub const NONE: Self = Self { triangle: Self::NO_TRIANGLE, t: f32::INFINITY, u: 0.0, v: 0.0 };

    /// True if it comes first: it is nearer, or as near and of the smaller triangle.
    #[inline(always)]
    pub fn is_before(&self, other: &Self) -> bool {
        self.t < other.t || self.t == other.t && self.triangle < other.triangle
    }
}

/// A ray as triangles see it: space is sheared so that it goes along an axis (Woop, Benthin, Wald 2013: Watertight Ray/Triangle
/// Intersection).
///
/// A corner is rounded in the same way whatever triangle it belongs to, and from then on signs are exact: products of rounded coordinates have 48
/// bits and are made in `f64` wherever `f32` does not rule the triangle out. So are the weights of the corners, hence `t` is right to its last
/// bits even in slivers.
#[derive(Clone, Copy)]
pub struct Shear {
    origin: [f32; 3],
    /// The axis that the ray mostly goes along.
    axis: u32,
    shear: [f32; 2],
    length: f32,
}

/// The coordinates on the two other axes, and on this one.
#[inline(always)]
fn turned(v: [f32; 3], axis: u32) -> [f32; 3] {
    let [x, y, z] = v;
    if axis == 0 {
        [y, z, x]
    } else if axis == 1 {
        [z, x, y]
    } else {
        v
    }
}

impl Shear {
    /// Of a valid ray.
    #[inline(always)]
    pub fn new(ray: &Ray) -> Self {
        let d = ray.direction;
        let axis = greatest_axis([d[0].abs(), d[1].abs(), d[2].abs()]);
        let [x, y, z] = turned(d, axis);
        Self { origin: ray.origin, axis, shear: [x / z, y / z], length: of_axis(d, axis) }
    }

    /// A corner, seen from the origin: how far beside the ray, and how far along.
    #[inline(always)]
    fn seen(&self, corner: [f32; 3]) -> [f32; 3] {
        let ([a, b, c], [d, e, f]) = (corner, self.origin);
        let [x, y, z] = turned([a - d, b - e, c - f], self.axis);
        [x - self.shear[0] * z, y - self.shear[1] * z, z]
    }

    /// Where the ray hits a triangle, if it does for a `t` that is asked for. From both sides; never if the triangle has no area, or is
    /// seen edge-on.
    #[inline(always)]
    pub fn hit(&self, triangle: u32, corners: [[f32; 3]; 3], asked: Span) -> Option<Hit> {
        let [a, b, c] = [self.seen(corners[0]), self.seen(corners[1]), self.seen(corners[2])];
        let area = |p: [f32; 3], q: [f32; 3]| p[0] * q[1] - p[1] * q[0];
        if is_beside([area(c, b), area(a, c), area(b, a)].map(f64::from)) {
            return None;
        }
        let area =
            |p: [f32; 3], q: [f32; 3]| f64::from(p[0]) * f64::from(q[1]) - f64::from(p[1]) * f64::from(q[0]);
        let [of_a, of_b, of_c] = [area(c, b), area(a, c), area(b, a)];
        let all = of_a + of_b + of_c;
        if is_beside([of_a, of_b, of_c]) || all == 0.0 {
            return None;
        }
        let along = (of_a * f64::from(a[2]) + of_b * f64::from(b[2]) + of_c * f64::from(c[2])) / all;
        // There is one zero.
        let t = (along / f64::from(self.length)) as f32 + 0.0;
        let is_asked = t >= asked.begin && t <= asked.end && t.is_finite();
        is_asked.then(|| Hit { triangle, t, u: (of_b / all) as f32 + 0.0, v: (of_c / all) as f32 + 0.0 })
    }
}

/// True if the ray passes the edges on different sides. Where an area is 0 in `f32`, its sign is not known: then it says nothing.
#[inline(always)]
fn is_beside([a, b, c]: [f64; 3]) -> bool {
    (a < 0.0 || b < 0.0 || c < 0.0) && (a > 0.0 || b > 0.0 || c > 0.0)
}
