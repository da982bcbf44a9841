//! Surface points that a camera sees.

use super::vector::{V3, cross, dot, minus, sum, unit};
use crate::mesh::Mesh;
use crate::rays::{Hit, Ray};

/// Offset of secondary rays from their surface, in rounding errors of a number as large as coordinates and extent of the
/// mesh together.
///
/// Error budget: the ray's origin is rounded once per axis, the hit test moves corners by up to 7 rounding errors of their
/// distance per axis, and the direction is rounded. The sum is below 16, so that no ray hits the surface that it leaves.
const ROUNDINGS: f64 = 16.0;

/// A point on a triangle, seen from one side.
pub(super) struct Surface {
    pub(super) triangle: u32,
    pub(super) position: V3,
    /// Unit normal of the visible side.
    pub(super) normal: V3,
}

impl Surface {
    /// Returns the point where `ray` hits the mesh.
    pub(super) fn of(mesh: &Mesh, ray: &Ray, hit: Hit) -> Self {
        let [a, b, c] = mesh.corners(hit.triangle as usize).map(|corner| corner.map(f64::from));
        let (u, v) = (f64::from(hit.u), f64::from(hit.v));
        let normal = unit(cross(minus(b, a), minus(c, a)));
        let is_behind = dot(normal, ray.direction.map(f64::from)) > 0.0;
        Self {
            triangle: hit.triangle,
            // Interpolated from the corners: the point stays in the triangle's plane however the weights are rounded.
            position: sum([(1.0 - u - v, a), (u, b), (v, c)]),
            normal: if is_behind { normal.map(|x| -x) } else { normal },
        }
    }

    /// Returns a ray from this point. Its origin has a distance of `offset` to the surface.
    pub(super) fn ray(&self, direction: V3, ray_offset: f64, reach: f32) -> Ray {
        let origin = sum([(1.0, self.position), (ray_offset, self.normal)]);
        Ray { t_max: reach, ..Ray::new(origin.map(|x| x as f32), direction.map(|x| x as f32)) }
    }
}

/// Returns the offset of secondary rays for a mesh with these bounds.
pub(super) fn ray_offset([low, high]: [[f32; 3]; 2]) -> f64 {
    let [low, high] = [low, high].map(|corner| corner.map(f64::from));
    let magnitude = |axis: usize| low[axis].abs().max(high[axis].abs()) + high[axis] - low[axis];
    let largest = (0..3).map(magnitude).fold(f64::from(f32::MIN_POSITIVE), f64::max);
    ROUNDINGS * 0.5 * f64::from(f32::EPSILON) * largest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::shapes;
    use crate::random::Random;
    use crate::render::r2_sequence::{R2Sequence, cosine_direction};

    #[test]
    fn normals_face_the_viewer() {
        let mesh = shapes::grid(2, [1, 1]).unwrap();
        for height in [2.0, -2.0] {
            let ray = Ray::new([0.25, 0.5, height], [0.0, 0.0, -height]);
            let hit = (0..2).find_map(|i| ray.hit(i, mesh.corners(i as usize))).unwrap();
            let surface = Surface::of(&mesh, &ray, hit);
            assert_eq!(surface.normal, [0.0, 0.0, f64::signum(height.into())]);
            assert_eq!(surface.position, [0.25, 0.5, 0.0]);
        }
    }

    /// Triangles of all sizes, near the origin and far away: no ray hits the triangle that it leaves.
    #[test]
    fn rays_do_not_hit_the_surface_that_they_leave() {
        for round in 0..2000 {
            let mut random = Random::of(5, round);
            let shift = 1000.0 * random.unit() * f64::from(round as u32 % 3);
            let size = 0.001 + random.unit();
            let mut corner = || [(); 3].map(|()| (shift + size * random.unit()) as f32);
            let mesh = Mesh::new(vec![corner(), corner(), corner()], vec![[0, 1, 2]]).unwrap();
            let hit =
                Hit { triangle: 0, t: 1.0, u: random.unit() as f32 / 2.0, v: random.unit() as f32 / 2.0 };
            let surface = Surface::of(&mesh, &Ray::new([0.0; 3], [1.0, 2.0, 3.0]), hit);
            let ray_offset = ray_offset(mesh.bounds().unwrap());
            for i in 0..50 {
                let [x, y] = R2Sequence::of(6, round).point(i);
                // Every second ray is tangent to the surface, the hardest case.
                let x = if i % 2 == 0 { x } else { 1.0 };
                let ray = surface.ray(cosine_direction(surface.normal, [x, y]), ray_offset, f32::INFINITY);
                assert_eq!(ray.hit(0, mesh.corners(0)), None, "{round} {i}");
            }
        }
    }
}
