//! Rays, and where they cross planes.

use super::aabb::{Aabb, greatest_axis, of_axis};
use super::extent::Extent;
use super::triangle::{Hit, Shear};
use crate::plain::plain;

/// What is asked: the triangles at `origin + t * direction`, for `t` from `t_min` to `t_max`, both with it. The direction needs no length
/// of 1. Only a finite `t` is a hit, and none is within a bound that is not a number.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ray {
    /// Where it begins.
    pub origin: [f32; 3],
    /// The least `t` that counts; it may be infinite.
    pub t_min: f32,
    /// Where it goes; `t` is a multiple of this.
    pub direction: [f32; 3],
    /// The greatest `t` that counts; it may be infinite.
    pub t_max: f32,
}

plain! { Ray { [f32; 3], f32, [f32; 3], f32 } }

impl Ray {
    /// All of a line from `origin` on.
    #[inline(always)]
    pub const fn new(origin: [f32; 3], direction: [f32; 3]) -> Self {
        Self { origin, t_min: 0.0, direction, t_max: f32::INFINITY }
    }

    /// What is asked for of its line.
    #[inline(always)]
    pub const fn asked(&self) -> Span {
        Span { begin: self.t_min, end: self.t_max }
    }

    /// Where it hits a triangle, the number of which the hit gets; if it does. As trees find it, to the last bit.
    #[inline(always)]
    pub fn hit(&self, triangle: u32, corners: [[f32; 3]; 3]) -> Option<Hit> {
        if self.is_valid() { Shear::new(self).hit(triangle, corners, self.asked()) } else { None }
    }

    /// True if it goes somewhere: otherwise it hits nothing.
    #[inline(always)]
    pub fn is_valid(&self) -> bool {
        let ([a, b, c], [d, e, f]) = (self.origin, self.direction);
        let are_numbers = a.is_finite() && b.is_finite() && c.is_finite() && d.is_finite();
        are_numbers && e.is_finite() && f.is_finite() && (d != 0.0 || e != 0.0 || f != 0.0)
    }
}

/// From where to where a ray is in something, by `t` or by lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// From here on.
    pub begin: f32,
    /// Up to here.
    pub end: f32,
}

/// What rounding may do to a number from 1 to 2, and to one that is nearly 0.
const ROUNDING: f32 = f32::EPSILON / 2.0;
const LEAST: f32 = f32::from_bits(1);

/// The power of two that makes of a number that is not negative one from 1 to 2, or of a very small or great one a number nearer to that.
#[inline(always)]
pub fn to_one(greatest: f32) -> f32 {
    let exponent = (greatest.to_bits() >> 23).min(253);
    f32::from_bits((254 - exponent) << 23)
}

/// A ray as planes see it, with a direction that is about 1 long: it says how far it has gone as a length.
///
/// Every plane is widened by the error of a hit. Translating and shearing the corners of a triangle ([`Shear`]) moves them by less than 7
/// rounding errors of the largest distance, on one axis, between the ray's origin and a corner; the later steps are exact enough. That distance is at
/// most the distance to the hit plus the longest side of a triangle: a far outlier does not widen the planes near the origin. With 16 rounding
/// errors of that sum on each side of a plane, traversal reaches every leaf that holds the part of the triangle that the ray hits.
#[derive(Clone, Copy)]
pub struct Lines {
    origin: [f32; 3],
    inverse: [f32; 3],
    /// The error bound of planes and hits at the origin.
    least_error: f32,
    /// What `t` is times, to be a length: a power of two.
    length: f32,
}

/// Growth of the error bound per length along the ray. A length of 1 is less than 2 on an axis.
const ERROR_PER_LENGTH: f32 = 2.0 * 16.0 * ROUNDING;

impl Lines {
    /// Of a valid ray in a scene of this extent.
    #[inline(always)]
    pub fn new(ray: &Ray, extent: Extent) -> Self {
        let mut d = ray.direction;
        let greatest = of_axis(d, greatest_axis([d[0].abs(), d[1].abs(), d[2].abs()])).abs();
        let scale = to_one(greatest);
        let mut inverse = [0.0; 3];
        let mut i = 0;
        while i < 3 {
            d[i] *= scale;
            // A ray that moves less than that across an axis stays within the error of a plane: no inverse needs to be infinite.
            let least = greatest * scale * (1.0 / (1u64 << 60) as f32);
            inverse[i] = 1.0 / d[i].abs().max(least).copysign(d[i]);
            i += 1;
        }
        let least_error = 16.0 * (ROUNDING * extent.longest + LEAST);
        Self { origin: ray.origin, inverse, least_error, length: 1.0 / scale }
    }

    /// The error bound of planes and hits up to a length, ahead of the origin or behind it.
    #[inline(always)]
    fn error(&self, length: f32) -> f32 {
        ERROR_PER_LENGTH * length + self.least_error
    }

    /// A part of the ray by lengths, given by `t`.
    #[inline(always)]
    pub fn lengths(&self, of: Span) -> Span {
        Span { begin: of.begin * self.length, end: of.end * self.length }
    }

    /// True if a hit at or beyond a length may have this `t` or less.
    #[inline(always)]
    pub fn may_reach(&self, t: f32, length: f32) -> bool {
        // Length per unit along the axis that the ray mostly follows: at most 1, except for directions of subnormal numbers.
        let [x, y, z] = self.inverse;
        let per_unit = x.abs().min(y.abs()).min(z.abs());
        length - self.error(length.abs()) * per_unit <= t * self.length
    }

    /// True if the ray goes up on an axis.
    #[inline(always)]
    pub fn goes_up(&self, axis: u32) -> bool {
        of_axis(self.inverse, axis) > 0.0
    }

    /// The part of the ray, within a span, that may be on both sides of a plane: before it the ray is on the near side, after it on the far side.
    #[inline(always)]
    pub fn crossing(&self, axis: u32, plane: f32, within: Span) -> Span {
        self.widened(axis, plane, self.error(within.begin.abs().max(within.end.abs())))
    }

    #[inline(always)]
    fn widened(&self, axis: u32, plane: f32, error: f32) -> Span {
        let inverse = of_axis(self.inverse, axis);
        let length = (plane - of_axis(self.origin, axis)) * inverse;
        let slack = error * inverse.abs();
        Span { begin: length - slack, end: length + slack }
    }

    /// Where the ray is in the bounding box of the scene, as far as it is asked for there.
    #[inline(always)]
    pub fn within(&self, bounds: Aabb, asked: Span) -> Span {
        let mut farthest = 0.0f32;
        let mut i = 0;
        while i < 3 {
            let (low, high) = (bounds.low[i] - self.origin[i], bounds.high[i] - self.origin[i]);
            farthest = farthest.max(low.abs()).max(high.abs());
            i += 1;
        }
        let error = 16.0 * (ROUNDING * farthest + LEAST);
        let mut span = asked;
        let mut i = 0;
        while i < 3 {
            let [low, high] = [bounds.low, bounds.high].map(|of| self.widened(i, of[i as usize], error));
            let (near, far) = if self.goes_up(i) { (low, high) } else { (high, low) };
            span.begin = span.begin.max(near.begin);
            span.end = span.end.min(far.end);
            i += 1;
        }
        span
    }
}
