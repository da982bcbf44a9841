//! Point clouds: reading of LAS and LAZ files beside the crate `las` alone, trees over their integers, and quadtrees of more points than
//! memory.

use super::{Settings, Suite};
use crate::measure::{Effort, Timing, peak_of_memory};
use crate::report::{Phase, Report, Row};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::io::{Attributes, CloudFiles};
use kauri::lidar::{Lidar, LidarPoint};
use kauri::quadtree::CellTree;
use kauri::query::{DeviceIndex, DeviceQueries};
use kauri::{
    Coordinate, Device, Error, KdTree, KdTreeOptions, PointSource, Quadtree, QuadtreeOptions, QueryOptions,
    Result, Scalar,
};
use las::point::{Classification, Format};
use las::{Builder, Point, Reader, Transform, Vector, Writer};
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::path::Path;

/// The suites of this module.
pub const SUITES: [(&str, Suite); 3] = [("clouds", run), ("lattice", lattice), ("quadtree-to-file", to_file)];

/// Device memory of builds, in bytes.
const CAP: u64 = 4 << 30;
/// Points that are generated at a time.
const CHUNK: usize = 1 << 22;
/// Files: the point format, and the ending of the name.
const FILES: [(u8, &str); 3] = [(1, "laz"), (6, "laz"), (1, "las")];

fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir().map_err(|source| Error::Io { path: std::env::temp_dir(), source })?;
    for &n in &settings.sizes {
        let scan = Lidar::new(n as u64, settings.seed);
        for (format, ending) in FILES {
            let path = folder.path().join("scan").with_extension(ending);
            write(&scan, &path, format).map_err(|error| failed(&path, &error))?;
            read(settings, report, &path, n, &format!("lidar-like, {ending}, format {format}"))?;
        }
    }
    Ok(())
}

pub(super) fn failed(path: &Path, error: &las::Error) -> Error {
    Error::Io { path: path.into(), source: std::io::Error::other(error.to_string()) }
}

/// Writes a scan.
pub(super) fn write(scan: &Lidar, path: &Path, format: u8) -> las::Result<()> {
    let (lattice, mut builder) = (scan.lattice(), Builder::from((1, 4)));
    builder.point_format = Format::new(format)?;
    builder.point_format.is_compressed = path.extension().is_some_and(|ending| ending == "laz");
    builder.has_wkt_crs = format >= 6;
    let [x, y, z] =
        [0, 1, 2].map(|axis| Transform { scale: lattice.scale[axis], offset: lattice.offset[axis] });
    builder.transforms = Vector { x, y, z };
    let mut writer = Writer::from_path(path, builder.into_header()?)?;
    for first in (0..scan.len()).step_by(CHUNK) {
        let to_point = |i: u64| {
            let LidarPoint { position: [x, y, z], intensity, class, .. } = scan.point(i);
            let classification = Classification::new(class as u8).expect("classes of the LAS format");
            let (return_number, gps_time) = (1, Some(1e5 + i as f64 * 2e-6));
            Point {
                x,
                y,
                z,
                intensity,
                classification,
                return_number,
                number_of_returns: 1,
                gps_time,
                ..Point::default()
            }
        };
        let points: Vec<Point> =
            (first..scan.len().min(first + CHUNK as u64)).into_par_iter().map(to_point).collect();
        points.into_iter().try_for_each(|point| writer.write_point(point))?;
    }
    writer.close()
}

/// Reads a file in each way.
fn read(settings: &Settings, report: &mut Report, path: &Path, n: usize, input: &str) -> Result<()> {
    let bytes = std::fs::metadata(path).map_err(|source| Error::Io { path: path.into(), source })?.len();
    let row = |work: &str| Row {
        work: work.to_owned(),
        input: input.to_owned(),
        n: n as u64,
        items: Some(n as u64),
        bytes: Some(bytes),
        ..Row::default()
    };
    let effort = settings.effort;
    let timing =
        effort.wall(|| std::fs::read(path).map_err(|source| Error::Io { path: path.into(), source }))?;
    report.push(Row { timing: Some(timing), ..row("copy of the file") });
    let none = Attributes::default();
    let timing = effort.wall(|| CloudFiles::open(&[path])?.read(&none))?;
    report.push(Row { timing: Some(timing), ..row("read coordinates") });
    let read_all = || -> las::Result<_> {
        let data = Reader::from_path(path)?.read_all()?;
        let axes = data.x_raw().zip(data.y_raw()).zip(data.z_raw());
        let points: Vec<[i32; 3]> = axes.map(|((x, y), z)| [x, y, z]).collect();
        Ok((points, data))
    };
    let read_all = || read_all().map_err(|error| failed(path, &error));
    assert!(read_all()?.0 == CloudFiles::open(&[path])?.read(&none)?.points, "the points differ");
    let timing = effort.wall(read_all)?;
    let (row, check) = (row("read coordinates"), Some("the points are those of kauri"));
    report.push(Row { system: "las 0.11".to_owned(), timing: Some(timing), check, ..row });
    Ok(())
}

/// Measures trees over the integers of a scan, and over the same numbers as `f64`.
fn lattice(settings: &Settings, report: &mut Report) -> Result<()> {
    for &n in &settings.sizes {
        let (scan, mut points) = (Lidar::new(n as u64, settings.seed), Vec::new());
        for point in scan.points(0..scan.len())? {
            points.push(scan.lattice().nearest(point.position)?);
        }
        let as_f64 = |point: &[i32; 3]| point.map(f64::from);
        on_lattice::<i32>(settings, report, &points)?;
        on_lattice::<f64>(settings, report, &points.iter().map(as_f64).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn on_lattice<C: Coordinate + Scalar<Coord = C>>(
    settings: &Settings,
    report: &mut Report,
    points: &[[C; 3]],
) -> Result<()> {
    let gpu = settings.device.gpu().ok_or(Error::NoDevice)?;
    let (stream, mut workspace, n) = (Stream::new(gpu)?, Workspace::new(gpu), points.len());
    let mut push = |work: &str, dims: usize, timing: Timing, temp_bytes: u64| {
        report.push(Row {
            work: work.to_owned(),
            input: format!("{} x {dims}, lidar-like", C::NAME),
            n: n as u64,
            timing: Some(timing),
            items: Some(n as u64),
            temp_bytes: Some(temp_bytes),
            ..Row::default()
        });
    };
    let coords = Buffer::from_slice(&stream, points.as_flattened(), "points")?;
    let options = KdTreeOptions::default();
    let mut tree = KdTree::<[C; 3]>::build_on(&stream, &mut workspace, &coords, &options)?;
    let timing =
        settings.effort.events(&stream, || tree.rebuild_on(&stream, &mut workspace, &coords, &options))?;
    push("build of a k-d tree", 3, timing, workspace.bytes());
    let mut workspace = Workspace::new(gpu);
    let prepared = tree.prepare(&stream, &QueryOptions::default())?;
    for k in [1, 8, 32] {
        let mut ids = Buffer::uninitialized(gpu, n * k, "ids of neighbors")?;
        let mut dist2 = Buffer::uninitialized(gpu, n * k, "distances of neighbors")?;
        let queries = DeviceQueries::SelfQuery { include_self: false };
        let timing = settings.effort.events(&stream, || {
            tree.nearest_on(&stream, &mut workspace, queries, k, &prepared, &mut ids, &mut dist2)
        })?;
        push(&format!("{k} nearest of all points"), 3, timing, workspace.bytes());
    }
    let plane: Vec<[C; 2]> = points.iter().map(|&[x, y, _]| [x, y]).collect();
    let coords = Buffer::from_slice(&stream, plane.as_flattened(), "points")?;
    let (mut workspace, options) = (Workspace::new(gpu), QuadtreeOptions::default());
    let timing = settings.effort.wall(|| {
        let tree = CellTree::<[C; 2], 2>::build_on(&stream, &mut workspace, &coords, &options)?;
        stream.synchronize().map(|()| tree)
    })?;
    push("build of a quadtree", 2, timing, workspace.bytes());
    Ok(())
}

fn to_file(settings: &Settings, report: &mut Report) -> Result<()> {
    let gpu = settings.device.gpu().ok_or(Error::NoDevice)?;
    let folder = tempfile::tempdir().map_err(|source| Error::Io { path: std::env::temp_dir(), source })?;
    let path = folder.path().join("scan.kauri");
    // A run of the largest sizes takes minutes.
    let effort = Effort { warm_up: 0, ..settings.effort };
    for &n in &settings.sizes {
        let scan = Lidar::new(n as u64, settings.seed);
        let row = |work: &str| Row {
            work: work.to_owned(),
            input: "i32 x 2, lidar-like, generated".to_owned(),
            n: n as u64,
            items: Some(n as u64),
            ..Row::default()
        };
        let mut go_on = |_: kauri::Step| ControlFlow::Continue(());
        let timing = effort.wall(|| {
            let mut num_points = 0;
            let count = &mut |chunk: kauri::PointChunk<'_, [i32; 2]>| {
                num_points += chunk.points.len();
                Ok(ControlFlow::Continue(()))
            };
            points_of(&scan).for_each_chunk(count).map(|()| num_points)
        })?;
        report.push(Row { timing: Some(timing), ..row("generate the points") });
        let device = Device::from_gpu(gpu.with_memory_limit(CAP));
        let options = QuadtreeOptions::default();
        let (mut stats, mut host_bytes) = (kauri::Stats::default(), 0);
        let timing = effort.wall(|| {
            let build = || Quadtree::build_to_file(&device, points_of(&scan), &path, &options, &mut go_on);
            let (built, bytes) = peak_of_memory(build);
            (stats, host_bytes) = (built?, bytes);
            Ok(())
        })?;
        let phase = |phase: &kauri::Phase| Phase {
            name: phase.name.to_owned(),
            ms: phase.duration.as_secs_f64() * 1e3,
        };
        report.push(Row {
            timing: Some(timing),
            phases: stats.phases.iter().map(phase).collect(),
            temp_bytes: Some(stats.temp_bytes),
            bytes: std::fs::metadata(&path).ok().map(|metadata| metadata.len()),
            note: Some(format!("{:.2} GiB of host memory", host_bytes as f64 / (1_u64 << 30) as f64)),
            ..row("build to a file in 4 GiB")
        });
    }
    Ok(())
}

/// Returns the points of a scan in chunks.
fn points_of(scan: &Lidar) -> impl PointSource<Point = [i32; 2]> + '_ {
    let lattice = scan.lattice();
    (0..scan.len()).step_by(CHUNK).map(move |first| -> Result<Vec<[i32; 2]>> {
        let point = |i: u64| {
            let [x, y, _] = scan.point(i).position;
            lattice.nearest([x, y])
        };
        (first..scan.len().min(first + CHUNK as u64)).into_par_iter().map(point).collect()
    })
}
