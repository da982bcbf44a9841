//! Light of a picture's samples, by rays.

use std::ops::Range;

use super::camera::View;
use super::light::{SUN, sky};
use super::options::RenderOptions;
use super::r2_sequence::{R2Sequence, cosine_direction};
use super::surface::{Surface, ray_offset};
use super::vector::{V3, dot, minus, sum, unit};
use crate::error::Result;
use crate::mesh::Mesh;
use crate::parallel;
use crate::rays::{Hit, Ray, RayIndex};

/// Number of rays of a task.
const TASK_RAYS: usize = 1024;

/// Maximum rays of a batch.
pub(super) const MAX_RAYS: usize = 1 << 20;

/// A mesh with its tree, a view and lights.
pub(super) struct Scene<'a, C> {
    pub(super) index: &'a dyn RayIndex,
    pub(super) mesh: &'a Mesh,
    pub(super) options: &'a RenderOptions,
    pub(super) view: View,
    /// Albedo of a triangle: the reflected fraction of red, green and blue light.
    pub(super) color: C,
    light: V3,
    reach: f32,
    ray_offset: f64,
    /// The number of rays traced so far.
    pub(super) num_rays: u64,
}

/// The surface point of a sample.
struct SampleHit {
    /// Index of the sample.
    sample: usize,
    surface: Surface,
}

impl<'a, C: Fn(u32) -> [f32; 3] + Sync> Scene<'a, C> {
    pub(super) fn new(
        index: &'a dyn RayIndex,
        mesh: &'a Mesh,
        options: &'a RenderOptions,
        view: View,
        color: C,
    ) -> Self {
        let bounds = mesh.bounds().unwrap_or_default();
        let [low, high] = bounds.map(|corner| corner.map(f64::from));
        let diagonal = minus(high, low);
        let reach = f64::from(options.occlusion_reach) * dot(diagonal, diagonal).sqrt();
        Self {
            index,
            mesh,
            options,
            view,
            color,
            light: unit(options.light.map(f64::from)),
            reach: reach as f32,
            ray_offset: ray_offset(bounds),
            num_rays: 0,
        }
    }

    /// Returns the light of at most [`MAX_RAYS`] samples, which are indexed pixel by pixel.
    pub(super) fn sample_light(&mut self, samples: Range<usize>) -> Result<Vec<V3>> {
        let rays = parallel::map(samples.len(), TASK_RAYS, |i| self.ray(samples.start + i));
        self.num_rays += rays.len() as u64;
        let hits = self.index.closest_hits(&rays)?;

        let up = self.view.up();
        let sky_of = |i: usize| sky(up, rays[i].direction.map(f64::from));
        let mut light: Vec<V3> = parallel::map(rays.len(), TASK_RAYS, sky_of);
        let visible = |i: usize| {
            let hit = hits.get(i);
            let surface = || Surface::of(self.mesh, &rays[i], hit);
            (hit.triangle != Hit::NO_TRIANGLE)
                .then(|| SampleHit { sample: samples.start + i, surface: surface() })
        };
        let visible_of = |range: Range<usize>| range.filter_map(visible).collect();
        let visible: Vec<SampleHit> = parallel::concat(rays.len(), TASK_RAYS, visible_of);
        let (sun, sky) = (self.sunlight(&visible)?, self.skylight(&visible)?);
        for ((visible, sun), sky) in visible.iter().zip(sun).zip(sky) {
            let color = (self.color)(visible.surface.triangle).map(f64::from);
            let received = sum([(sun, SUN), (1.0, sky)]);
            light[visible.sample - samples.start] =
                [0, 1, 2].map(|channel| color[channel] * received[channel]);
        }
        Ok(light)
    }

    /// Returns the camera ray of a sample.
    fn ray(&self, sample: usize) -> Ray {
        let per_pixel = self.options.samples as usize;
        let (pixel, i) = (sample / per_pixel, sample % per_pixel);
        let width = self.options.width as usize;
        let within = R2Sequence::CENTERED.point(i as u32);
        self.view.ray([(pixel % width) as f64 + within[0], (pixel / width) as f64 + within[1]])
    }

    /// Returns the fraction of sunlight at each surface point.
    fn sunlight(&mut self, visible: &[SampleHit]) -> Result<Vec<f64>> {
        let light_of = |i: usize| dot(visible[i].surface.normal, self.light).max(0.0);
        let mut received: Vec<f64> = parallel::map(visible.len(), TASK_RAYS, light_of);
        if self.options.shadows {
            let facing: Vec<usize> = (0..visible.len()).filter(|&i| received[i] > 0.0).collect();
            let ray = |i: usize| visible[facing[i]].surface.ray(self.light, self.ray_offset, f32::INFINITY);
            let is_occluded = self.are_occluded(&parallel::map(facing.len(), TASK_RAYS, ray))?;
            let hidden = facing.iter().zip(is_occluded).filter(|&(_, is_occluded)| is_occluded);
            hidden.for_each(|(&i, _)| received[i] = 0.0);
        }
        Ok(received)
    }

    /// Returns the light of the sky at each surface point, without directions that nearby triangles occlude.
    fn skylight(&mut self, visible: &[SampleHit]) -> Result<Vec<V3>> {
        let (up, per_point) = (self.view.up(), self.options.occlusion_rays as usize);
        if per_point == 0 {
            let sky_of = |i: usize| sky(up, visible[i].surface.normal);
            return Ok(parallel::map(visible.len(), TASK_RAYS, sky_of));
        }
        let mut received = Vec::with_capacity(visible.len());
        for points in visible.chunks(MAX_RAYS / per_point) {
            let ray = |i: usize| self.occlusion_ray(&points[i / per_point], i % per_point);
            let rays = parallel::map(points.len() * per_point, TASK_RAYS, ray);
            let is_occluded = self.are_occluded(&rays)?;
            let open_sky = |point: usize| {
                let samples = point * per_point..(point + 1) * per_point;
                let open = rays[samples.clone()]
                    .iter()
                    .zip(&is_occluded[samples])
                    .filter(|&(_, &is_occluded)| !is_occluded);
                let light = open.map(|(ray, _)| sky(up, ray.direction.map(f64::from)));
                light.fold([0.0; 3], |all, one| sum([(1.0, all), (1.0 / per_point as f64, one)]))
            };
            parallel::extend(&mut received, points.len(), TASK_RAYS, open_sky);
        }
        Ok(received)
    }

    /// Returns an occlusion ray of a surface point. The samples of a pixel share one sequence of directions.
    fn occlusion_ray(&self, hit: &SampleHit, i: usize) -> Ray {
        let per_pixel = self.options.samples as usize;
        let (pixel, sample) = (hit.sample / per_pixel, hit.sample % per_pixel);
        let sequence = R2Sequence::of(self.options.seed, pixel as u64);
        let point = sequence.point((sample * self.options.occlusion_rays as usize + i) as u32);
        hit.surface.ray(cosine_direction(hit.surface.normal, point), self.ray_offset, self.reach)
    }

    fn are_occluded(&mut self, rays: &[Ray]) -> Result<Vec<bool>> {
        self.num_rays += rays.len() as u64;
        self.index.any_hits(rays)
    }
}
