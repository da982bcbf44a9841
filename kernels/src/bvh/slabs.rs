//! Rays against boxes.

use crate::rays::aabb::Aabb;
use crate::rays::extent::Extent;
use crate::rays::ray::{Interval, ROUNDING, Ray, error_at, length, scaled_inverse};
use cuda_std::float::multiply_add;

/// A ray prepared for tests of boxes: one multiplication and addition for each plane (Kay, Kajiya 1986: Ray Tracing Complex Scenes).
///
/// Boxes are widened by the error of a hit, as the planes of [`PlaneRay`](crate::sah::plane_ray::PlaneRay): here by 16 rounding errors of the largest
/// distance, on one axis, between the ray's origin and a corner of a triangle. A hit takes 7 of them. A plane's length is rounded three times,
/// relative to this distance, and three times more, relative to the origin's coordinate, which is added.
#[derive(Clone, Copy)]
pub struct SlabRay {
    inverse: [f32; 3],
    /// The length of the ray at a low coordinate 0, and at a high one, on each axis.
    low: [f32; 3],
    high: [f32; 3],
    /// The part of the ray with hits that count, as lengths.
    range: Interval,
}

impl SlabRay {
    /// No ray.
    pub const NONE: Self =
        Self { inverse: [0.0; 3], low: [0.0; 3], high: [0.0; 3], range: Interval { begin: 0.0, end: 0.0 } };

    /// Prepares a valid ray, for a scene of this extent.
    #[inline(always)]
    pub fn new(ray: &Ray, extent: Extent) -> Self {
        let (inverse, length) = (scaled_inverse(ray.direction), length(ray.direction));
        let bounds = extent.bounds;
        let mut farthest = 0.0f32;
        for i in 0..3 {
            let origin = ray.origin[i];
            farthest = farthest.max((bounds.low[i] - origin).abs()).max((bounds.high[i] - origin).abs());
        }
        let range = Interval { begin: ray.t_min * length, end: ray.t_max * length };
        let mut slab_ray = Self { inverse, low: [0.0; 3], high: [0.0; 3], range };
        for i in 0..3 {
            let (origin, inverse) = (ray.origin[i], inverse[i]);
            let slack = (error_at(farthest) + 4.0 * ROUNDING * origin.abs()) * inverse;
            (slab_ray.low[i], slab_ray.high[i]) = (-origin * inverse - slack, -origin * inverse + slack);
            if !(slab_ray.low[i].is_finite() && slab_ray.high[i].is_finite()) {
                // So far away that the ray may be anywhere on this axis.
                (slab_ray.inverse[i], slab_ray.low[i], slab_ray.high[i]) =
                    (0.0, f32::NEG_INFINITY, f32::INFINITY);
            }
        }
        slab_ray
    }

    /// Returns the length at which the ray enters a box, unless it misses it.
    #[inline(always)]
    pub fn enters(&self, of: Aabb) -> Option<f32> {
        let Interval { mut begin, mut end } = self.range;
        for i in 0..3 {
            let low = multiply_add(of.low[i], self.inverse[i], self.low[i]);
            let high = multiply_add(of.high[i], self.inverse[i], self.high[i]);
            begin = begin.max(low.min(high));
            end = end.min(low.max(high));
        }
        (begin <= end).then_some(begin)
    }

    /// True if no more hits count.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.range.end < self.range.begin
    }

    /// The length up to which hits count.
    #[inline(always)]
    pub const fn end(&self) -> f32 {
        self.range.end
    }

    /// Hits of the ray count up to this `t`.
    #[inline(always)]
    pub fn limit(&mut self, ray: &Ray, t: f32) {
        self.range.end = self.range.end.min(t * length(ray.direction));
    }
}
