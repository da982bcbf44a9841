//! Ambient occlusion of a frame: rays around the normal of each surface point, and the light of the sky from those that hit nothing.

use super::frame::{CameraHits, pixel_of};
use super::shading::{FrameParams, V3, plus};
use crate::policy::PER_ITEM_THREADS;
use crate::primitives::generate::splitmix64;
use crate::rays::ray::Ray;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// The steps of the R2 sequence: the inverse, and its square, of the plastic number, the root of x³ = x + 1 (Roberts 2018:
/// The Unreasonable Effectiveness of Quasirandom Sequences).
pub const R2_STEPS: [f64; 2] = [0.754_877_666_246_692_7, 0.569_840_290_998_053_2];

/// Returns a point of the unit square: that of the R2 sequence with this number, from a random point of the pixel on.
#[inline(always)]
pub fn sample_point(seed: u64, pixel: u32, number: u32) -> [f64; 2] {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    let state = splitmix64(seed ^ splitmix64(pixel.into()));
    let [x, y] = [1, 2].map(|i: u64| splitmix64(state.wrapping_add(STEP.wrapping_mul(i))));
    let at = |bits: u64, step: f64| {
        let along = (bits >> 11) as f64 / (1u64 << 53) as f64 + f64::from(number) * step;
        along - f64::from(along as u32)
    };
    [at(x, R2_STEPS[0]), at(y, R2_STEPS[1])]
}

/// Writes one ray from each surface point, that with this number. Rays of the camera without a surface point get a ray that hits nothing.
#[kernel(family = "render", block = PER_ITEM_THREADS)]
pub unsafe fn render_occlusion_rays(
    frame: Slice<FrameParams>,
    hits: CameraHits<'_>,
    number: u32,
    rays: SliceMut<Ray>,
) {
    let Some(i) = own_item(rays.len()) else { return };
    let params = frame.load(0);
    let around = match hits.at(i) {
        (ray, Some((hit, corners))) => {
            let pixel = pixel_of(i as u32, params.width, rays.len() as u32 / params.width);
            params.occlusion_ray(&ray, &hit, corners, sample_point(params.seed(), pixel, number))
        }
        (ray, None) => Ray::new(ray.origin, [0.0; 3]),
    };
    rays.store(i, around);
}

/// Adds the light of the sky along the rays with this number, unless they are occluded. The first ones begin the sum.
#[kernel(family = "render", block = PER_ITEM_THREADS)]
pub unsafe fn render_add_skylight(
    frame: Slice<FrameParams>,
    rays: Slice<Ray>,
    are_occluded: Slice<u8>,
    number: u32,
    skylight: SliceMut<V3>,
) {
    let Some(i) = own_item(rays.len()) else { return };
    let params = frame.load(0);
    let before = if number == 0 { [0.0; 3] } else { skylight.load(i) };
    let part = if are_occluded.load(i) == 0 { 1.0 / params.occlusion_rays as f32 } else { 0.0 };
    skylight.store(i, plus(before, part, params.sky(rays.load(i).direction)));
}
