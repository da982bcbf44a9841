//! The items of leaves: triangles and boxes, with ids.

use super::distance::{distance2, nearest_on_triangle};
use crate::plain::plain;
use crate::rays::aabb::Aabb;
use crate::rays::triangle::Corners;

/// An item of a leaf.
pub trait Leaf: bytemuck::Pod + cust_core::DeviceCopy + Send + Sync {
    /// The id of the item.
    fn id(self) -> u32;
    /// The bounding box of the item.
    fn bounds(self) -> Aabb;
    /// The square of the distance of a point to the item. It is at least [`Aabb::near2`] of every box around the item.
    fn dist2(self, point: [f32; 3]) -> f32;
}

/// A triangle of a leaf: its corners, of 12 bytes each, and its id behind the first one.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafTriangle([[u32; 4]; 3]);

plain! { LeafTriangle { [[u32; 4]; 3] } }

impl LeafTriangle {
    /// Packs a triangle.
    #[inline(always)]
    pub fn new(id: u32, corners: Corners) -> Self {
        let mut words = corners.positions().map(|[x, y, z]| [x.to_bits(), y.to_bits(), z.to_bits(), 0]);
        words[0][3] = id;
        Self(words)
    }

    /// The corners of the triangle.
    #[inline(always)]
    pub fn corners(self) -> [[f32; 3]; 3] {
        self.0.map(|[x, y, z, _]| [f32::from_bits(x), f32::from_bits(y), f32::from_bits(z)])
    }
}

impl Leaf for LeafTriangle {
    #[inline(always)]
    fn id(self) -> u32 {
        self.0[0][3]
    }

    #[inline(always)]
    fn bounds(self) -> Aabb {
        Aabb::of_corners(self.corners())
    }

    #[inline(always)]
    fn dist2(self, point: [f32; 3]) -> f32 {
        let point64 = point.map(f64::from);
        let exact = distance2(point64, nearest_on_triangle(point64, self.corners()));
        (exact as f32).max(self.bounds().near2(point))
    }
}

/// A box of a leaf, with its id.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeafBox {
    low: [f32; 3],
    id: u32,
    high: [f32; 3],
    unused: u32,
}

plain! { LeafBox { [f32; 3], u32, [f32; 3], u32 } }

impl LeafBox {
    /// Packs a box. Turns -0 into 0, so that equal boxes have equal bits.
    #[inline(always)]
    pub fn new(id: u32, of: Aabb) -> Self {
        let [low, high] = [of.low, of.high].map(|corner| corner.map(|x| x + 0.0));
        Self { low, id, high, unused: 0 }
    }
}

impl Leaf for LeafBox {
    #[inline(always)]
    fn id(self) -> u32 {
        self.id
    }

    #[inline(always)]
    fn bounds(self) -> Aabb {
        Aabb { low: self.low, high: self.high }
    }

    #[inline(always)]
    fn dist2(self, point: [f32; 3]) -> f32 {
        self.bounds().dist2(point)
    }
}
