//! Photon density: the light that falls on a surface, estimated from the photons that have hit surfaces nearby (Jensen 1996, *Global
//! Illumination using Photon Maps*). The visitors are plain Rust: the kernels use them on a GPU, `SpatialIndex::visit` on the CPU.

use core::f32::consts::PI;
use cuda_std::prelude::*;
use kauri_kernels::query::traversal::TraversalSmem;
use kauri_kernels::query::visit::{NearestPoints, THREADS, Visit, Visits};

/// Number of photons of the estimate by the nearest ones.
pub const NUM_NEAREST: usize = 32;

/// A photon: the direction to where it has come from, and its power.
pub type Photon = [f32; 4];

/// Returns the power of a photon if it has come from the side of a normal.
fn power_from(normal: [f32; 3], [x, y, z, power]: Photon) -> f32 {
    if x * normal[0] + y * normal[1] + z * normal[2] > 0.0 { power } else { 0.0 }
}

/// The power of all photons within a radius.
pub struct WithinRadius<F> {
    /// The square of the radius.
    bound: f32,
    normal: [f32; 3],
    photon: F,
    power: f32,
}

impl<F: Fn(u32) -> Photon> WithinRadius<F> {
    /// Takes the square of the radius, the normal of the surface, and the function that returns a photon by its id.
    pub fn new(bound: f32, normal: [f32; 3], photon: F) -> Self {
        Self { bound, normal, photon, power: 0.0 }
    }

    /// Returns the power per area of the disk.
    pub fn irradiance(&self) -> f32 {
        self.power / (PI * self.bound)
    }
}

impl<F: Fn(u32) -> Photon> Visit<f32> for WithinRadius<F> {
    fn bound(&self) -> f32 {
        self.bound
    }

    fn point(&mut self, _: f32, id: u32) {
        self.power += power_from(self.normal, (self.photon)(id));
    }
}

/// The [`NUM_NEAREST`] nearest photons.
pub struct Nearest<F> {
    nearest: NearestPoints<f32, NUM_NEAREST>,
    normal: [f32; 3],
    photon: F,
}

impl<F: Fn(u32) -> Photon> Nearest<F> {
    /// Takes the square of the radius beyond which no photon counts, the normal of the surface, and the function that returns a photon by
    /// its id.
    pub fn new(bound: f32, normal: [f32; 3], photon: F) -> Self {
        Self { nearest: NearestPoints::new(bound), normal, photon }
    }

    /// Returns the power per area of the disk that reaches to the farthest of the photons; 0 without photons.
    pub fn irradiance(&self) -> f32 {
        let (mut power, mut farthest) = (0.0, 0.0);
        self.nearest.for_each(|distance, id| {
            power += power_from(self.normal, (self.photon)(id));
            farthest = distance;
        });
        if farthest > 0.0 { power / (PI * farthest) } else { 0.0 }
    }
}

impl<F> Visit<f32> for Nearest<F> {
    fn bound(&self) -> f32 {
        self.nearest.bound()
    }

    fn point(&mut self, distance: f32, id: u32) {
        self.nearest.point(distance, id);
    }
}

/// Surfaces and photons in device memory.
#[derive(Clone, Copy, KernelArgs)]
pub struct Scene<'a> {
    /// The normal of the surface at each query.
    pub normals: Slice<'a, [f32; 3]>,
    /// The photon of each point of the index, as four numbers.
    pub photons: Slice<'a, f32>,
}

/// Estimates the irradiance at each query by the photons within a radius.
///
/// # Safety
/// There is a normal and an irradiance for each query, and a photon for each point.
#[kernel(family = "own", block = THREADS, shared = TraversalSmem<f32>)]
pub unsafe fn own_irradiance_within(visits: Visits<'_, f32>, scene: Scene<'_>, irradiances: SliceMut<f32>) {
    let photon = |id| scene.photons.load_16(id as usize);
    visits.run::<3, _>(
        shared_mem(),
        |query, bound| WithinRadius::new(bound, scene.normals.load(query), photon),
        |query, photons| irradiances.store(query, photons.irradiance()),
    );
}

/// Estimates the irradiance at each query by the nearest photons.
///
/// # Safety
/// As [`own_irradiance_within`].
#[kernel(family = "own", block = THREADS, shared = TraversalSmem<f32>)]
pub unsafe fn own_irradiance_of_nearest(
    visits: Visits<'_, f32>,
    scene: Scene<'_>,
    irradiances: SliceMut<f32>,
) {
    let photon = |id| scene.photons.load_16(id as usize);
    visits.run::<3, _>(
        shared_mem(),
        |query, bound| Nearest::new(bound, scene.normals.load(query), photon),
        |query, photons| irradiances.store(query, photons.irradiance()),
    );
}
