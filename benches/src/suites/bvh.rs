//! Hierarchies (`Bvh`) over boxes and meshes in device memory: builds, refits, and queries that are not rays. Rays are in the suite `sah`.
//!
//! Boxes are cubes of 3 x `f32`, all of one size or of log-normal sizes. On average a point is in one of them. There are as many query boxes,
//! of the same kind. Meshes are the files of the command line (`--model`); points are uniform in a box of twice the mesh's sides.

use super::{Settings, Suite, copy, unless_too_large};
use crate::points::{self, cubes, log_normal};
use crate::report::{Report, Row};
use kauri::bvh::ClosestPoint;
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::io::read_mesh;
use kauri::mesh::Mesh;
use kauri::rays::Aabb;
use kauri::{BoxJoin, Bvh, Device, Result};

/// The suites.
pub const SUITES: [(&str, Suite); 1] = [("bvh", run)];

/// Points around a mesh.
const POINTS: usize = 1 << 21;
/// Queries that the CPU repeats.
const CHECKED: usize = 1000;
/// The most items of a hierarchy that the CPU builds for a check.
const MAX_CHECKED: usize = 1_000_000;

fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Ok(()) };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        type Make = fn(usize, f64, u64) -> Vec<[[f32; 3]; 2]>;
        for (how, make) in [("cubes", cubes as Make), ("log-normal cubes", log_normal)] {
            let sets = [settings.seed, settings.seed + 1].map(|seed| make(n, 1.0, seed));
            unless_too_large(on_boxes(settings, gpu, how, sets, report))?;
        }
    }
    for path in &settings.models {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        unless_too_large(on_mesh(settings, gpu, &name, &read_mesh(path)?, report))?;
    }
    Ok(())
}

fn on_boxes(
    settings: &Settings,
    gpu: &Gpu,
    how: &str,
    sets: [Vec<[[f32; 3]; 2]>; 2],
    report: &mut Report,
) -> Result<()> {
    let (stream, mut workspace, effort) = (Stream::new(gpu)?, Workspace::new(gpu), settings.effort);
    let to_boxes = |set: &[[[f32; 3]; 2]]| set.iter().map(|&[low, high]| Aabb { low, high }).collect();
    let [on_host, queries_on_host]: [Vec<Aabb>; 2] = sets.each_ref().map(|set| to_boxes(set));
    let [boxes, queries] = [&on_host, &queries_on_host].map(|set| Buffer::from_slice(&stream, set, "boxes"));
    let (boxes, queries) = (boxes?, queries?);
    let row = |work: &str| Row {
        work: work.to_owned(),
        input: format!("3 x f32, {how}"),
        n: boxes.len() as u64,
        items: Some(boxes.len() as u64),
        ..Row::default()
    };

    let mut bvh = Bvh::build_on(&stream, &boxes)?;
    let timing = effort.wall(|| bvh.rebuild_on(&stream, &boxes))?;
    let note = Some(format!("{} nodes", bvh.num_nodes()));
    let temp_bytes = Some(bvh.stats().temp_bytes);
    report.push(Row { timing: Some(timing), note, temp_bytes, ..row("rebuild") });
    let timing = effort.wall(|| bvh.refit_on(&stream, &boxes))?;
    report.push(Row { timing: Some(timing), ..row("refit") });

    let mut counts = Buffer::uninitialized(gpu, queries.len(), "counts")?;
    let timing = effort
        .events(&stream, || bvh.count_intersecting_on(&stream, &mut workspace, &queries, &mut counts))?;
    let num: u64 = counts.to_vec(&stream)?.into_iter().sum();
    let expected = BoxJoin::intersects().count(&settings.device, &sets[0], &sets[1])?;
    assert_eq!(num, expected, "{how}: another number of pairs than that of the join");
    let (check, note) = (Some("as by the join"), Some(format!("{num} pairs")));
    report.push(Row { timing: Some(timing), check, note, ..row("boxes that intersect boxes, counted") });
    let timing = effort
        .wall(|| bvh.intersecting_on(&stream, &mut workspace, &queries).and_then(|_| stream.synchronize()))?;
    report.push(Row { timing: Some(timing), ..row("boxes that intersect boxes, listed") });

    let centers: Vec<[f32; 3]> = queries_on_host.iter().map(|of| of.low).collect();
    let points = Buffer::from_slice(&stream, &centers, "points")?;
    let checked = &centers[..CHECKED.min(centers.len())];
    let cpu = if boxes.len() <= MAX_CHECKED { Some(Bvh::build(&Device::cpu(), &on_host)?) } else { None };
    for k in [1, 8, 32] {
        let entries = points.len() * k;
        let mut ids = Buffer::uninitialized(gpu, entries, "ids of neighbors")?;
        let mut dist2 = Buffer::uninitialized(gpu, entries, "distances of neighbors")?;
        let timing = effort.events(&stream, || {
            bvh.nearest_on(&stream, &mut workspace, &points, k, f32::INFINITY, &mut ids, &mut dist2)
        })?;
        let mut check = None;
        if let Some(cpu) = &cpu {
            let found: Vec<u32> = ids.to_vec(&stream)?;
            assert!(
                found.starts_with(cpu.nearest(checked, k)?.ids()),
                "{how}: other neighbors than the CPU's"
            );
            check = Some("as on the CPU");
        }
        report.push(Row { timing: Some(timing), check, ..row(&format!("nearest k={k} boxes")) });
    }
    Ok(())
}

fn on_mesh(settings: &Settings, gpu: &Gpu, name: &str, mesh: &Mesh, report: &mut Report) -> Result<()> {
    let (stream, mut workspace, effort) = (Stream::new(gpu)?, Workspace::new(gpu), settings.effort);
    let bvh = Bvh::build(&settings.device, mesh)?;
    let [low, high] = mesh.bounds().unwrap_or_default();
    let place = |unit: [f32; 3]| {
        [0, 1, 2].map(|axis| low[axis] + (2.0 * unit[axis] - 0.5) * (high[axis] - low[axis]))
    };
    let on_host: Vec<[f32; 3]> =
        points::uniform::<f32, 3>(POINTS, settings.seed).into_iter().map(place).collect();
    let points = Buffer::from_slice(&stream, &on_host, "points")?;
    let row = |work: &str| Row {
        work: work.to_owned(),
        input: name.to_owned(),
        n: mesh.len() as u64,
        items: Some(POINTS as u64),
        ..Row::default()
    };
    let cpu = if mesh.len() <= MAX_CHECKED { Some(Bvh::build(&Device::cpu(), mesh)?) } else { None };
    let check = cpu.as_ref().map(|_| "as on the CPU");

    let mut found = Buffer::<ClosestPoint>::uninitialized(gpu, POINTS, "closest points")?;
    let timing = effort.events(&stream, || {
        bvh.closest_points_on(&stream, &mut workspace, &points, f32::INFINITY, &mut found)
    })?;
    if let Some(cpu) = &cpu {
        let expected = cpu.closest_points(&on_host[..CHECKED], f32::INFINITY)?;
        assert!(found.to_vec(&stream)?.starts_with(&expected), "{name}: other points than the CPU's");
    }
    report.push(Row { timing: Some(timing), check, ..row("nearest points of the mesh") });

    let mut inside = Buffer::<u8>::uninitialized(gpu, POINTS, "points inside")?;
    let timing = effort.events(&stream, || bvh.inside_on(&stream, &mut workspace, &points, &mut inside))?;
    if let Some(cpu) = &cpu {
        let found = inside.to_vec(&stream)?;
        let expected = cpu.inside(&on_host[..CHECKED])?;
        assert!(
            expected.iter().zip(found).all(|(a, b)| *a == (b == 1)),
            "{name}: other insides than the CPU's"
        );
    }
    report.push(Row { timing: Some(timing), check, ..row("points inside the mesh") });
    Ok(())
}
