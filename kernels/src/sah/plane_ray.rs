//! Crossings of rays with split planes.

use crate::rays::aabb::{Aabb, component};
use crate::rays::extent::Extent;
use crate::rays::ray::{Interval, ROUNDING, Ray, error_at, length, scaled_inverse};

/// A ray prepared for plane tests: inverse direction, scaled to a length of about 1, so that distances along the ray are
/// lengths.
///
/// Every plane is widened by the error of a hit. Translating and shearing the corners of a triangle
/// ([`ShearedRay`](crate::rays::triangle::ShearedRay)) moves them by less than 7 rounding errors of the largest distance, on one
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
    /// No ray.
    pub const NONE: Self = Self { origin: [0.0; 3], inverse: [0.0; 3], least_error: 0.0, length: 0.0 };

    /// Prepares a valid ray, for a scene of this extent.
    #[inline(always)]
    pub fn new(ray: &Ray, extent: Extent) -> Self {
        let least_error = error_at(extent.longest);
        Self {
            origin: ray.origin,
            inverse: scaled_inverse(ray.direction),
            least_error,
            length: length(ray.direction),
        }
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
        let error = error_at(farthest);
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
