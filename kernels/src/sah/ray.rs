//! Rays, and their crossings with split planes.

use super::aabb::{Aabb, component, largest_axis};
use super::extent::Extent;
use crate::plain::plain;

/// A ray: the points `origin + t * direction` with `t_min <= t <= t_max`. The direction need not be normalized. Only a
/// finite `t` is a hit, and a bound that is NaN excludes every hit.
///
/// ```
/// use kauri_kernels::sah::ray::Ray;
/// let ray = Ray { t_max: 10.0, ..Ray::new([0.0, 0.0, -1.0], [0.0, 0.0, 2.0]) };
/// let hit = ray.hit(7, [[-1.0, -1.0, 1.0], [3.0, -1.0, 1.0], [-1.0, 3.0, 1.0]]);
/// assert_eq!(hit.map(|hit| (hit.triangle, hit.t)), Some((7, 1.0)));
/// ```
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ray {
    /// The origin.
    pub origin: [f32; 3],
    /// Lower bound of `t`; may be infinite.
    pub t_min: f32,
    /// The direction, the unit of `t`.
    pub direction: [f32; 3],
    /// Upper bound of `t`; may be infinite.
    pub t_max: f32,
}

plain! { Ray { [f32; 3], f32, [f32; 3], f32 } }

impl Ray {
    /// A ray from `origin` with `t` from 0 to infinity.
    #[inline(always)]
    pub const fn new(origin: [f32; 3], direction: [f32; 3]) -> Self {
        Self { origin, t_min: 0.0, direction, t_max: f32::INFINITY }
    }

    /// Returns the bounds of `t`.
    #[inline(always)]
    pub const fn t_range(&self) -> Interval {
        Interval { begin: self.t_min, end: self.t_max }
    }

    /// True if all coordinates are finite and the direction is not zero. Other rays hit nothing.
    #[inline(always)]
    pub fn is_valid(&self) -> bool {
        let ([a, b, c], [d, e, f]) = (self.origin, self.direction);
        let are_numbers = a.is_finite() && b.is_finite() && c.is_finite() && d.is_finite();
        are_numbers && e.is_finite() && f.is_finite() && (d != 0.0 || e != 0.0 || f != 0.0)
    }
}

/// An interval along a ray, in units of `t` or of length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Start.
    pub begin: f32,
    /// End.
    pub end: f32,
}

/// Rounding error of a number from 1 to 2, and of a number near 0.
const ROUNDING: f32 = f32::EPSILON / 2.0;
const LEAST: f32 = f32::from_bits(1);

/// Returns the power of two that scales a non-negative number into [1, 2), or as near as a finite factor can.
#[inline(always)]
pub fn to_one(greatest: f32) -> f32 {
    let exponent = (greatest.to_bits() >> 23).min(253);
    f32::from_bits((254 - exponent) << 23)
}

/// A ray prepared for plane tests: inverse direction, scaled to a length of about 1, so that distances along the ray are
/// lengths.
///
/// Every plane is widened by the error of a hit. Translating and shearing the corners of a triangle
/// ([`ShearedRay`](super::triangle::ShearedRay)) moves them by less than 7 rounding errors of the largest distance, on one
/// axis, between the ray's origin and a corner; the later steps are exact enough. That distance is at most the distance to
/// the hit plus the longest side of a triangle: a far outlier does not widen the planes near the origin. With 16 rounding
/// errors of that sum on each side of a plane, traversal reaches every leaf that holds the part of the triangle that the ray
/// hits.
#[derive(Clone, Copy)]
pub struct PlaneRay {
    origin: [f32; 3],
    inverse: [f32; 3],
    /// The error bound of planes and hits at the origin.
    least_error: f32,
    /// Length per unit of `t`: a power of two.
    length: f32,
}

/// Growth of the error bound per length along the ray. A length of 1 is less than 2 on an axis.
const ERROR_PER_LENGTH: f32 = 2.0 * 16.0 * ROUNDING;

impl PlaneRay {
    /// Prepares a valid ray, for a scene of this extent.
    #[inline(always)]
    pub fn new(ray: &Ray, extent: Extent) -> Self {
        let mut d = ray.direction;
        let greatest = component(d, largest_axis([d[0].abs(), d[1].abs(), d[2].abs()])).abs();
        let scale = to_one(greatest);
        let mut inverse = [0.0; 3];
        for i in 0..3 {
            d[i] *= scale;
            // A ray that moves less across an axis stays within the error of a plane: no inverse needs to be infinite.
            let least = greatest * scale * (1.0 / (1u64 << 60) as f32);
            inverse[i] = 1.0 / d[i].abs().max(least).copysign(d[i]);
        }
        let least_error = 16.0 * (ROUNDING * extent.longest + LEAST);
        Self { origin: ray.origin, inverse, least_error, length: 1.0 / scale }
    }

    /// The error bound of planes and hits up to a length, ahead of the origin or behind it.
    #[inline(always)]
    fn error(&self, length: f32) -> f32 {
        ERROR_PER_LENGTH * length + self.least_error
    }

    /// Converts an interval of `t` to lengths.
    #[inline(always)]
    pub fn lengths(&self, of: Interval) -> Interval {
        Interval { begin: of.begin * self.length, end: of.end * self.length }
    }

    /// True if a hit at or beyond a length may have this `t` or less.
    #[inline(always)]
    pub fn may_reach(&self, t: f32, length: f32) -> bool {
        // Length per unit along the axis that the ray mostly follows: at most 1, except for directions of subnormal numbers.
        let [x, y, z] = self.inverse;
        let per_unit = x.abs().min(y.abs()).min(z.abs());
        length - self.error(length.abs()) * per_unit <= t * self.length
    }

    /// True if the ray goes in the positive direction of an axis.
    #[inline(always)]
    pub fn goes_up(&self, axis: u32) -> bool {
        component(self.inverse, axis) > 0.0
    }

    /// The part of the ray, within an interval, that may be on both sides of a plane: before it the ray is on the near side,
    /// after it on the far side.
    #[inline(always)]
    pub fn crossing(&self, axis: u32, plane: f32, within: Interval) -> Interval {
        self.widened(axis, plane, self.error(within.begin.abs().max(within.end.abs())))
    }

    #[inline(always)]
    fn widened(&self, axis: u32, plane: f32, error: f32) -> Interval {
        let inverse = component(self.inverse, axis);
        let length = (plane - component(self.origin, axis)) * inverse;
        let slack = error * inverse.abs();
        Interval { begin: length - slack, end: length + slack }
    }

    /// Clips the interval `t_range` (in lengths) to the bounding box of the scene.
    #[inline(always)]
    pub fn clip_to(&self, bounds: Aabb, t_range: Interval) -> Interval {
        let mut farthest = 0.0f32;
        for i in 0..3 {
            let (low, high) = (bounds.low[i] - self.origin[i], bounds.high[i] - self.origin[i]);
            farthest = farthest.max(low.abs()).max(high.abs());
        }
        let error = 16.0 * (ROUNDING * farthest + LEAST);
        let mut interval = t_range;
        for i in 0..3 {
            let [low, high] = [bounds.low, bounds.high].map(|of| self.widened(i, of[i as usize], error));
            let (near, far) = if self.goes_up(i) { (low, high) } else { (high, low) };
            interval.begin = interval.begin.max(near.begin);
            interval.end = interval.end.min(far.end);
        }
        interval
    }
}
