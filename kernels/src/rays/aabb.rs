//! Axis-aligned bounding boxes.

use crate::plain::plain;
use cuda_std::float::{f32_from_key, f32_to_key};

/// An axis-aligned box, which includes its faces. It is empty if a low coordinate exceeds the high one.
///
/// ```
/// use kauri_kernels::rays::aabb::Aabb;
/// let bounds = Aabb::of_corners([[0.0, 1.0, 2.0], [3.0, 1.0, 0.0], [1.0, 1.0, 1.0]]);
/// assert_eq!(bounds, Aabb { low: [0.0, 1.0, 0.0], high: [3.0, 1.0, 2.0] });
/// assert_eq!(bounds.extents(), [3.0, 0.0, 2.0]);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aabb {
    /// The lowest coordinate on each axis.
    pub low: [f32; 3],
    /// The highest coordinate on each axis.
    pub high: [f32; 3],
}

plain! { Aabb { [f32; 3], [f32; 3] } }

/// A side of a split plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Coordinates up to the plane.
    Below,
    /// Coordinates from the plane on.
    Above,
}

/// Number of keys of a box.
pub const BOX_WORDS: usize = 6;

/// Returns order-preserving keys: the minimum of each key over several boxes is the key of their bounding box. Keys of the
/// high corner are inverted.
#[inline(always)]
pub fn to_keys(bounds: Aabb) -> [u32; BOX_WORDS] {
    let [a, b, c, d, e, f] = bounds.to_words().map(f32_to_key);
    [a, b, c, !d, !e, !f]
}

/// The inverse of [`to_keys`].
#[inline(always)]
pub fn from_keys([a, b, c, d, e, f]: [u32; BOX_WORDS]) -> Aabb {
    Aabb::from_words([a, b, c, !d, !e, !f].map(f32_from_key))
}

/// Returns the component of an axis. Selects it by comparisons: an index that is known only at run time would move the array
/// to local memory.
#[inline(always)]
pub fn component<T: Copy>(values: [T; 3], axis: u32) -> T {
    let [x, y, z] = values;
    if axis == 0 {
        x
    } else if axis == 1 {
        y
    } else {
        z
    }
}

/// Returns the axis of the largest component, the first of equal ones.
#[inline(always)]
pub fn largest_axis(values: [f32; 3]) -> u32 {
    let [x, y, z] = values;
    if x >= y && x >= z {
        0
    } else if y >= z {
        1
    } else {
        2
    }
}

/// Combines the components of each axis.
#[inline(always)]
fn each(of: impl Fn(f32, f32) -> f32, [a, b, c]: [f32; 3], [d, e, f]: [f32; 3]) -> [f32; 3] {
    [of(a, d), of(b, e), of(c, f)]
}

impl Aabb {
    /// The empty box, the neutral element of [`union`](Self::union).
    pub const EMPTY: Self = Self { low: [f32::INFINITY; 3], high: [f32::NEG_INFINITY; 3] };

    /// Returns the box of a point.
    #[inline(always)]
    pub const fn of_point(point: [f32; 3]) -> Self {
        Self { low: point, high: point }
    }

    /// Returns the bounding box of a triangle.
    #[inline(always)]
    pub fn of_corners([a, b, c]: [[f32; 3]; 3]) -> Self {
        Self::of_point(a).union(Self::of_point(b)).union(Self::of_point(c))
    }

    /// Returns the bounding box of both boxes.
    #[inline(always)]
    pub fn union(self, other: Self) -> Self {
        Self { low: each(f32::min, self.low, other.low), high: each(f32::max, self.high, other.high) }
    }

    /// Returns the box that both boxes contain.
    #[inline(always)]
    pub fn intersection(self, other: Self) -> Self {
        Self { low: each(f32::max, self.low, other.low), high: each(f32::min, self.high, other.high) }
    }

    /// True if both boxes contain a point.
    #[inline(always)]
    pub fn intersects(self, other: Self) -> bool {
        !self.intersection(other).is_empty()
    }

    /// Returns the square of the distance of a point, which is 0 in the box.
    #[inline(always)]
    pub fn dist2(self, point: [f32; 3]) -> f32 {
        let below = each(|low, x| low - x, self.low, point);
        let above = each(|x, high| x - high, point, self.high);
        let [x, y, z] = each(|below, above| below.max(above).max(0.0), below, above);
        x * x + y * y + z * z
    }

    /// Returns a lower bound of the square of the distance of a point to anything in the box: [`dist2`](Self::dist2) less than its rounding
    /// errors. It is not less for a box in the box.
    #[inline(always)]
    pub fn near2(self, point: [f32; 3]) -> f32 {
        self.dist2(point) * (1.0 - 16.0 * f32::EPSILON)
    }

    /// True if the box contains no point.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.low[0] > self.high[0] || self.low[1] > self.high[1] || self.low[2] > self.high[2]
    }

    /// Returns the length of each side.
    #[inline(always)]
    pub fn extents(self) -> [f32; 3] {
        each(|low, high| high - low, self.low, self.high)
    }

    /// Splits the box at a plane, and returns the parts below and above it.
    #[inline(always)]
    pub fn split_at(self, axis: u32, plane: f32) -> [Self; 2] {
        let (mut below, mut above) = (self, self);
        for i in 0..3 {
            if axis == i as u32 {
                below.high[i] = plane;
                above.low[i] = plane;
            }
        }
        [below, above]
    }

    /// Returns the six coordinates, the low corner first.
    #[inline(always)]
    pub fn to_words(self) -> [f32; 6] {
        let ([a, b, c], [d, e, f]) = (self.low, self.high);
        [a, b, c, d, e, f]
    }

    /// The inverse of [`to_words`](Self::to_words).
    #[inline(always)]
    pub fn from_words([a, b, c, d, e, f]: [f32; 6]) -> Self {
        Self { low: [a, b, c], high: [d, e, f] }
    }
}
