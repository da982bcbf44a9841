//! The parts of a frame beside what rays hit, a thread a pixel.

use super::look::{Look, V3, entry};
use crate::policy::PER_ITEM_THREADS;
use crate::sah::ray::Ray;
use crate::sah::triangle::{Corners, Hit};
use cuda_std::prelude::*;

/// Writes the ray of each pixel.
#[kernel(family = "render", block = PER_ITEM_THREADS)]
pub unsafe fn render_rays(look: Slice<Look>, rays: SliceMut<Ray>) {
    let pixel = thread::index_1d_u64() as usize;
    if pixel < rays.len() {
        rays.store(pixel, look.load(0).ray(pixel as u32));
    }
}

/// What rays have hit.
#[derive(Clone, Copy)]
struct Hits<'a> {
    rays: Slice<'a, Ray>,
    corners: Slice<'a, Corners>,
    triangles: Slice<'a, u32>,
    u: Slice<'a, f32>,
    v: Slice<'a, f32>,
}

impl Hits<'_> {
    /// The hit of a pixel, if there is one, with its ray and the corners of the triangle.
    #[inline(always)]
    unsafe fn of(&self, pixel: usize) -> (Ray, Option<(Hit, [V3; 3])>) {
        let (ray, triangle) = (self.rays.load(pixel), self.triangles.load(pixel));
        if triangle == Hit::NO_TRIANGLE {
            return (ray, None);
        }
        let hit = Hit { triangle, t: 0.0, u: self.u.load(pixel), v: self.v.load(pixel) };
        (ray, Some((hit, self.corners.load(triangle as usize).positions())))
    }
}

/// Writes the ray to the sun from what each pixel shows; where there is nothing, or no sun, one that hits nothing.
#[kernel(family = "render", block = PER_ITEM_THREADS)]
pub unsafe fn render_shadow_rays(
    look: Slice<Look>,
    rays: Slice<Ray>,
    corners: Slice<Corners>,
    triangles: Slice<u32>,
    u: Slice<f32>,
    v: Slice<f32>,
    shadow_rays: SliceMut<Ray>,
) {
    let pixel = thread::index_1d_u64() as usize;
    if pixel < shadow_rays.len() {
        let to_sun = match (Hits { rays, corners, triangles, u, v }).of(pixel) {
            (ray, Some((hit, corners))) => look.load(0).shadow_ray(&ray, &hit, corners),
            (ray, None) => Ray::new(ray.origin, [0.0; 3]),
        };
        shadow_rays.store(pixel, to_sun);
    }
}

/// Writes the bytes of each pixel, red, green and blue. Without shadows nothing is hidden.
#[kernel(family = "render", block = PER_ITEM_THREADS)]
pub unsafe fn render_shade(
    look: Slice<Look>,
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
    let look = look.load(0);
    let [red, green, blue] = match (Hits { rays, corners, triangles, u, v }).of(pixel) {
        (ray, Some((hit, corners))) => {
            let is_hidden = !are_hidden.is_empty() && are_hidden.load(pixel) != 0;
            look.light_of(&ray, &hit, corners, is_hidden)
        }
        (ray, None) => look.sky(ray.direction),
    };
    pixels.store(3 * pixel, bytes.load(entry(red)));
    pixels.store(3 * pixel + 1, bytes.load(entry(green)));
    pixels.store(3 * pixel + 2, bytes.load(entry(blue)));
}
