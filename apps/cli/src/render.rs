//! `kauri render`: ray-traced pictures of a mesh.

mod film;
mod look;
mod model;

use clap::{ArgGroup, Args};
use std::path::PathBuf;

use super::device::{DeviceOption, Work};
use super::names::{PICTURE, with_extension};
use super::picture::write_frames;
use super::progress::Steps;
use super::step::Step;
use super::text::thousands;
use super::{Result, Streams};
use film::{Animation, Film, IndexKind};
use kauri::io::read_mesh;
use kauri::mesh::Mesh;
use look::{Look, UpAxis};
use model::Model;

#[derive(Args)]
#[command(group = ArgGroup::new("mesh").required(true))]
pub(super) struct Render {
    /// File of a triangle mesh: PLY or OBJ
    #[arg(group = "mesh")]
    file: Option<PathBuf>,
    /// Generate a mesh instead of reading a file
    #[arg(long, value_enum, group = "mesh")]
    model: Option<Model>,
    /// Approximate number of triangles of the generated mesh
    #[arg(long, value_name = "N", default_value_t = 100_000, conflicts_with = "file")]
    triangles: u32,
    /// Write the picture to this file
    #[arg(long, value_name = "FILE.png", value_parser = with_extension(PICTURE))]
    out: PathBuf,
    #[command(flatten)]
    device: DeviceOption,
    /// Index of the triangles; the picture does not depend on it
    #[arg(long, value_enum, default_value = "bvh")]
    index: IndexKind,
    #[command(flatten)]
    look: Look,
    /// Deform the mesh over time and write an animation (APNG); the index is rebuilt for every frame
    #[arg(long, value_enum)]
    animate: Option<Animation>,
    /// Number of frames of the animation
    #[arg(long, value_name = "N", default_value_t = 24, requires = "animate",
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    frames: u32,
    /// Hide the progress bar (which is shown only on a terminal)
    #[arg(long)]
    quiet: bool,
}

impl Render {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let options = self.look.options(self.up_axis());
        options.check()?;
        let device = self.device.choice()?;
        let mut read = Step::of("mesh", "triangles");
        let mesh = read.time(|| self.mesh())?;
        read.count += mesh.len();

        let steps = Steps { are_shown: streams.shows_progress && !self.quiet };
        let count = if self.animate.is_some() { self.frames } else { 1 };
        let device = device.for_work(Work::of_rays(mesh.len(), options.max_rays(), count), streams.err)?;
        let mut film = Film::new(&device, &mesh, self.animate.map(Animation::motion), count);
        let camera = self.look.camera(&film.vertex_positions()?, self.up_axis());
        let size = [options.width, options.height];
        write_frames(&self.out, size, count, |i| film.frame(i, self.index, &camera, &options, steps))?;

        let out = &mut *streams.out;
        writeln!(out, "{} triangles, {} x {} pixels\n", thousands(mesh.len()), size[0], size[1])?;
        out.write_all(Step::table([&read, &film.build, &film.trace]).as_bytes())?;
        writeln!(out, "\ndevice  {device}; {}\nwrote   {}", device.reason(), self.out.display())?;
        Ok(())
    }

    fn mesh(&self) -> Result<Mesh> {
        match (&self.file, self.model) {
            (Some(file), _) => Ok(read_mesh(file)?),
            (None, model) => Ok(model.unwrap_or(Model::TorusKnot).mesh(self.triangles)?),
        }
    }

    /// Returns the default up axis: y for files, by convention, and z for generated meshes.
    fn up_axis(&self) -> UpAxis {
        if self.file.is_some() { UpAxis::Y } else { UpAxis::Z }
    }
}
