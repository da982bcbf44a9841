//! Uses of the hits of a ray.

use super::triangle::Hit;
use cuda_std::prelude::*;

/// A callback for hits.
pub trait HitVisitor {
    /// Returns the `t` beyond which hits are not needed.
    #[inline(always)]
    fn t_limit(&self) -> f32 {
        f32::INFINITY
    }
    /// Called for each hit, once for each leaf in which the ray meets the triangle.
    unsafe fn visit(&mut self, hit: Hit);
}

/// Finds the first hit.
pub struct ClosestHit(pub Hit);

impl ClosestHit {
    /// No hit so far.
    pub const NONE: Self = Self(Hit::NONE);
}

impl HitVisitor for ClosestHit {
    #[inline(always)]
    fn t_limit(&self) -> f32 {
        self.0.t
    }
    #[inline(always)]
    unsafe fn visit(&mut self, hit: Hit) {
        if hit.is_before(&self.0) {
            self.0 = hit;
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
    unsafe fn visit(&mut self, _: Hit) {
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
    unsafe fn visit(&mut self, _: Hit) {
        self.num += 1;
    }
}
