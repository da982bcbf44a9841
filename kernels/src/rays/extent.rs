//! The extent of a scene: the bounding box of all triangles, and the longest side of one. Rays derive their error bounds from it.

use super::aabb::{Aabb, BOX_WORDS, component, from_keys, largest_axis, to_keys};
use crate::plain::plain;
use cuda_std::float::{f32_from_key, f32_to_key};
use cuda_std::mem::Slice;

/// The extent of the triangles of a tree.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// The bounding box of all triangles.
    pub bounds: Aabb,
    /// The longest side of the bounding box of any single triangle.
    pub longest: f32,
}

plain! { Extent { Aabb, f32 } }

/// Words of an extent as keys.
pub const EXTENT_WORDS: usize = BOX_WORDS + 1;

impl Extent {
    /// The extent of no triangles, the neutral element of [`union`](Self::union).
    pub const EMPTY: Self = Self { bounds: Aabb::EMPTY, longest: 0.0 };

    /// The extent that a tree without triangles reports.
    pub const ZERO: Self = Self { bounds: Aabb { low: [0.0; 3], high: [0.0; 3] }, longest: 0.0 };

    /// The extent of one triangle, given its bounding box.
    #[inline(always)]
    pub fn of(bounds: Aabb) -> Self {
        let sides = bounds.extents();
        Self { bounds, longest: component(sides, largest_axis(sides)).max(0.0) }
    }

    /// The extent of both sets of triangles.
    #[inline(always)]
    pub fn union(self, other: Self) -> Self {
        Self { bounds: self.bounds.union(other.bounds), longest: self.longest.max(other.longest) }
    }

    /// Order-preserving keys: the minimum of each key over several extents is the key of their common extent.
    #[inline(always)]
    pub(crate) fn to_keys(self) -> [u32; EXTENT_WORDS] {
        let [a, b, c, d, e, f] = to_keys(self.bounds);
        [a, b, c, d, e, f, !f32_to_key(self.longest)]
    }

    /// Returns the extent of these keys.
    ///
    /// # Safety
    /// There are [`EXTENT_WORDS`].
    #[inline(always)]
    pub unsafe fn found(keys: Slice<'_, u32>) -> Self {
        Self::from_keys([0, 1, 2, 3, 4, 5, 6].map(|i| keys.load(i)))
    }

    /// The inverse of `to_keys`.
    #[inline(always)]
    pub fn from_keys([a, b, c, d, e, f, longest]: [u32; EXTENT_WORDS]) -> Self {
        Self { bounds: from_keys([a, b, c, d, e, f]), longest: f32_from_key(!longest) }
    }
}
