//! Sort keys of rays: rays with nearby keys take similar paths through the tree, so that threads of a warp diverge less
//! (Garanzha, Loop 2010: Fast Ray Sorting and Breadth-First Packet Traversal for GPU Ray Tracing).

use super::aabb::Aabb;
use super::extent::Extent;
use super::ray::Ray;
use crate::join::curve::Curve;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Bits of a key: the sign of the direction on each axis, then the Morton code of the origin, then that of the direction.
pub const KEY_BITS: u32 = 3 + 3 * (ORIGIN_BITS + DIRECTION_BITS);

const ORIGIN_BITS: u32 = 5;
const DIRECTION_BITS: u32 = 4;

/// Returns the sort key of a ray in a scene with these bounds. Results do not depend on keys.
#[inline(always)]
pub fn sort_key(ray: &Ray, bounds: Aabb) -> u32 {
    let d = ray.direction;
    let length = d[0].abs() + d[1].abs() + d[2].abs();
    let (mut signs, mut origin, mut direction) = (0, [0; 3], [0; 3]);
    for axis in 0..3 {
        signs |= u32::from(d[axis] < 0.0) << axis;
        let (low, extent) = (bounds.low[axis], bounds.high[axis] - bounds.low[axis]);
        origin[axis] = quantized((ray.origin[axis] - low) / extent, ORIGIN_BITS);
        direction[axis] = quantized(d[axis].abs() / length, DIRECTION_BITS);
    }
    let origin_code = Curve::ZOrder.code(origin, 3, ORIGIN_BITS) as u32;
    let direction_code = Curve::ZOrder.code(direction, 3, DIRECTION_BITS) as u32;
    (signs << (3 * ORIGIN_BITS) | origin_code) << (3 * DIRECTION_BITS) | direction_code
}

/// Quantizes a number from 0 to 1 to `bits` bits. Numbers outside are clamped; a number that is NaN gives 0.
#[inline(always)]
fn quantized(part: f32, bits: u32) -> u32 {
    let num = 1u32 << bits;
    ((part * num as f32) as u32).min(num - 1)
}

/// Writes the sort keys of rays and their ids; one thread per ray.
#[kernel(family = "rays", block = PER_ITEM_THREADS)]
pub unsafe fn rays_keys(
    rays: Slice<Ray>,
    extent: Slice<Extent>,
    keys: SliceMut<u32>,
    numbers: SliceMut<u32>,
) {
    let Some(i) = own_item(rays.len()) else { return };
    keys.store(i, sort_key(&rays.load(i), extent.load(0).bounds));
    numbers.store(i, i as u32);
}
