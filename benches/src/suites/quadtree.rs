//! Builds of quadtrees and octrees in device memory, from codes and level by level. Wall-clock times, since the host waits for node counts.
//!
//! The baseline is `benches/rivals/quadtree_cub.cu`: CUB's sort of 64-bit codes, which is one step of a build.

mod gluck;
mod host;
mod queries;

use super::{Settings, Suite, copy, unless_too_large};
use crate::points::{self, Number, noise};
use crate::report::{Report, Row};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::quadtree::{CartesianPoint, CellTree, QuadtreeOptions};
use kauri::research::quadtree::BuildAlgorithm;
use kauri::{Error, Result};
use rayon::prelude::*;

/// The suites of this module.
pub const SUITES: [(&str, Suite); 5] = [
    ("quadtree", run),
    ("quadtree-host", host::run),
    ("quadtree-gluck", gluck::run),
    ("quadtree-gluck-host", gluck::run_from_host),
    ("quadtree-queries", queries::run),
];

/// Maximum numbers of points of a leaf (Gluck's z).
const LEAF_POINTS: [u32; 3] = [20, 200, 2000];

fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        builds(settings, report, "uniform", &points::uniform::<f32, 2>(n, settings.seed), &LEAF_POINTS)?;
        builds(settings, report, "uniform", &points::uniform::<f32, 3>(n, settings.seed), &LEAF_POINTS[..1])?;
        builds(settings, report, "uniform", &points::uniform::<f64, 2>(n, settings.seed), &LEAF_POINTS[..1])?;
        if n > 100_000_000 {
            continue;
        }
        let lidar: Vec<[f32; 2]> =
            points::lidar(n, settings.seed).into_par_iter().map(|[x, y, _]| [x, y]).collect();
        builds(settings, report, "lidar-like", &lidar, &LEAF_POINTS)?;
        drop(lidar);
        for (input, point) in SKEWED {
            let random = |i: u64| {
                [0, 1].map(|axis| (noise(settings.seed, 2 * i + axis) >> 40) as f32 / (1 << 24) as f32)
            };
            let points: Vec<[f32; 2]> = (0..n as u64).into_par_iter().map(|i| point(i, random(i))).collect();
            builds(settings, report, input, &points, &LEAF_POINTS[..1])?;
        }
    }
    Ok(())
}

/// Returns a point, given its index and a random point.
type Skew = fn(u64, [f32; 2]) -> [f32; 2];

/// Uneven distributions of points.
const SKEWED: [(&str, Skew); 3] = [
    ("on a line", |_, [x, _]| [x, x]),
    ("90 % in one cell", |i, [x, y]| if i % 10 > 0 { [x / 16384.0, y / 16384.0] } else { [x, y] }),
    ("30 a place", |i, _| {
        let [x, y] = [0, 1].map(|axis| (noise(7, i / 30 * 2 + axis) >> 40) as f32 / (1 << 24) as f32);
        [x, y]
    }),
];

fn builds<C: Number, const D: usize>(
    settings: &Settings,
    report: &mut Report,
    input: &str,
    points: &[[C; D]],
    leaf_points: &[u32],
) -> Result<()>
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    let gpu = settings.device.gpu().ok_or(Error::NoDevice)?;
    for &z in leaf_points {
        for (algorithm, how) in
            [(BuildAlgorithm::Codes, "build"), (BuildAlgorithm::LEVELS, "build level by level")]
        {
            unless_too_large((|| {
                let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
                let coords = Buffer::from_slice(&stream, points.as_flattened(), "points")?;
                let options = QuadtreeOptions::default().leaf_points(z).algorithm(algorithm);
                let timing = settings.effort.wall(|| {
                    let tree = CellTree::<[C; D], D>::build_on(&stream, &mut workspace, &coords, &options)?;
                    stream.synchronize()?;
                    Ok(tree)
                })?;
                report.push(Row {
                    work: format!("{how}, {z} points a leaf"),
                    input: format!("{} x {D}, {input}", C::NAME),
                    n: points.len() as u64,
                    timing: Some(timing),
                    items: Some(points.len() as u64),
                    temp_bytes: Some(workspace.bytes()),
                    ..Row::default()
                });
                Ok(())
            })())?;
        }
    }
    Ok(())
}
