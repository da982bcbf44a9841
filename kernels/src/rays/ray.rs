//! Rays.

use crate::plain::plain;
use cuda_std::float::approximate_inverse;

/// A ray: the points `origin + t * direction` with `t_min <= t <= t_max`. The direction need not be normalized. Only a
/// finite `t` is a hit, and a bound that is NaN excludes every hit.
///
/// ```
/// use kauri_kernels::rays::ray::Ray;
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

impl Interval {
    /// From 0 to 0.
    pub const ZERO: Self = Self { begin: 0.0, end: 0.0 };
}

/// Rounding error of a number from 1 to 2, and of a number near 0.
pub(crate) const ROUNDING: f32 = f32::EPSILON / 2.0;
const LEAST: f32 = f32::from_bits(1);

/// Returns the exponent of a non-negative number's bits, or the nearest one of which twice the inverse of the power of two is finite and normal.
#[inline(always)]
fn exponent(x: f32) -> u32 {
    (x.to_bits() >> 23).clamp(1, 253)
}

/// Returns the power of two that scales a non-negative number into [1, 2), or as near as a finite factor can.
#[inline(always)]
pub fn to_one(greatest: f32) -> f32 {
    f32::from_bits((254 - exponent(greatest)) << 23)
}

/// Returns the length per unit of `t`: a power of two.
#[inline(always)]
pub(crate) fn length(direction: [f32; 3]) -> f32 {
    f32::from_bits(exponent(greatest(direction)) << 23)
}

/// Returns the largest component of a direction, without its sign.
#[inline(always)]
fn greatest([x, y, z]: [f32; 3]) -> f32 {
    x.abs().max(y.abs()).max(z.abs())
}

/// Returns the inverse of a direction scaled to a length of about 1. On a GPU it may be off by one unit in the last place.
#[inline(always)]
pub(crate) fn scaled_inverse(direction: [f32; 3]) -> [f32; 3] {
    let greatest = greatest(direction);
    let scale = to_one(greatest);
    // A ray that moves less across an axis stays within the error of a plane: no inverse needs to be infinite.
    let least = greatest * scale * (1.0 / (1u64 << 60) as f32);
    direction.map(|x| approximate_inverse((x * scale).abs().max(least).copysign(x)))
}

/// Returns the error of planes and hits whose distance from the origin is up to this, on each axis.
#[inline(always)]
pub(crate) fn error_at(farthest: f32) -> f32 {
    16.0 * (ROUNDING * farthest + LEAST)
}
