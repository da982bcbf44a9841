//! How a frame looks: where its rays go, and which light they bring. In `f32`, by operations that are rounded the same everywhere.

use crate::plain::plain;
use crate::sah::ray::{Ray, to_one};
use crate::sah::triangle::Hit;
use cuda_std::float::sqrt;

/// A place, a direction, or the red, green and blue of light.
pub type V3 = [f32; 3];

/// What is seen, from where, and in which light.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Where the camera is.
    pub eye: V3,
    /// The way to the middle of the first pixel, …
    pub first: V3,
    /// … and from a pixel to the next one of its row, and to that below.
    pub right: V3,
    /// As `right`.
    pub down: V3,
    /// Where the sky is brightest. Of length 1, as the next.
    pub up: V3,
    /// Where the sun is; 0 without one.
    pub light: V3,
    /// How far off a surface rays begin.
    pub off: f32,
    /// Pixels of a row.
    pub width: u32,
    /// Light from the sun on a surface that faces it.
    pub sun: V3,
    /// From straight above.
    pub zenith: V3,
    /// From straight below.
    pub ground: V3,
    /// How much of light the mesh sends back.
    pub color: V3,
}

plain! { Look { V3, V3, V3, V3, V3, V3, f32, u32, V3, V3, V3, V3 } }

#[inline(always)]
fn dot([a, b, c]: V3, [d, e, f]: V3) -> f32 {
    a * d + b * e + c * f
}

#[inline(always)]
fn minus([a, b, c]: V3, [d, e, f]: V3) -> V3 {
    [a - d, b - e, c - f]
}

#[inline(always)]
fn cross([a, b, c]: V3, [d, e, f]: V3) -> V3 {
    [b * f - c * e, c * d - a * f, a * e - b * d]
}

/// The first vector, and so much of the second.
#[inline(always)]
fn plus([a, b, c]: V3, part: f32, [d, e, f]: V3) -> V3 {
    [a + part * d, b + part * e, c + part * f]
}

/// A vector times a number.
#[inline(always)]
fn times([a, b, c]: V3, by: f32) -> V3 {
    [a * by, b * by, c * by]
}

/// The greatest coordinate of a vector, without its sign.
#[inline(always)]
fn greatest([a, b, c]: V3) -> f32 {
    a.abs().max(b.abs()).max(c.abs())
}

/// The same direction with length 1; 0 if there is none.
#[inline(always)]
fn unit(v: V3) -> V3 {
    // Squares neither overflow nor vanish.
    let v = times(v, to_one(greatest(v)));
    let length = sqrt(dot(v, v));
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    times(v, scale)
}

/// A place of the mesh, and the direction away from it on the side that is seen.
struct Surface {
    place: V3,
    normal: V3,
}

impl Surface {
    #[inline(always)]
    fn of(ray: &Ray, hit: &Hit, [a, b, c]: [V3; 3]) -> Self {
        let (to_b, to_c) = (minus(b, a), minus(c, a));
        let scale = to_one(greatest(to_b).max(greatest(to_c)));
        let normal = unit(cross(times(to_b, scale), times(to_c, scale)));
        let side = if dot(normal, ray.direction) > 0.0 { -1.0 } else { 1.0 };
        // By the corners and not by the ray: however their weights are rounded, this is in the plane of the triangle.
        let place = plus(plus(a, hit.u, to_b), hit.v, to_c);
        Self { place, normal: times(normal, side) }
    }
}

impl Look {
    /// The ray through the middle of a pixel, counted row by row.
    #[inline(always)]
    pub fn ray(&self, pixel: u32) -> Ray {
        let (x, y) = ((pixel % self.width) as f32, (pixel / self.width) as f32);
        Ray::new(self.eye, unit(plus(plus(self.first, x, self.right), y, self.down)))
    }

    /// The ray from a place to the sun; where that does not shine one that hits nothing.
    #[inline(always)]
    pub fn shadow_ray(&self, ray: &Ray, hit: &Hit, corners: [V3; 3]) -> Ray {
        let surface = Surface::of(ray, hit, corners);
        let direction = if dot(surface.normal, self.light) > 0.0 { self.light } else { [0.0; 3] };
        Ray::new(plus(surface.place, self.off, surface.normal), direction)
    }

    /// The light of the sky from a direction.
    #[inline(always)]
    pub fn sky(&self, direction: V3) -> V3 {
        let height = 0.5 + 0.5 * dot(self.up, direction);
        let ([a, b, c], [d, e, f]) = (self.zenith, self.ground);
        let low = 1.0 - height;
        [height * a + low * d, height * b + low * e, height * c + low * f]
    }

    /// The light from a place of the mesh.
    #[inline(always)]
    pub fn light_of(&self, ray: &Ray, hit: &Hit, corners: [V3; 3], is_hidden: bool) -> V3 {
        let normal = Surface::of(ray, hit, corners).normal;
        let sun = if is_hidden { 0.0 } else { dot(normal, self.light).max(0.0) };
        let [a, b, c] = plus(self.sky(normal), sun, self.sun);
        let [d, e, f] = self.color;
        [a * d, b * e, c * f]
    }
}

/// Entries of a table of the bytes of light.
pub const BYTES: usize = 4096;

/// The entry of light from 0 to 1; what is brighter is white.
#[inline(always)]
pub fn entry(light: f32) -> usize {
    // What is below 0 or no number is 0.
    let entry = (light * (BYTES - 1) as f32 + 0.5) as usize;
    if entry < BYTES { entry } else { BYTES - 1 }
}
