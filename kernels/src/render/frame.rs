//! Camera rays, shadow rays and shading of a frame, one thread per pixel.

use super::shading::{FrameParams, V3, byte_entry};
use crate::policy::PER_ITEM_THREADS;
use crate::sah::ray::Ray;
use crate::sah::triangle::Hit;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Writes the camera ray of each pixel.
#[kernel(family = "render", block = PER_ITEM_THREADS)]
pub unsafe fn render_rays(frame: Slice<FrameParams>, rays: SliceMut<Ray>) {
    let Some(pixel) = own_item(rays.len()) else { return };
    rays.store(pixel, frame.load(0).ray(pixel as u32));
}

/// The hits of camera rays.
#[derive(Clone, Copy, KernelArgs)]
pub struct CameraHits<'a> {
    /// The camera rays.
    pub rays: Slice<'a, crate::sah::ray::Ray>,
    /// The corners of all triangles.
    pub corners: Slice<'a, crate::sah::triangle::Corners>,
    /// The triangle that each ray hits.
    pub triangles: Slice<'a, u32>,
    /// Barycentric weights of the second corners.
    pub u: Slice<'a, f32>,
    /// Barycentric weights of the third corners.
    pub v: Slice<'a, f32>,
}

impl CameraHits<'_> {
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
    frame: Slice<FrameParams>,
    hits: CameraHits<'_>,
    shadow_rays: SliceMut<Ray>,
) {
    let Some(pixel) = own_item(shadow_rays.len()) else { return };
    let to_sun = match hits.at(pixel) {
        (ray, Some((hit, corners))) => frame.load(0).shadow_ray(&ray, &hit, corners),
        (ray, None) => Ray::new(ray.origin, [0.0; 3]),
    };
    shadow_rays.store(pixel, to_sun);
}

/// Writes red, green and blue of each pixel. If `are_occluded` is empty nothing is in shadow.
#[kernel(family = "render", block = PER_ITEM_THREADS)]
pub unsafe fn render_shade(
    frame: Slice<FrameParams>,
    bytes: Slice<u8>,
    hits: CameraHits<'_>,
    are_occluded: Slice<u8>,
    pixels: SliceMut<u8>,
) {
    let Some(pixel) = own_item(hits.rays.len()) else { return };
    let params = frame.load(0);
    let [red, green, blue] = match hits.at(pixel) {
        (ray, Some((hit, corners))) => {
            let is_occluded = !are_occluded.is_empty() && are_occluded.load(pixel) != 0;
            params.reflected_light(&ray, &hit, corners, is_occluded)
        }
        (ray, None) => params.sky(ray.direction),
    };
    pixels.store(3 * pixel, bytes.load(byte_entry(red)));
    pixels.store(3 * pixel + 1, bytes.load(byte_entry(green)));
    pixels.store(3 * pixel + 2, bytes.load(byte_entry(blue)));
}
