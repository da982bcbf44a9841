//! Elevation models of the ground of a scan in device memory, and its Delaunay triangulation. Wall-clock times from unsorted points on, since
//! the host waits for bounds and counts.

use super::{Settings, Suite, copy};
use crate::measure::Timing;
use crate::report::{Report, Row};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::lidar::{Lidar, LidarClass};
use kauri::terrain::{Method, RasterGrid, Statistic, Terrain, delaunay_2d_on};
use kauri::{Error, Result};
use rayon::prelude::*;

/// The suites of this module.
pub const SUITES: [(&str, Suite); 1] = [("terrain", run)];

/// Points that are generated at a time.
const CHUNK: u64 = 1 << 22;
/// The side of a cell in meters.
const RESOLUTION: f64 = 1.0;

/// The methods by name.
const METHODS: [(&str, Method); 6] = [
    ("TIN", Method::Tin { max_edge: f64::INFINITY }),
    ("12 nearest, inverse distance", Method::Idw { k: 12, radius: f64::INFINITY, power: 2 }),
    ("nearest", Method::Nearest { radius: f64::INFINITY }),
    ("mean in a radius", Method::Statistic { statistic: Statistic::Mean, radius: std::f64::consts::SQRT_2 }),
    (
        "inverse distance in a radius",
        Method::Statistic { statistic: Statistic::Idw { power: 2 }, radius: std::f64::consts::SQRT_2 },
    ),
    ("natural neighbor", Method::NaturalNeighbor),
];

fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let gpu = settings.device.gpu().ok_or(Error::NoDevice)?;
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        let scan = Lidar::new(n as u64, settings.seed);
        let points = ground(&scan)?;
        let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
        let on_device = Buffer::from_slice(&stream, &points, "points of a terrain")?;
        let (grid, lattice) = (RasterGrid::covering(scan.bounds(), RESOLUTION)?, scan.lattice());
        let mut push = |work: String, items: usize, timing: Timing, temp_bytes: u64| {
            report.push(Row {
                work,
                input: format!("lidar-like, {} ground points", points.len()),
                n: n as u64,
                timing: Some(timing),
                items: Some(items as u64),
                temp_bytes: Some(temp_bytes),
                ..Row::default()
            });
        };
        let timing = settings.effort.wall(|| {
            let terrain = Terrain::new_on(&stream, &mut workspace, &on_device, &lattice)?;
            stream.synchronize()?;
            Ok(terrain)
        })?;
        push("sort".to_owned(), points.len(), timing, workspace.bytes());
        for (name, method) in METHODS {
            let timing = settings.effort.wall(|| {
                let terrain = Terrain::new_on(&stream, &mut workspace, &on_device, &lattice)?;
                let raster = terrain.raster_on(&stream, &mut workspace, &grid, &method)?;
                stream.synchronize()?;
                Ok(raster)
            })?;
            push(format!("raster of 1 m, {name}"), grid.len(), timing, workspace.bytes());
        }
        drop(on_device);
        let positions: Vec<[i32; 2]> = points.par_iter().map(|&[x, y, _]| [x, y]).collect();
        let on_device = Buffer::from_slice(&stream, &positions, "points to triangulate")?;
        let timing = settings.effort.wall(|| {
            let triangles = delaunay_2d_on(&stream, &mut workspace, &on_device)?;
            stream.synchronize()?;
            Ok(triangles)
        })?;
        push("Delaunay triangles".to_owned(), points.len(), timing, workspace.bytes());
    }
    Ok(())
}

/// Returns the ground points of a scan on its lattice.
fn ground(scan: &Lidar) -> Result<Vec<[i32; 3]>> {
    let lattice = scan.lattice();
    let mut points = Vec::new();
    for first in (0..scan.len()).step_by(CHUNK as usize) {
        let chunk = scan.points(first..scan.len().min(first + CHUNK))?;
        let ground = chunk.par_iter().filter(|point| point.class == LidarClass::Ground);
        points.par_extend(
            ground.map(|point| lattice.nearest(point.position).expect("the scan is on its lattice")),
        );
    }
    Ok(points)
}
