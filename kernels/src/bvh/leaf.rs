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

/// A triangle of a leaf: for each axis the coordinates of its corners, and its id.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafTriangle([[u32; 4]; 3]);

plain! { LeafTriangle { [[u32; 4]; 3] } }

impl LeafTriangle {
    /// Packs a triangle.
    #[inline(always)]
    pub fn new(id: u32, corners: Corners) -> Self {
        let [a, b, c] = corners.positions();
        Self([0, 1, 2].map(|axis: usize| [a[axis].to_bits(), b[axis].to_bits(), c[axis].to_bits(), id]))
    }

    /// Returns the coordinates that a [part](super::scene::Scene::part) of a triangle has, and the id.
    #[inline(always)]
    pub fn unpacked([a, b, c, id]: [u32; 4]) -> ([f32; 3], u32) {
        ([f32::from_bits(a), f32::from_bits(b), f32::from_bits(c)], id)
    }

    /// The corners of the triangle.
    #[inline(always)]
    pub fn corners(self) -> [[f32; 3]; 3] {
        let [x, y, z] = self.0.map(|part| Self::unpacked(part).0);
        [[x[0], y[0], z[0]], [x[1], y[1], z[1]], [x[2], y[2], z[2]]]
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
