//! The height of the ground all over a laser scan, from the points of each leaf of a quadtree and of the leaves around it (Agarwal, Arge,
//! Danner 2006), and how much of it fewer points keep.
//!
//! `cargo run --release --example 06_lidar_segments -- [NUM_POINTS]`

mod arguments;

use arguments::arguments;
use kauri::lidar::{Lidar, LidarClass};
use kauri::quadtree::{NO_NODE, Node, Quadtree, QuadtreeOptions};
use kauri::{Device, Result};
use rayon::prelude::*;
use std::time::Instant;

/// Most points of a leaf.
const LEAF_POINTS: u32 = 20;
/// Centimeters between heights of the grid.
const STEP: usize = 200;
/// One of so many points is not used, but compared with.
const CHECKED: usize = 20;

/// x and y in centimeters, as in a LAS file, and a height in meters.
type Point = ([i32; 2], f64);

fn main() -> Result<()> {
    let num_points =
        arguments("06_lidar_segments [NUM_POINTS]", 1, str::parse::<u64>).pop().unwrap_or(100_000);
    let device = Device::best()?;
    println!("on {device}: {}", device.reason());

    let scan = Lidar::with_density(num_points, 0.5, 4);
    let lattice = scan.lattice();
    let mut ground: Vec<Point> = Vec::new();
    for point in scan.points(0..scan.len())?.into_iter().filter(|point| point.class == LidarClass::Ground) {
        let [x, y, height] = point.position;
        ground.push((lattice.nearest([x, y])?, height));
    }
    let (used, checked): (Vec<_>, Vec<_>) = ground.iter().enumerate().partition(|(i, _)| i % CHECKED > 0);
    let [used, checked]: [Vec<Point>; 2] =
        [used, checked].map(|some| some.into_iter().map(|(_, &p)| p).collect());
    println!("{num_points} points, {} of them of the ground", ground.len());

    let start = Instant::now();
    let segments = Segments::of(&device, &used)?;
    println!("{} leaves and those around each in {:.1?}", segments.leaves.len(), start.elapsed());

    // An elevation model: heights on a grid.
    let side = ((scan.bounds()[1][0] - scan.bounds()[0][0]) * 100.0) as i32;
    let grid: Vec<_> =
        (0..side).step_by(STEP).flat_map(|y| (0..side).step_by(STEP).map(move |x| [x, y])).collect();
    let start = Instant::now();
    let heights = segments.heights(&grid, true)?;
    let found = heights.iter().flatten().copied();
    println!(
        "{} heights on a grid in {:.1?}, {:.1} to {:.1} meters",
        found.clone().count(),
        start.elapsed(),
        found.clone().fold(f64::INFINITY, f64::min),
        found.fold(f64::NEG_INFINITY, f64::max),
    );

    // From the points of the leaf alone heights jump at its border, and are worse.
    for (with_around, of) in [(false, "the leaf alone"), (true, "the leaf and those around it")] {
        println!("mean error by {of}: {:.3} meters", segments.mean_error(&checked, with_around)?);
    }

    // A sample of the points, about one a node of a level; a leaf alone has no neighbors.
    for level in (0..=segments.tree.depth()).rev() {
        let some: Vec<Point> =
            segments.tree.level_of_detail(level)?.into_iter().map(|id| used[id as usize]).collect();
        if some.len() <= LEAF_POINTS as usize {
            break;
        }
        let error = Segments::of(&device, &some)?.mean_error(&checked, true)?;
        println!("level {level:>2}: {:>7} points, mean error {error:.3} meters", some.len());
    }
    Ok(())
}

/// Points in segments: the leaves of a quadtree, each with those around it.
struct Segments {
    tree: Quadtree<[i32; 2]>,
    /// The points in the order of the tree, so that those of a leaf follow each other.
    points: Vec<Point>,
    nodes: Vec<Node>,
    /// The numbers of the leaves, and a row of leaves around each.
    leaves: Vec<u32>,
    around: kauri::Rows,
}

impl Segments {
    fn of(device: &Device, points: &[Point]) -> Result<Self> {
        let places: Vec<_> = points.iter().map(|&(place, _)| place).collect();
        let options = QuadtreeOptions::default().leaf_points(LEAF_POINTS);
        let tree = Quadtree::build(device, &places, &options)?;
        let (points, nodes) = (tree.payloads_in_order(points)?, tree.nodes()?.into_owned());
        let leaves: Vec<u32> = (0..).zip(&nodes).filter(|(_, node)| node.is_leaf()).map(|(i, _)| i).collect();
        let around = tree.adjacent_leaves(&leaves)?;
        Ok(Self { tree, points, nodes, leaves, around })
    }

    /// The heights of places, each from the points of its leaf and maybe of those around; `None` without points there.
    fn heights(&self, places: &[[i32; 2]], with_around: bool) -> Result<Vec<Option<f64>>> {
        let leaves = self.tree.leaf_of(places)?;
        let height = |(&place, &leaf): (&[i32; 2], &u32)| {
            if leaf == NO_NODE {
                return None;
            }
            let row = self.leaves.binary_search(&leaf).expect("the number of a leaf");
            let around = if with_around { self.around.row(row) } else { &[] };
            let points_of = |leaf: u32| {
                let node = self.nodes[leaf as usize];
                &self.points[node.start as usize..node.end as usize]
            };
            weighted(place, points_of(leaf).iter().chain(around.iter().flat_map(|&leaf| points_of(leaf))))
        };
        Ok(places.par_iter().zip(&leaves).map(height).collect())
    }

    /// How far off heights are on average where they are known and the tree has points.
    fn mean_error(&self, known: &[Point], with_around: bool) -> Result<f64> {
        let places: Vec<_> = known.iter().map(|&(place, _)| place).collect();
        let heights = self.heights(&places, with_around)?;
        let errors: Vec<f64> = known
            .iter()
            .zip(heights)
            .filter_map(|((_, known), found)| Some((found? - known).abs()))
            .collect();
        Ok(errors.iter().sum::<f64>() / errors.len().max(1) as f64)
    }
}

/// The mean of heights, weighted by the inverse fourth power of distance.
fn weighted<'a>(place: [i32; 2], points: impl Iterator<Item = &'a Point>) -> Option<f64> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for &(at, height) in points {
        let offset = [0, 1].map(|axis| f64::from(at[axis]) - f64::from(place[axis]));
        // At a point its own height, and no division by zero.
        let weight = (offset[0].powi(2) + offset[1].powi(2)).max(1.0).powi(-2);
        sum += weight * height;
        weights += weight;
    }
    (weights > 0.0).then(|| sum / weights)
}
