//! A picture in the making: rays, and the light that they bring.

use rayon::prelude::*;
use std::ops::Range;

use super::camera::View;
use super::light::{SUN, sky};
use super::options::RenderOptions;
use super::spread::{Spread, around};
use super::surface::{Surface, off};
use super::vector::{V3, dot, minus, sum, unit};
use crate::error::Result;
use crate::mesh::Mesh;
use crate::sah::{Hit, Ray, SahTree};

/// Rays that are on their way at a time.
pub(super) const MAX_RAYS: usize = 1 << 20;

/// What is seen, from where, and in which light.
pub(super) struct Scene<'a, C> {
    pub(super) tree: &'a SahTree,
    pub(super) mesh: &'a Mesh,
    pub(super) options: &'a RenderOptions,
    pub(super) view: View,
    /// How much of red, green and blue light a triangle sends back.
    pub(super) color: C,
    light: V3,
    reach: f32,
    off: f64,
    num_rays: u64,
}

/// The place that a sample of the picture shows.
struct Seen {
    /// The sample's number.
    sample: usize,
    surface: Surface,
}

impl<'a, C: Fn(u32) -> [f32; 3] + Sync> Scene<'a, C> {
    pub(super) fn new(
        tree: &'a SahTree,
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
            tree,
            mesh,
            options,
            view,
            color,
            light: unit(options.light.map(f64::from)),
            reach: reach as f32,
            off: off(bounds),
            num_rays: 0,
        }
    }

    /// How many rays there were.
    pub(super) fn num_rays(&self) -> u64 {
        self.num_rays
    }

    /// The light of samples, which are numbered pixel by pixel; not more than [`MAX_RAYS`].
    pub(super) fn light_of(&mut self, samples: Range<usize>) -> Result<Vec<V3>> {
        let rays: Vec<Ray> = samples.clone().into_par_iter().map(|sample| self.ray(sample)).collect();
        self.num_rays += rays.len() as u64;
        let hits = self.tree.closest_hits(&rays)?;

        let up = self.view.up();
        let mut light: Vec<V3> = rays.par_iter().map(|ray| sky(up, ray.direction.map(f64::from))).collect();
        let seen = |i: usize| {
            let hit = hits.get(i);
            let surface = || Surface::of(self.mesh, &rays[i], hit);
            (hit.triangle != Hit::NO_TRIANGLE).then(|| Seen { sample: samples.start + i, surface: surface() })
        };
        let seen: Vec<Seen> = (0..rays.len()).into_par_iter().filter_map(seen).collect();
        let (sun, sky) = (self.sun_on(&seen)?, self.sky_on(&seen)?);
        for ((seen, sun), sky) in seen.iter().zip(sun).zip(sky) {
            let color = (self.color)(seen.surface.triangle).map(f64::from);
            let falls = sum([(sun, SUN), (1.0, sky)]);
            light[seen.sample - samples.start] = [0, 1, 2].map(|channel| color[channel] * falls[channel]);
        }
        Ok(light)
    }

    /// The ray of a sample.
    fn ray(&self, sample: usize) -> Ray {
        let per_pixel = self.options.samples as usize;
        let (pixel, i) = (sample / per_pixel, sample % per_pixel);
        let width = self.options.width as usize;
        let within = Spread::CENTERED.place(i as u32);
        self.view.ray([(pixel % width) as f64 + within[0], (pixel / width) as f64 + within[1]])
    }

    /// How much of the sun falls on each place.
    fn sun_on(&mut self, seen: &[Seen]) -> Result<Vec<f64>> {
        let mut falls: Vec<f64> =
            seen.par_iter().map(|seen| dot(seen.surface.normal, self.light).max(0.0)).collect();
        if self.options.shadows {
            let facing: Vec<usize> = (0..seen.len()).filter(|&i| falls[i] > 0.0).collect();
            let ray = |&i: &usize| seen[i].surface.ray(self.light, self.off, f32::INFINITY);
            let is_hidden = self.are_hidden(&facing.par_iter().map(ray).collect::<Vec<_>>())?;
            let hidden = facing.iter().zip(is_hidden).filter(|&(_, is_hidden)| is_hidden);
            hidden.for_each(|(&i, _)| falls[i] = 0.0);
        }
        Ok(falls)
    }

    /// The light of the sky on each place, as far as things near by do not hide it.
    fn sky_on(&mut self, seen: &[Seen]) -> Result<Vec<V3>> {
        let (up, per_place) = (self.view.up(), self.options.occlusion_rays as usize);
        if per_place == 0 {
            return Ok(seen.par_iter().map(|seen| sky(up, seen.surface.normal)).collect());
        }
        let mut falls = Vec::with_capacity(seen.len());
        for places in seen.chunks(MAX_RAYS / per_place) {
            let ray = |i: usize| self.occlusion_ray(&places[i / per_place], i % per_place);
            let rays: Vec<Ray> = (0..places.len() * per_place).into_par_iter().map(ray).collect();
            let is_hidden = self.are_hidden(&rays)?;
            let fall = |(rays, is_hidden): (&[Ray], &[bool])| {
                let open = rays.iter().zip(is_hidden).filter(|&(_, &is_hidden)| !is_hidden);
                let light = open.map(|(ray, _)| sky(up, ray.direction.map(f64::from)));
                light.fold([0.0; 3], |all, one| sum([(1.0, all), (1.0 / per_place as f64, one)]))
            };
            falls.par_extend(rays.par_chunks(per_place).zip(is_hidden.par_chunks(per_place)).map(fall));
        }
        Ok(falls)
    }

    /// One of the rays from a place that look for the sky. The samples of a pixel share one sequence of directions.
    fn occlusion_ray(&self, seen: &Seen, i: usize) -> Ray {
        let per_pixel = self.options.samples as usize;
        let (pixel, sample) = (seen.sample / per_pixel, seen.sample % per_pixel);
        let spread = Spread::of(self.options.seed, pixel as u64);
        let place = spread.place((sample * self.options.occlusion_rays as usize + i) as u32);
        seen.surface.ray(around(seen.surface.normal, place), self.off, self.reach)
    }

    fn are_hidden(&mut self, rays: &[Ray]) -> Result<Vec<bool>> {
        self.num_rays += rays.len() as u64;
        self.tree.any_hits(rays)
    }
}
