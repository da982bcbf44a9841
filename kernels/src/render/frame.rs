//! Camera rays, shadow rays and shading of a frame, one thread per pixel.

use super::shading::{FrameParams, V3, byte_entry};
use crate::policy::PER_ITEM_THREADS;
use crate::rays::ray::Ray;
use crate::rays::triangle::{Corners, Hit};
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Columns and rows of a tile of pixels, whose rays a warp traces together: they stay together longer than those of a row.
const TILE: [u32; 2] = [8, 4];

/// Returns the pixel of a ray of the camera. Rays are in the order of tiles; the pixels at the right and lower sides that fill no tile are
/// last, row by row.
///
/// ```
/// use kauri_kernels::render::frame::pixel_of;
/// let pixels: Vec<u32> = (0..17 * 5).map(|ray| pixel_of(ray, 17, 5)).collect();
/// assert_eq!(pixels[..9], [0, 1, 2, 3, 4, 5, 6, 7, 17]);
/// assert_eq!(pixels[32], 8);
/// assert_eq!(pixels[64..69], [16, 33, 50, 67, 68]);
/// ```
#[inline(always)]
pub const fn pixel_of(ray: u32, width: u32, height: u32) -> u32 {
    let [columns, rows] = TILE;
    let (whole_columns, whole_rows) = (width / columns * columns, height / rows * rows);
    let in_tiles = whole_columns * whole_rows;
    let right = width - whole_columns;
    if ray < in_tiles {
        let (tile, within) = (ray / (columns * rows), ray % (columns * rows));
        let tiles_of_row = whole_columns / columns;
        let x = tile % tiles_of_row * columns + within % columns;
        let y = tile / tiles_of_row * rows + within / columns;
        y * width + x
    } else if ray < in_tiles + right * whole_rows {
        let i = ray - in_tiles;
        i / right * width + whole_columns + i % right
    } else {
        ray
    }
}

/// Writes the rays of the camera.
#[kernel(family = "render", block = PER_ITEM_THREADS)]
pub unsafe fn render_rays(frame: Slice<FrameParams>, rays: SliceMut<Ray>) {
    let Some(i) = own_item(rays.len()) else { return };
    let params = frame.load(0);
    rays.store(i, params.ray(pixel_of(i as u32, params.width, rays.len() as u32 / params.width)));
}

/// The hits of camera rays.
#[derive(Clone, Copy, KernelArgs)]
pub struct CameraHits<'a> {
    /// The camera rays.
    pub rays: Slice<'a, crate::rays::ray::Ray>,
    /// The mesh.
    pub mesh: crate::rays::mesh::MeshView<'a>,
    /// The triangle that each ray hits.
    pub triangles: Slice<'a, u32>,
    /// Barycentric weights of the second corners.
    pub u: Slice<'a, f32>,
    /// Barycentric weights of the third corners.
    pub v: Slice<'a, f32>,
}

impl CameraHits<'_> {
    /// Returns a ray, and its hit with the corners of the triangle.
    #[inline(always)]
    pub(super) unsafe fn at(&self, i: usize) -> (Ray, Option<(Hit, [V3; 3])>) {
        let (ray, triangle) = (self.rays.load(i), self.triangles.load(i));
        if triangle == Hit::NO_TRIANGLE || triangle as usize >= self.mesh.len() {
            return (ray, None);
        }
        let corners = self.mesh.corners(triangle as usize).unwrap_or(Corners::ORIGIN);
        let hit = Hit { triangle, t: 0.0, u: self.u.load(i), v: self.v.load(i) };
        (ray, Some((hit, corners.positions())))
    }
}

/// Writes the ray from each surface point to the sun. Rays of the camera without a surface point, or on the far side from the
/// sun, get a ray that hits nothing.
#[kernel(family = "render", block = PER_ITEM_THREADS)]
pub unsafe fn render_shadow_rays(
    frame: Slice<FrameParams>,
    hits: CameraHits<'_>,
    shadow_rays: SliceMut<Ray>,
) {
    let Some(i) = own_item(shadow_rays.len()) else { return };
    let to_sun = match hits.at(i) {
        (ray, Some((hit, corners))) => frame.load(0).shadow_ray(&ray, &hit, corners),
        (ray, None) => Ray::new(ray.origin, [0.0; 3]),
    };
    shadow_rays.store(i, to_sun);
}

/// Writes red, green and blue of each pixel. If `are_occluded` is empty nothing is in shadow, and if `skylight` is empty the whole sky shines.
#[kernel(family = "render", block = PER_ITEM_THREADS)]
pub unsafe fn render_shade(
    frame: Slice<FrameParams>,
    bytes: Slice<u8>,
    hits: CameraHits<'_>,
    are_occluded: Slice<u8>,
    skylight: Slice<V3>,
    pixels: SliceMut<u8>,
) {
    let Some(i) = own_item(hits.rays.len()) else { return };
    let params = frame.load(0);
    let [red, green, blue] = match hits.at(i) {
        (ray, Some((hit, corners))) => {
            let is_occluded = !are_occluded.is_empty() && are_occluded.load(i) != 0;
            let skylight = if skylight.is_empty() { None } else { Some(skylight.load(i)) };
            params.reflected_light(&ray, &hit, corners, is_occluded, skylight)
        }
        (ray, None) => params.sky(ray.direction),
    };
    let pixel = pixel_of(i as u32, params.width, hits.rays.len() as u32 / params.width) as usize;
    pixels.store(3 * pixel, bytes.load(byte_entry(red)));
    pixels.store(3 * pixel + 1, bytes.load(byte_entry(green)));
    pixels.store(3 * pixel + 2, bytes.load(byte_entry(blue)));
}
