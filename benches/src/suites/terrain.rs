//! Elevation models of the ground of a scan in device memory, and its Delaunay triangulation; from LAZ files to GeoTIFF files; and of more
//! points than memory. Wall-clock times from unsorted points on, since the host waits for bounds and counts.

use super::clouds::{failed, write};
use super::{Settings, Suite, copy};
use crate::measure::{Effort, Timing, peak_of_memory};
use crate::report::{Report, Row};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::io::{Attributes, CloudFiles, CloudFilter, GeoTiffOptions, write_geotiff};
use kauri::lidar::{Lidar, LidarClass};
use kauri::terrain::{Method, RasterGrid, Spline, Statistic, Terrain, TerrainOptions, delaunay_2d_on};
use kauri::{Device, Error, Result};
use rayon::prelude::*;
use std::ops::ControlFlow;

/// The suites of this module.
pub const SUITES: [(&str, Suite); 3] =
    [("terrain", run), ("terrain-files", from_files), ("terrain-windows", in_windows)];

/// Memory of the host and of the device for models in windows, in bytes.
const MEMORY: [u64; 2] = [16 << 30, 4 << 30];

/// Points that are generated at a time.
const CHUNK: u64 = 1 << 22;
/// The side of a cell in meters.
const RESOLUTION: f64 = 1.0;

/// Numbers of points of a leaf of splines (Agarwal's z).
const SPLINE_LEAF_POINTS: [u32; 4] = [10, 20, 40, 80];
/// Most points of a scan for splines.
const MOST_FOR_SPLINES: usize = 40_000_000;

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
        let splines = SPLINE_LEAF_POINTS.into_iter().filter(|_| n <= MOST_FOR_SPLINES).map(|leaf_points| {
            let method = Method::Spline(Spline::default().leaf_points(leaf_points));
            (format!("spline, {leaf_points} points a leaf"), method)
        });
        for (name, method) in
            METHODS.map(|(name, method)| (name.to_owned(), method)).into_iter().chain(splines)
        {
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

/// Measures models of the ground of LAZ files, beside the crate `las` that only reads them.
fn from_files(settings: &Settings, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir().map_err(|source| Error::Io { path: std::env::temp_dir(), source })?;
    let (path, out) = (folder.path().join("scan.laz"), folder.path().join("dem.tif"));
    for &n in &settings.sizes {
        let scan = Lidar::new(n as u64, settings.seed);
        write(&scan, &path, 6).map_err(|error| failed(&path, &error))?;
        let row = |work: &str| Row {
            work: work.to_owned(),
            input: "lidar-like, laz, format 6".to_owned(),
            n: n as u64,
            items: Some(n as u64),
            ..Row::default()
        };
        let read = || las::Reader::from_path(&path)?.read_all();
        let timing = settings.effort.wall(|| read().map_err(|error| failed(&path, &error)))?;
        report.push(Row { system: "las 0.11".to_owned(), timing: Some(timing), ..row("read") });
        let timing = settings.effort.wall(|| CloudFiles::open(&[&path])?.read(&Attributes::default()))?;
        report.push(Row { timing: Some(timing), ..row("read") });
        let grid = RasterGrid::covering(scan.bounds(), RESOLUTION)?;
        for (name, method) in METHODS.into_iter().take(2) {
            let timing = settings.effort.wall(|| {
                let files = CloudFiles::open(&[&path])?.filter(CloudFilter::default().classes([2]));
                let options = TerrainOptions::default();
                let source = files.points();
                let terrain =
                    Terrain::read(&settings.device, source, &files.lattice(), &options, &mut go_on)?;
                write_geotiff(&out, &terrain.raster(&grid, &method)?, &GeoTiffOptions::default())
            })?;
            report
                .push(Row { timing: Some(timing), ..row(&format!("read, raster of 1 m, {name}, GeoTIFF")) });
        }
    }
    Ok(())
}

fn go_on(_: kauri::Step) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Measures a model of more points than the memory that it may take.
fn in_windows(settings: &Settings, report: &mut Report) -> Result<()> {
    // A run of the largest sizes takes minutes.
    let effort = Effort { warm_up: 0, ..settings.effort };
    let limited = settings.device.gpu().map(|gpu| Device::from_gpu(gpu.with_memory_limit(MEMORY[1])));
    let device = limited.unwrap_or(Device::cpu());
    for &n in &settings.sizes {
        let scan = Lidar::new(n as u64, settings.seed);
        let row = |work: &str| Row {
            work: work.to_owned(),
            input: "lidar-like, ground, generated".to_owned(),
            n: n as u64,
            items: Some(n as u64),
            ..Row::default()
        };
        let timing = effort.wall(|| chunks(&scan).try_for_each(|chunk| chunk.map(|_| ())))?;
        report.push(Row { timing: Some(timing), ..row("generate the points") });
        let options = TerrainOptions::default().host_bytes(MEMORY[0] / 2).device_bytes(MEMORY[1] / 8 * 7);
        let gib = |bytes: u64| format!("{:.2} GiB of host memory", bytes as f64 / (1_u64 << 30) as f64);
        let (mut terrain, mut host_bytes) = (None, 0);
        let timing = effort.wall(|| {
            let read = || Terrain::read(&device, chunks(&scan), &scan.lattice(), &options, &mut go_on);
            let (read, bytes) = peak_of_memory(read);
            (terrain, host_bytes) = (Some(read?), bytes);
            Ok(())
        })?;
        report.push(Row { timing: Some(timing), note: Some(gib(host_bytes)), ..row("generate, read") });
        let terrain = terrain.expect("it was read");
        let grid = RasterGrid::covering(scan.bounds(), RESOLUTION)?;
        for (name, method) in METHODS.into_iter().take(2) {
            let timing = effort.wall(|| {
                let (raster, bytes) = peak_of_memory(|| terrain.raster(&grid, &method));
                host_bytes = bytes;
                raster
            })?;
            let work = format!("raster of 1 m in windows, {name}");
            report.push(Row {
                timing: Some(timing),
                items: Some(grid.len() as u64),
                note: Some(gib(host_bytes)),
                ..row(&work)
            });
        }
    }
    Ok(())
}

/// Returns the ground points of a scan on its lattice, in chunks.
fn chunks(scan: &Lidar) -> impl Iterator<Item = Result<Vec<[i32; 3]>>> + '_ {
    let lattice = scan.lattice();
    (0..scan.len()).step_by(CHUNK as usize).map(move |first| {
        let points = (first..scan.len().min(first + CHUNK)).into_par_iter().map(|i| scan.point(i));
        let ground = points.filter(|point| point.class == LidarClass::Ground);
        ground.map(|point| lattice.nearest(point.position)).collect()
    })
}

/// Returns the ground points of a scan on its lattice.
fn ground(scan: &Lidar) -> Result<Vec<[i32; 3]>> {
    let mut points = Vec::new();
    for chunk in chunks(scan) {
        points.extend(chunk?);
    }
    Ok(points)
}
