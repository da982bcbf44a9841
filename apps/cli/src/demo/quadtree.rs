//! `kauri demo quadtree`: a quadtree of a laser scan, the ground height at a position, and pictures.

mod land;
mod pictures;
mod raster;
mod scan;

use clap::Args;
use std::path::PathBuf;

use super::times::Times;
use super::write_summary;
use crate::device::{DeviceOption, Work};
use crate::names::{PICTURE, with_extension};
use crate::progress::Steps;
use crate::text::thousands;
use crate::{CliError, Result, Streams};
use kauri::lidar::Lidar;
use kauri::quadtree::{Quadtree, QuadtreeOptions};
use land::Land;
use scan::Scan;

#[derive(Args)]
pub(super) struct QuadtreeDemo {
    #[command(flatten)]
    device: DeviceOption,
    /// Number of points of the scan
    #[arg(long, value_name = "N", default_value_t = 2_000_000)]
    points: u32,
    /// Average number of points per square meter
    #[arg(long, value_name = "POINTS", default_value_t = 0.5)]
    per_square_meter: f64,
    /// Seed of the generated scan
    #[arg(long, default_value_t = 4)]
    seed: u64,
    /// Largest number of points in a leaf of the quadtree
    #[arg(long, value_name = "N", default_value_t = 20)]
    leaf_points: u32,
    /// Draw the terrain with the cells of the quadtree, and an enlarged part
    #[arg(long, value_name = "FILE.png", value_parser = with_extension(PICTURE))]
    tree: Option<PathBuf>,
    /// Draw the point density of each leaf of the quadtree
    #[arg(long, value_name = "FILE.png", value_parser = with_extension(PICTURE))]
    density: Option<PathBuf>,
}

impl QuadtreeDemo {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        if !(self.per_square_meter > 0.0 && self.per_square_meter.is_finite()) {
            return Err(CliError::Arguments("--per-square-meter: expected a number above 0"));
        }
        let device = self.device.choice()?.for_work(Work::of_tree(self.points as usize), streams.err)?;
        let steps = Steps { are_shown: streams.shows_progress };
        let mut times = Times::default();

        let lidar = Lidar::with_density(self.points.into(), self.per_square_meter, self.seed);
        let scan = times.of("scan", || Scan::of(lidar, steps))?;
        let options = QuadtreeOptions::default().leaf_points(self.leaf_points);
        let tree = times.of("build", || {
            let build = || Ok(Quadtree::build(&device, &scan.points, &options)?);
            steps.step("quadtree", "points", build, Quadtree::len)
        })?;
        let land = times.of("query", || Land::of(&scan, &tree, self.leaf_points))?;
        let built = tree.stats().total();
        // Files before text, so that they are written even if the pipe is closed early.
        times.of("draw", || self.draw(&land))?;

        let out = &mut *streams.out;
        out.write_all(summary(&land, self.per_square_meter).as_bytes())?;
        let rate = thousands((land.tree.len() as f64 / built.as_secs_f64().max(1e-9)) as usize);
        let times = format!("{}\nbuild   {rate} points a second", times.text());
        write_summary(out, &device, &times, [&self.tree, &self.density].into_iter().flatten())
    }

    fn draw(&self, land: &Land<'_>) -> Result<()> {
        if let Some(path) = &self.tree {
            pictures::draw_tree(path, land)?;
        }
        if let Some(path) = &self.density {
            pictures::draw_density(path, land)?;
        }
        Ok(())
    }
}

/// Describes the tree and its height query at one position.
fn summary(land: &Land<'_>, per_square_meter: f64) -> String {
    let [low, high] = land.bounds;
    let leaves = land.nodes.iter().filter(|node| node.is_leaf());
    let (num_leaves, num_empty) = (leaves.clone().count(), leaves.filter(|node| node.is_empty()).count());
    let mut text = format!(
        "{} points of a laser scan, {per_square_meter} a square meter, of {:.0} by {:.0} meters\n\
         {} nodes, {} leaves, {} of them without points, depth {}\n",
        thousands(land.tree.len()),
        high[0] - low[0],
        high[1] - low[1],
        thousands(land.nodes.len()),
        thousands(num_leaves),
        thousands(num_empty),
        land.tree.depth(),
    );
    if let Some(place) = &land.place {
        let num_points = |&leaf: &u32| land.nodes[leaf as usize].len();
        text += &format!(
            "\nplace   {:.1} {:.1}\n\
             leaf    {} of level {}, {:.1} meters wide, {} points\n\
             around  {} leaves, {} points\n\
             ground  {}\n",
            place.at[0],
            place.at[1],
            place.leaf,
            land.nodes[place.leaf as usize].level,
            land.cells[place.leaf as usize].side,
            num_points(&place.leaf),
            place.around.len(),
            place.around.iter().map(num_points).sum::<u32>(),
            place.height.map_or("none near by".into(), |height| format!("{height:.2} meters high")),
        );
    }
    text
}
