//! What rays have to know of all triangles of a tree together.

use super::aabb::{Aabb, greatest_axis, of_axis};
use super::chunks::{BOX_WORDS, from_keys, to_keys};
use crate::plain::plain;
use cuda_std::float::{f32_from_key, f32_to_key};

/// How far the triangles of a tree extend: all together, and one alone.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// The box around all.
    pub bounds: Aabb,
    /// The longest side of the box of one.
    pub longest: f32,
}

plain! { Extent { Aabb, f32 } }

/// Numbers of an extent.
pub const EXTENT_WORDS: usize = BOX_WORDS + 1;

impl Extent {
    /// Of no triangles: every other one is around it.
    pub const EMPTY: Self = Self { bounds: Aabb::EMPTY, longest: 0.0 };

    /// Of a tree without triangles.
    pub const ZERO: Self = Self { bounds: Aabb { low: [0.0; 3], high: [0.0; 3] }, longest: 0.0 };

    /// Of the triangle with a box.
    #[inline(always)]
    pub fn of(bounds: Aabb) -> Self {
        let sides = bounds.extents();
        Self { bounds, longest: of_axis(sides, greatest_axis(sides)).max(0.0) }
    }

    /// The extent of both.
    #[inline(always)]
    pub fn around(self, other: Self) -> Self {
        Self { bounds: self.bounds.around(other.bounds), longest: self.longest.max(other.longest) }
    }

    /// Keys, the least of which are those of the extent of several.
    #[inline(always)]
    pub(super) fn to_keys(self) -> [u32; EXTENT_WORDS] {
        let [a, b, c, d, e, f] = to_keys(self.bounds);
        [a, b, c, d, e, f, !f32_to_key(self.longest)]
    }

    /// The extent of keys.
    #[inline(always)]
    pub fn from_keys([a, b, c, d, e, f, longest]: [u32; EXTENT_WORDS]) -> Self {
        Self { bounds: from_keys([a, b, c, d, e, f]), longest: f32_from_key(!longest) }
    }
}
