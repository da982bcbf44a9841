//! The places that a camera sees.

use super::vector::{V3, cross, dot, minus, sum, unit};
use crate::mesh::Mesh;
use crate::sah::{Hit, Ray};

/// How far off a surface rays begin, in roundings of numbers as large as the coordinates and the extent of a mesh together.
///
/// A place is rounded once on each axis as the origin of a ray, a hit is as if the corners of its triangle were moved by up to 7 roundings of
/// their distance on each axis, and the ray's direction is rounded: less than 16 together, so that no ray hits the surface that it leaves.
const ROUNDINGS: f64 = 16.0;

/// A place on a triangle, seen from one side.
pub(super) struct Surface {
    pub(super) triangle: u32,
    pub(super) place: V3,
    /// Of length 1, towards the side that is seen.
    pub(super) normal: V3,
}

impl Surface {
    /// Where `ray` has hit the mesh.
    pub(super) fn of(mesh: &Mesh, ray: &Ray, hit: Hit) -> Self {
        let [a, b, c] = mesh.corners(hit.triangle as usize).map(|corner| corner.map(f64::from));
        let (u, v) = (f64::from(hit.u), f64::from(hit.v));
        let normal = unit(cross(minus(b, a), minus(c, a)));
        let is_behind = dot(normal, ray.direction.map(f64::from)) > 0.0;
        Self {
            triangle: hit.triangle,
            // Not by the ray: however the weights of the corners are rounded, this is in the plane of the triangle.
            place: sum([(1.0 - u - v, a), (u, b), (v, c)]),
            normal: if is_behind { normal.map(|x| -x) } else { normal },
        }
    }

    /// The ray from here, `off` the surface.
    pub(super) fn ray(&self, direction: V3, off: f64, reach: f32) -> Ray {
        let origin = sum([(1.0, self.place), (off, self.normal)]);
        Ray { t_max: reach, ..Ray::new(origin.map(|x| x as f32), direction.map(|x| x as f32)) }
    }
}

/// How far off the surfaces of a mesh with these bounds rays begin.
pub(super) fn off([low, high]: [[f32; 3]; 2]) -> f64 {
    let [low, high] = [low, high].map(|corner| corner.map(f64::from));
    let on_axis = |axis: usize| low[axis].abs().max(high[axis].abs()) + high[axis] - low[axis];
    let greatest = (0..3).map(on_axis).fold(f64::from(f32::MIN_POSITIVE), f64::max);
    ROUNDINGS * 0.5 * f64::from(f32::EPSILON) * greatest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::shapes;
    use crate::random::Random;
    use crate::render::spread::{Spread, around};

    #[test]
    fn normals_face_the_viewer() {
        let mesh = shapes::grid(2, [1, 1]).unwrap();
        for height in [2.0, -2.0] {
            let ray = Ray::new([0.25, 0.5, height], [0.0, 0.0, -height]);
            let hit = (0..2).find_map(|i| ray.hit(i, mesh.corners(i as usize))).unwrap();
            let surface = Surface::of(&mesh, &ray, hit);
            assert_eq!(surface.normal, [0.0, 0.0, f64::signum(height.into())]);
            assert_eq!(surface.place, [0.25, 0.5, 0.0]);
        }
    }

    /// Triangles of all sizes, here and far away: no ray that leaves one hits it.
    #[test]
    fn rays_do_not_hit_what_they_leave() {
        for round in 0..2000 {
            let mut random = Random::of(5, round);
            let shift = 1000.0 * random.unit() * f64::from(round as u32 % 3);
            let size = 0.001 + random.unit();
            let mut corner = || [(); 3].map(|()| (shift + size * random.unit()) as f32);
            let mesh = Mesh::new(vec![corner(), corner(), corner()], vec![[0, 1, 2]]).unwrap();
            let hit =
                Hit { triangle: 0, t: 1.0, u: random.unit() as f32 / 2.0, v: random.unit() as f32 / 2.0 };
            let surface = Surface::of(&mesh, &Ray::new([0.0; 3], [1.0, 2.0, 3.0]), hit);
            let off = off(mesh.bounds().unwrap());
            for i in 0..50 {
                let [x, y] = Spread::of(6, round).place(i);
                // Every second one along the surface, where it is hardest.
                let x = if i % 2 == 0 { x } else { 1.0 };
                let ray = surface.ray(around(surface.normal, [x, y]), off, f32::INFINITY);
                assert_eq!(ray.hit(0, mesh.corners(0)), None, "{round} {i}");
            }
        }
    }
}
