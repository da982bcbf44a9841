//! Rays against boxes.

use crate::rays::aabb::Aabb;
use crate::rays::extent::Extent;
use crate::rays::ray::{ROUNDING, Ray, error_at, length, scaled_inverse};
use cuda_std::float::multiply_add;

/// A ray prepared for tests of boxes: one multiplication and addition for each plane (Kay, Kajiya 1986: Ray Tracing Complex Scenes).
///
/// Lengths along the ray count from where its hits begin to count, so that those of interest are not negative: then floats have the order of
/// their bits, and integers are compared, three in one instruction where a GPU can. Of numbers that have different signs the integers have the
/// same order, and of two negative ones the order does not matter.
///
/// Boxes are widened by the error of a hit, as the planes of [`PlaneRay`](crate::sah::plane_ray::PlaneRay): here by 16 rounding errors of the largest
/// distance, on one axis, between the ray's origin and a corner of a triangle. A hit takes 7 of them. A plane's length is rounded four times,
/// relative to this distance, and four times more, relative to the origin's largest coordinate, which is added; four times relative to the length
/// at which hits begin to count, which is subtracted.
#[derive(Clone, Copy)]
pub struct SlabRay {
    inverse: [f32; 3],
    /// The length of the ray at coordinate 0 of a plane that it meets first, and at that of the opposite one, on each axis.
    first: [f32; 3],
    last: [f32; 3],
    /// The length, from the ray's origin, at which hits begin to count.
    begin: f32,
    /// The length up to which hits count.
    end: f32,
}

impl SlabRay {
    /// No ray.
    pub const NONE: Self =
        Self { inverse: [0.0; 3], first: [0.0; 3], last: [0.0; 3], begin: 0.0, end: f32::NEG_INFINITY };

    /// Prepares a valid ray for a scene of this extent.
    #[inline(always)]
    pub fn new(ray: &Ray, extent: Extent) -> Self {
        let (origin, inverse) = (ray.origin, scaled_inverse(ray.direction));
        let Aabb { low, high } = extent.bounds;
        let (mut farthest, mut greatest) = (0.0f32, 0.0f32);
        for i in 0..3 {
            farthest = farthest.max((low[i] - origin[i]).abs()).max((high[i] - origin[i]).abs());
            greatest = greatest.max(origin[i].abs());
        }
        // No hit is farther away, on the axis along which the ray moves most.
        let most = farthest * inverse[0].abs().min(inverse[1].abs()).min(inverse[2].abs());
        let begin = (ray.t_min * length(ray.direction)).max(-2.0 * most);
        let mut slab_ray = Self { inverse, first: [0.0; 3], last: [0.0; 3], begin, end: f32::INFINITY };
        let error = error_at(farthest) + 6.0 * ROUNDING * greatest;
        let error_at_begin = 8.0 * ROUNDING * begin.abs();
        for i in 0..3 {
            let slack = multiply_add(error, inverse[i].abs(), error_at_begin);
            let length = -origin[i] * inverse[i] - begin;
            (slab_ray.first[i], slab_ray.last[i]) = (length - slack, length + slack);
        }
        let sum = |of: [f32; 3]| of[0].abs() + of[1].abs() + of[2].abs();
        if !(sum(slab_ray.first) + sum(slab_ray.last)).is_finite() {
            slab_ray.limit_lengths();
        }
        slab_ray.limit(ray, ray.t_max);
        slab_ray
    }

    /// On an axis where the ray is so far away that it may be anywhere, replaces lengths that are not finite. Products are then less than 4, but
    /// infinite for an empty box.
    #[inline(always)]
    fn limit_lengths(&mut self) {
        for i in 0..3 {
            if !(self.first[i].is_finite() && self.last[i].is_finite()) {
                (self.inverse[i], self.first[i], self.last[i]) = (f32::MIN_POSITIVE, f32::MIN, f32::MAX);
            }
        }
    }

    /// Returns for each of some boxes the length at which the ray enters it, infinity if it misses it, as it does empty boxes. `plane` returns the low
    /// coordinates of the boxes on an axis, or with a second argument of 1 the high ones.
    #[inline(always)]
    pub fn enters<const N: usize>(&self, plane: impl Fn(usize, usize) -> [f32; N]) -> [f32; N] {
        let on_axis = |axis: usize| {
            let inverse = self.inverse[axis];
            // The ray meets the high plane first if it goes down.
            let side = (inverse.to_bits() >> 31) as usize;
            let lengths = |side: usize, from: f32| {
                plane(axis, side).map(|at| multiply_add(at, inverse, from).to_bits() as i32)
            };
            (lengths(side, self.first[axis]), lengths(1 - side, self.last[axis]))
        };
        let [(x_first, x_last), (y_first, y_last), (z_first, z_last)] = [on_axis(0), on_axis(1), on_axis(2)];
        let mut near = [f32::INFINITY; N];
        for i in 0..N {
            let begin = x_first[i].max(y_first[i]).max(z_first[i]).max(0);
            let end = x_last[i].min(y_last[i]).min(z_last[i]).min(self.end.to_bits() as i32);
            if begin <= end {
                near[i] = f32::from_bits(begin as u32);
            }
        }
        near
    }

    /// True if no more hits count. Bounds that are not numbers exclude every hit.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        let is_some = self.end >= 0.0;
        !is_some
    }

    /// The length up to which hits count.
    #[inline(always)]
    pub const fn end(&self) -> f32 {
        self.end
    }

    /// Hits of the ray count up to this `t`.
    #[inline(always)]
    pub fn limit(&mut self, ray: &Ray, t: f32) {
        let end = t * length(ray.direction) - self.begin;
        self.end = self.end.min(end + f32::EPSILON * end);
    }
}
