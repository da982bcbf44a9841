//! `kauri demo render`: a ray-traced picture of a knot above a terrain, with shadows.

use clap::Args;
use std::path::PathBuf;

use super::times::Times;
use super::write_summary;
use crate::device::{DeviceOption, Work};
use crate::names::{PICTURE, with_extension};
use crate::picture::write_frames;
use crate::progress::Steps;
use crate::text::thousands;
use crate::{Result, Streams};
use kauri::Bvh;
use kauri::mesh::{Mesh, shapes};
use kauri::render::{self, Camera, RenderOptions};

/// The side of the land, and the height of the knot above it.
const LAND: f32 = 14.0;
const ABOVE: f32 = 3.2;
/// Squares along the side of the land; rings of the knot, and sides of each ring.
const SIDE: u32 = 300;
const RINGS: u32 = 600;
const SIDES: u32 = 48;
const SEED: u64 = 8;

const SIZE: [u32; 2] = [960, 540];

#[derive(Args)]
pub(super) struct RenderDemo {
    #[command(flatten)]
    device: DeviceOption,
    /// Write the picture to this file
    #[arg(long, value_name = "FILE.png", default_value = "kauri-render.png", value_parser = with_extension(PICTURE))]
    out: PathBuf,
}

impl RenderDemo {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let device = self.device.choice()?;
        let steps = Steps { are_shown: streams.shows_progress };
        let mut times = Times::default();

        let (mesh, num_land) = times.of("mesh", scene)?;
        let options = RenderOptions::default().size(SIZE[0], SIZE[1]).samples(2).light([-0.7, -0.25, 0.9]);
        let device = device.for_work(Work::of_rays(mesh.len(), options.max_rays(), 1), streams.err)?;
        let bvh = times.of("build", || Bvh::build(&device, &mesh))?;
        let camera = Camera::new([9.0, -17.0, 9.5], [0.3, 0.0, 1.8]).field_of_view(35.0);
        let color = |triangle: u32| if (triangle as usize) < num_land { land(&mesh, triangle) } else { KNOT };
        let draw = || Ok(render::image_with(&bvh, &mesh, &camera, &options, color)?);
        let image =
            times.of("trace", || steps.step("picture", "rays", draw, |image| image.num_rays as usize))?;
        let num_rays = image.num_rays as usize;
        let mut pixels = image.pixels;
        // Files before text, so that they are written even if the pipe is closed early.
        times.of("write", || {
            write_frames(&self.out, SIZE, 1, |_| Ok::<_, kauri::Error>(std::mem::take(&mut pixels)))
        })?;

        writeln!(streams.out, "{} triangles, {} rays", thousands(mesh.len()), thousands(num_rays))?;
        write_summary(streams.out, &device, &times.text(), [&self.out])
    }
}

/// Returns terrain and knot as one mesh, and the number of its terrain triangles.
fn scene() -> kauri::Result<(Mesh, usize)> {
    let land = shapes::terrain(SIDE, SEED)?;
    let knot = shapes::torus_knot([2, 3], RINGS, SIDES)?;
    let first = land.vertices().len() as u32;
    let mut vertices: Vec<[f32; 3]> =
        land.vertices().iter().map(|&[x, y, z]| [LAND * (x - 0.5), LAND * (y - 0.5), LAND * z]).collect();
    vertices.extend(knot.vertices().iter().map(|&[x, y, z]| [x, y, z + ABOVE]));
    let mut triangles = land.triangles().to_vec();
    triangles.extend(knot.triangles().iter().map(|corners| corners.map(|corner| corner + first)));
    Ok((Mesh::new(vertices, triangles)?, land.len()))
}

const KNOT: [f32; 3] = [0.85, 0.36, 0.14];
const GRASS: [f32; 3] = [0.30, 0.42, 0.17];
const ROCK: [f32; 3] = [0.52, 0.47, 0.42];

/// Color of a terrain triangle: grass on level ground, rock on steep ground.
fn land(mesh: &Mesh, triangle: u32) -> [f32; 3] {
    let [a, b, c] = mesh.corners(triangle as usize);
    let greatest = a[2].max(b[2]).max(c[2]) - a[2].min(b[2]).min(c[2]);
    // The rise across a square, in sides of a square.
    let rise = (greatest / (LAND / SIDE as f32)).clamp(0.0, 1.0);
    [0, 1, 2].map(|channel| GRASS[channel] + rise * (ROCK[channel] - GRASS[channel]))
}
