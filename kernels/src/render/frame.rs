//! Camera rays, shadow rays and shading of a frame, one thread per pixel.

use super::shading::{FrameParams, V3, byte_entry};
use crate::policy::PER_ITEM_THREADS;
use crate::sah::ray::Ray;
use crate::sah::triangle::{Corners, Hit};
use cuda_std::prelude::*;

/// Writes the camera ray of each pixel.
#[kernel(family = "render", block = PER_ITEM_THREADS)]
pub unsafe fn render_rays(look: Slice<FrameParams>, rays: SliceMut<Ray>) {
    let pixel = thread::index_1d_u64() as usize;
    if pixel < rays.len() {
        rays.store(pixel, look.load(0).ray(pixel as u32));
    }
}

/// The hits of camera rays.
#[derive(Clone, Copy)]
struct Hits<'a> {
    rays: Slice<'a, Ray>,
    corners: Slice<'a, Corners>,
    triangles: Slice<'a, u32>,
    u: Slice<'a, f32>,
    v: Slice<'a, f32>,
}

impl Hits<'_> {
    /// Returns the ray of a pixel, and its hit with the corners of the triangle.
    #[inline(always)]
    unsafe fn at(&self, pixel: usize) -> (Ray, Option<(Hit, [V3; 3])>) {
        let (ray, triangle) = (self.rays.load(pixel), self.triangles.load(pixel));
        if triangle == Hit::NO_TRIANGLE {
            return (ray, None);
        }
        let hit = Hit { triangle, t: 0.0, u: self.u.load(pixel), v: self.v.load(pixel) };
        (ray, Some((hit, self.corners.load(triangle as usize).positions())))
    }
}

/// Writes the ray from each pixel's surface point to the sun. Pixels without a surface point, or on the far side from the
/// sun, get a ray that hits nothing.
#[kernel(family = "render", block = PER_ITEM_THREADS)]
pub unsafe fn render_shadow_rays(
    look: Slice<FrameParams>,
    rays: Slice<Ray>,
    corners: Slice<Corners>,
    triangles: Slice<u32>,
    u: Slice<f32>,
    v: Slice<f32>,
    shadow_rays: SliceMut<Ray>,
) {
    let pixel = thread::index_1d_u64() as usize;
    if pixel < shadow_rays.len() {
        let to_sun = match (Hits { rays, corners, triangles, u, v }).at(pixel) {
            (ray, Some((hit, corners))) => look.load(0).shadow_ray(&ray, &hit, corners),
            (ray, None) => Ray::new(ray.origin, [0.0; 3]),
        };
        shadow_rays.store(pixel, to_sun);
    }
}

/// Writes red, green and blue of each pixel. If `are_hidden` is empty nothing is in shadow.
#[kernel(family = "render", block = PER_ITEM_THREADS)]
pub unsafe fn render_shade(
    look: Slice<FrameParams>,
    bytes: Slice<u8>,
    rays: Slice<Ray>,
    corners: Slice<Corners>,
    triangles: Slice<u32>,
    u: Slice<f32>,
    v: Slice<f32>,
    are_hidden: Slice<u8>,
    pixels: SliceMut<u8>,
) {
    let pixel = thread::index_1d_u64() as usize;
    if pixel >= rays.len() {
        return;
    }
    let params = look.load(0);
    let [red, green, blue] = match (Hits { rays, corners, triangles, u, v }).at(pixel) {
        (ray, Some((hit, corners))) => {
            let is_occluded = !are_hidden.is_empty() && are_hidden.load(pixel) != 0;
            params.reflected_light(&ray, &hit, corners, is_occluded)
        }
        (ray, None) => params.sky(ray.direction),
    };
    pixels.store(3 * pixel, bytes.load(byte_entry(red)));
    pixels.store(3 * pixel + 1, bytes.load(byte_entry(green)));
    pixels.store(3 * pixel + 2, bytes.load(byte_entry(blue)));
}
