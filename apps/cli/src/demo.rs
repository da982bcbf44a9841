//! `kauri demo`: end-to-end demos on real or generated data.

mod join;
mod nearest;
mod quadtree;
mod render;
#[cfg(feature = "terrain")]
mod terrain;
mod times;

use clap::{Args, Subcommand};
use std::io::Write;
use std::path::PathBuf;

use super::{Result, Streams};
use kauri::Device;

/// Without a name, the demo is `nearest`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Demo {
    #[command(subcommand)]
    which: Option<Which>,
    #[command(flatten)]
    nearest: nearest::Nearest,
}

#[derive(Subcommand)]
enum Which {
    /// Find the nearest cities of every airport of the world (the default demo)
    Nearest(nearest::Nearest),
    /// Find the best pairs of a city and an airport: large population, low altitude
    Join(join::Join),
    /// Build a quadtree of a generated laser scan, and draw it
    Quadtree(quadtree::QuadtreeDemo),
    /// Render a knot above a terrain, with sun and shadows
    Render(render::RenderDemo),
    /// Write a generated laser scan as LAZ files, and compute a terrain model of them and its hillshade
    #[cfg(feature = "terrain")]
    Terrain(terrain::TerrainDemo),
}

impl Demo {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        match self.which {
            Some(Which::Nearest(nearest)) => nearest.run(streams),
            Some(Which::Join(join)) => join.run(streams),
            Some(Which::Quadtree(quadtree)) => quadtree.run(streams),
            Some(Which::Render(render)) => render.run(streams),
            #[cfg(feature = "terrain")]
            Some(Which::Terrain(terrain)) => terrain.run(streams),
            None => self.nearest.run(streams),
        }
    }
}

/// Prints the last lines of a demo: its device, its times, and the files that it wrote.
fn write_summary<'a>(
    out: &mut dyn Write,
    device: &Device,
    times: &str,
    files: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<()> {
    writeln!(out, "\ndevice  {device}; {}\ntime    {times}", device.reason())?;
    for file in files {
        writeln!(out, "wrote   {}", file.display())?;
    }
    Ok(())
}
