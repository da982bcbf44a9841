//! Rays against boxes.

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
    /// The length of the ray at coordinate 0 of a plane that it meets first, and at that of the opposite one, on each axis.
    first: [f32; 3],
    last: [f32; 3],
    /// The part of the ray with hits that count, as lengths.
    range: Interval,
}

impl SlabRay {
    /// No ray.
    pub const NONE: Self = Self { inverse: [0.0; 3], first: [0.0; 3], last: [0.0; 3], range: Interval::ZERO };

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
        let mut slab_ray = Self { inverse, first: [0.0; 3], last: [0.0; 3], range };
        for i in 0..3 {
            let (origin, inverse) = (ray.origin[i], inverse[i]);
            let slack = (error_at(farthest) + 4.0 * ROUNDING * origin.abs()) * inverse.abs();
            (slab_ray.first[i], slab_ray.last[i]) = (-origin * inverse - slack, -origin * inverse + slack);
            if !(slab_ray.first[i].is_finite() && slab_ray.last[i].is_finite()) {
                // So far away that the ray may be anywhere on this axis. Products are then less than 4, but infinite for an empty box.
                (slab_ray.inverse[i], slab_ray.first[i], slab_ray.last[i]) =
                    (f32::MIN_POSITIVE, f32::MIN, f32::MAX);
            }
        }
        slab_ray
    }

    /// Returns for each of some boxes the length at which the ray enters it, infinity if it misses it, as it does empty boxes. `plane` returns the low
    /// coordinates of the boxes on an axis, or with a second argument of 1 the high ones.
    #[inline(always)]
    pub fn enters<const N: usize>(&self, plane: impl Fn(usize, usize) -> [f32; N]) -> [f32; N] {
        let (mut begin, mut end) = ([self.range.begin; N], [self.range.end; N]);
        for axis in 0..3 {
            let inverse = self.inverse[axis];
            // The ray meets the high plane first if it goes down.
            let side = (inverse.to_bits() >> 31) as usize;
            let (first, last) = (plane(axis, side), plane(axis, 1 - side));
            for i in 0..N {
                begin[i] = begin[i].max(multiply_add(first[i], inverse, self.first[axis]));
                end[i] = end[i].min(multiply_add(last[i], inverse, self.last[axis]));
            }
        }
        for i in 0..N {
            // Bounds that are not numbers exclude every hit.
            let is_entered = begin[i] <= end[i];
            begin[i] = if is_entered { begin[i] } else { f32::INFINITY };
        }
        begin
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
