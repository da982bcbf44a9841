//! The order of triangles along a space-filling curve.

use crate::join::curve::Curve;
use crate::policy::{BVH_AXIS_BITS, PER_ITEM_THREADS};
use crate::rays::aabb::Aabb;
use crate::rays::extent::Extent;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Bits of a code.
pub const CODE_BITS: u32 = 3 * BVH_AXIS_BITS;

/// Returns the position of the center of a box on the Z-order curve through a grid over `bounds`.
#[inline(always)]
pub fn code(of: Aabb, bounds: Aabb) -> u64 {
    let mut cell = [0; 3];
    for axis in 0..3 {
        let (low, extent) = (bounds.low[axis], bounds.high[axis] - bounds.low[axis]);
        // Halves, so that the sum does not overflow.
        let center = 0.5 * of.low[axis] + 0.5 * of.high[axis];
        // The conversion gives 0 for NaN, of an axis without an extent.
        let number = ((center - low) / extent * (1u32 << BVH_AXIS_BITS) as f32) as u32;
        cell[axis] = number.min((1 << BVH_AXIS_BITS) - 1);
    }
    Curve::ZOrder.code(cell, 3, BVH_AXIS_BITS)
}

/// Writes the codes of boxes and their numbers, given the keys of the extent; one thread per box.
#[kernel(family = "bvh", block = PER_ITEM_THREADS)]
pub unsafe fn bvh_codes(boxes: Slice<Aabb>, found: Slice<u32>, codes: SliceMut<u64>, numbers: SliceMut<u32>) {
    let Some(i) = own_item(boxes.len()) else { return };
    codes.store(i, code(boxes.load(i), Extent::found(found).bounds));
    numbers.store(i, i as u32);
}
