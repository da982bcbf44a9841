//! Uses of the hits of a ray.

use super::ray::Ray;
use super::triangle::Hit;
use cuda_std::prelude::*;

/// A callback for hits.
pub trait HitVisitor {
    /// Returns the `t` beyond which hits are not needed.
    #[inline(always)]
    fn t_limit(&self) -> f32 {
        f32::INFINITY
    }
    /// Called for each hit, once for each leaf in which the ray meets the triangle, which is at this place of the scene.
    unsafe fn visit(&mut self, hit: Hit, place: u32);
}

/// Finds the first hit. Weights are computed at the end, since few hits are the first.
pub struct ClosestHit {
    /// The parameter of the first hit so far.
    t: f32,
    /// The id of its triangle.
    triangle: u32,
    /// The place of the triangle in the scene.
    place: u32,
}

impl ClosestHit {
    /// No hit so far.
    pub const NONE: Self = Self { t: f32::INFINITY, triangle: Hit::NO_TRIANGLE, place: 0 };

    /// Returns the hit of the ray, given the corners of the triangle at a place.
    #[inline(always)]
    pub fn hit(&self, ray: &Ray, corners_at: impl FnOnce(u32) -> [[f32; 3]; 3]) -> Hit {
        let hit = match self.triangle {
            Hit::NO_TRIANGLE => None,
            triangle => ray.hit(triangle, corners_at(self.place)),
        };
        hit.unwrap_or(Hit::NONE)
    }
}

impl HitVisitor for ClosestHit {
    #[inline(always)]
    fn t_limit(&self) -> f32 {
        self.t
    }
    #[inline(always)]
    unsafe fn visit(&mut self, hit: Hit, place: u32) {
        if hit.t < self.t || hit.t == self.t && hit.triangle < self.triangle {
            *self = Self { t: hit.t, triangle: hit.triangle, place };
        }
    }
}

/// Finds out whether there is a hit.
pub struct AnyHit {
    /// True if there was a hit.
    pub is_hit: bool,
}

impl AnyHit {
    /// No hit so far.
    pub const NONE: Self = Self { is_hit: false };
}

impl HitVisitor for AnyHit {
    #[inline(always)]
    fn t_limit(&self) -> f32 {
        if self.is_hit { f32::NEG_INFINITY } else { f32::INFINITY }
    }
    #[inline(always)]
    unsafe fn visit(&mut self, _: Hit, _: u32) {
        self.is_hit = true;
    }
}

/// Hits as a structure of arrays.
#[derive(Clone, Copy, KernelArgs)]
pub struct HitsMut<'a> {
    /// Triangle ids.
    pub triangles: SliceMut<'a, u32>,
    /// Parameters of the hit points on the rays.
    pub t: SliceMut<'a, f32>,
    /// Barycentric weights of the second corners.
    pub u: SliceMut<'a, f32>,
    /// Barycentric weights of the third corners.
    pub v: SliceMut<'a, f32>,
}

impl HitsMut<'_> {
    #[inline(always)]
    pub(crate) unsafe fn store(&self, i: usize, hit: Hit) {
        self.triangles.store(i, hit.triangle);
        self.t.store(i, hit.t);
        self.u.store(i, hit.u);
        self.v.store(i, hit.v);
    }
}

/// Counts the hits. A triangle counts once for each leaf in which the ray meets it.
pub struct CountHits {
    /// The number of hits.
    pub num: u32,
}

impl CountHits {
    /// No hit so far.
    pub const NONE: Self = Self { num: 0 };
}

impl HitVisitor for CountHits {
    #[inline(always)]
    unsafe fn visit(&mut self, _: Hit, _: u32) {
        self.num += 1;
    }
}
