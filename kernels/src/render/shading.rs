//! View and light of a frame, and the shading of a surface point. In `f32`, with operations that round the same everywhere.

use crate::plain::plain;
use crate::rays::ray::{Ray, to_one};
use crate::rays::triangle::Hit;
use cuda_std::float::sqrt;

/// A position, a direction, or an RGB color.
pub type V3 = [f32; 3];

/// View and light of a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FrameParams {
    /// Position of the camera.
    pub eye: V3,
    /// Vector from the eye to the center of the first pixel.
    pub first: V3,
    /// Step from a pixel to the next pixel of its row.
    pub right: V3,
    /// Step from a pixel to the pixel below.
    pub down: V3,
    /// Unit vector towards the brightest point of the sky.
    pub up: V3,
    /// Unit vector towards the sun; 0 without a sun.
    pub light: V3,
    /// Offset of secondary rays from their surface.
    pub ray_offset: f32,
    /// Width in pixels.
    pub width: u32,
    /// Color of the sun on a surface that faces it.
    pub sun: V3,
    /// Color of the sky from straight above.
    pub zenith: V3,
    /// Color of the sky from straight below.
    pub ground: V3,
    /// Albedo of the mesh.
    pub albedo: V3,
    /// Occlusion rays of a surface point; 0 if all of the sky shines on it.
    pub occlusion_rays: u32,
    /// Length of occlusion rays.
    pub reach: f32,
    /// Seed of the directions of occlusion rays, the lower half first.
    pub seed: [u32; 2],
}

plain! { FrameParams { V3, V3, V3, V3, V3, V3, f32, u32, V3, V3, V3, V3, u32, f32, [u32; 2] } }

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

/// Returns the first vector plus `part` times the second.
#[inline(always)]
pub(super) fn plus([a, b, c]: V3, part: f32, [d, e, f]: V3) -> V3 {
    [a + part * d, b + part * e, c + part * f]
}

/// Scales a vector.
#[inline(always)]
fn times([a, b, c]: V3, by: f32) -> V3 {
    [a * by, b * by, c * by]
}

/// Returns the largest absolute coordinate.
#[inline(always)]
fn max_abs([a, b, c]: V3) -> f32 {
    a.abs().max(b.abs()).max(c.abs())
}

/// Returns the normalized vector; 0 stays 0.
#[inline(always)]
fn unit(v: V3) -> V3 {
    // Scaled, so that squares neither overflow nor underflow.
    let v = times(v, to_one(max_abs(v)));
    let length = sqrt(dot(v, v));
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    times(v, scale)
}

/// Returns the unit vector of the axis on which a vector is smallest.
#[inline(always)]
fn least_axis(v: V3) -> V3 {
    let [x, y, z] = v.map(f32::abs);
    if x <= y && x <= z {
        [1.0, 0.0, 0.0]
    } else if y <= z {
        [0.0, 1.0, 0.0]
    } else {
        [0.0, 0.0, 1.0]
    }
}

/// Returns sine and cosine of `turns` turns, from 0 to 1, by their series around the nearest quarter of a turn.
#[inline(always)]
fn sine_and_cosine(turns: f64) -> (f64, f64) {
    let quarter = (4.0 * turns + 0.5) as u32;
    let x = (turns - 0.25 * f64::from(quarter)) * core::f64::consts::TAU;
    // The term of x^12 is below 1e-9.
    let (mut sine, mut cosine, mut term) = (0.0, 0.0, 1.0);
    let mut i = 0;
    while i < 12 {
        let sign = if i & 2 == 0 { term } else { -term };
        if i & 1 == 0 {
            cosine += sign;
        } else {
            sine += sign;
        }
        i += 1;
        term *= x / f64::from(i);
    }
    match quarter & 3 {
        0 => (sine, cosine),
        1 => (cosine, -sine),
        2 => (-sine, -cosine),
        _ => (-cosine, sine),
    }
}

/// A surface point, and the normal of the visible side.
struct Surface {
    position: V3,
    normal: V3,
}

impl Surface {
    #[inline(always)]
    fn of(ray: &Ray, hit: &Hit, [a, b, c]: [V3; 3]) -> Self {
        let (to_b, to_c) = (minus(b, a), minus(c, a));
        let scale = to_one(max_abs(to_b).max(max_abs(to_c)));
        let normal = unit(cross(times(to_b, scale), times(to_c, scale)));
        let side = if dot(normal, ray.direction) > 0.0 { -1.0 } else { 1.0 };
        // Interpolated from the corners: the point stays in the triangle's plane however the weights are rounded.
        let position = plus(plus(a, hit.u, to_b), hit.v, to_c);
        Self { position, normal: times(normal, side) }
    }
}

impl FrameParams {
    /// Returns the ray through the center of a pixel, indexed row by row.
    #[inline(always)]
    pub fn ray(&self, pixel: u32) -> Ray {
        let (x, y) = ((pixel % self.width) as f32, (pixel / self.width) as f32);
        Ray::new(self.eye, unit(plus(plus(self.first, x, self.right), y, self.down)))
    }

    /// Returns the ray from a surface point to the sun. If the surface faces away, the ray hits nothing.
    #[inline(always)]
    pub fn shadow_ray(&self, ray: &Ray, hit: &Hit, corners: [V3; 3]) -> Ray {
        let surface = Surface::of(ray, hit, corners);
        let direction = if dot(surface.normal, self.light) > 0.0 { self.light } else { [0.0; 3] };
        Ray::new(plus(surface.position, self.ray_offset, surface.normal), direction)
    }

    /// The seed of the directions of occlusion rays.
    #[inline(always)]
    pub const fn seed(&self) -> u64 {
        (self.seed[1] as u64) << 32 | self.seed[0] as u64
    }

    /// Returns the occlusion ray from a surface point for a point of the unit square. Directions are dense as the cosine of the angle to the
    /// normal, as for a diffuse surface (Malley's method).
    #[inline(always)]
    pub fn occlusion_ray(&self, ray: &Ray, hit: &Hit, corners: [V3; 3], [x, y]: [f64; 2]) -> Ray {
        let Surface { position, normal } = Surface::of(ray, hit, corners);
        let axis = least_axis(normal);
        let tangent = unit(plus(axis, -dot(axis, normal), normal));
        let (sine, cosine) = sine_and_cosine(y);
        let (radius, height) = (sqrt(x as f32), sqrt((1.0 - x) as f32));
        let along = plus(times(normal, height), radius * cosine as f32, tangent);
        let direction = plus(along, radius * sine as f32, cross(normal, tangent));
        Ray { t_max: self.reach, ..Ray::new(plus(position, self.ray_offset, normal), direction) }
    }

    /// Returns the light of the sky from a direction.
    #[inline(always)]
    pub fn sky(&self, direction: V3) -> V3 {
        let height = 0.5 + 0.5 * dot(self.up, direction);
        let ([a, b, c], [d, e, f]) = (self.zenith, self.ground);
        let low = 1.0 - height;
        [height * a + low * d, height * b + low * e, height * c + low * f]
    }

    /// Returns the light that a surface point reflects. Without `skylight` the whole sky shines on it.
    #[inline(always)]
    pub fn reflected_light(
        &self,
        ray: &Ray,
        hit: &Hit,
        corners: [V3; 3],
        is_occluded: bool,
        skylight: Option<V3>,
    ) -> V3 {
        let normal = Surface::of(ray, hit, corners).normal;
        let sun = if is_occluded { 0.0 } else { dot(normal, self.light).max(0.0) };
        let skylight = match skylight {
            Some(skylight) => skylight,
            None => self.sky(normal),
        };
        let [a, b, c] = plus(skylight, sun, self.sun);
        let [d, e, f] = self.albedo;
        [a * d, b * e, c * f]
    }
}

/// Entries of the table that encodes light as bytes.
pub const BYTE_ENTRIES: usize = 4096;

/// Returns the table entry of light from 0 to 1. Brighter light is white.
#[inline(always)]
pub fn byte_entry(light: f32) -> usize {
    // The conversion turns negative numbers and NaN into 0.
    let entry = (light * (BYTE_ENTRIES - 1) as f32 + 0.5) as usize;
    if entry < BYTE_ENTRIES { entry } else { BYTE_ENTRIES - 1 }
}
