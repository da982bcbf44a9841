//! Trees that are built straight into files: their bytes, their progress, and what is left after an error.

use kauri::quadtree::{CartesianPoint, CellTree, Quadtree, QuadtreeOptions};
use kauri::{Device, Error, PointSource, Result, Scalar, SpatialIndex, Step};
use kauri_tests::devices_for_shape;
use kauri_tests::generate::Shape;
use std::ops::ControlFlow::{Break, Continue};
use std::path::Path;

/// The devices for a number of points, GPUs with this much memory.
fn devices(shape: Shape, num_points: usize, limit: u64) -> Vec<Device> {
    let limited = |device: Device| match device.gpu() {
        Some(gpu) => Device::from_gpu(gpu.with_memory_limit(limit)),
        None => device,
    };
    devices_for_shape(shape, num_points).into_iter().map(limited).collect()
}

/// Chunks of `len` points, and a chunk without points.
fn in_chunks<P: Copy>(points: &[P], len: usize) -> impl Iterator<Item = Result<Vec<P>>> {
    points.chunks(len).chain([&[][..]]).map(|chunk| Ok(chunk.to_vec()))
}

fn check_file<S: Scalar, const D: usize>(points: &[[S; D]], shape: Shape, options: &QuadtreeOptions)
where
    [S; D]: CartesianPoint<D>,
{
    let folder = tempfile::tempdir().unwrap();
    let [expected, path] = ["saved.kauri", "built.kauri"].map(|name| folder.path().join(name));
    CellTree::build(&Device::cpu(), points, options).unwrap().save(&expected).unwrap();
    let expected = std::fs::read(expected).unwrap();
    for limit in [300_000, 1 << 30] {
        for device in devices(shape, points.len(), limit) {
            let what = format!("{} {shape:?} points, {limit} bytes of {device}", points.len());
            let chunk = if limit < 1 << 20 { 700 } else { points.len().max(1) };
            let (mut phases, mut last) = (Vec::new(), None);
            let mut progress = |step: Step| {
                if phases.last() != Some(&step.phase) {
                    phases.push(step.phase);
                }
                last = Some(step);
                Continue(())
            };
            let source = in_chunks(points, chunk);
            let stats = CellTree::build_to_file(&device, source, &path, options, &mut progress)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(std::fs::read(&path).unwrap() == expected, "{what}");
            assert!(
                phases.starts_with(&["points"]) && stats.phases[0].name == "points",
                "{what}: {phases:?}"
            );
            if let Some(gpu) = device.gpu() {
                assert!(
                    phases.starts_with(&["points", "counts", "batches", "subtrees"]),
                    "{what}: {phases:?}"
                );
                assert!(gpu.memory_use().peak_bytes <= limit, "{what}");
            } else {
                let last = last.unwrap();
                assert_eq!((last.done, last.total), (points.len() as u64, None), "{what}");
                assert_eq!(last.bytes, size_of_val(points) as u64, "{what}");
            }
            // SAFETY: nothing writes to the file.
            let tree = unsafe { CellTree::<[S; D], D>::map(&Device::cpu(), &path) }.unwrap();
            tree.verify().unwrap();
            // A device that lacks memory for the tree answers queries all the same.
            // SAFETY: nothing writes to the file.
            let on_device = unsafe { CellTree::<[S; D], D>::map(&device, &path) }.unwrap();
            let queries = &points[..points.len().min(50)];
            let expected = tree.nearest(queries, 3).unwrap();
            match on_device.nearest(queries, 3) {
                Ok(found) => {
                    assert!(found.ids() == expected.ids() && found.dist2() == expected.dist2(), "{what}")
                }
                // The tree fits, and the index that answers queries does not.
                Err(Error::OutOfMemory { .. }) if limit < 1 << 20 => {}
                Err(error) => panic!("{what}: {error}"),
            }
        }
    }
}

#[test]
fn files_are_those_of_save() {
    let options = QuadtreeOptions::default();
    for (i, shape) in Shape::ALL.into_iter().enumerate() {
        let n = [0, 1, 100, 3000, 4001][i % 5];
        check_file(&shape.points::<f32, 2>(n, 1), shape, &options);
        check_file(&shape.points::<f64, 3>(2500, 2), shape, &options.clone().leaf_points(3));
    }
    check_file(&Shape::Clustered.points::<f32, 2>(9000, 6), Shape::Clustered, &options.clone().max_depth(6));
    let lattice: Vec<[i32; 2]> = Shape::Clustered
        .points::<f64, 2>(5000, 7)
        .iter()
        .map(|point| point.map(|x| (x * 1e4) as i32))
        .collect();
    check_file(&lattice, Shape::Clustered, &options.leaf_points(5));
}

/// Returns the names of the files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn nothing_is_lost_or_left_behind_by_errors() {
    let points = Shape::Uniform.points::<f32, 2>(3000, 1);
    let options = QuadtreeOptions::default();
    for device in devices(Shape::Uniform, points.len(), 300_000) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scan.kauri");
        std::fs::write(&path, "an older file").unwrap();
        let build = |source: &mut dyn Iterator<Item = Result<Vec<[f32; 2]>>>,
                     path: &Path,
                     end: Option<(&str, u64)>| {
            let mut progress = |step: Step| match end {
                Some((phase, done)) if step.phase == phase && step.done >= done => Break(()),
                _ => Continue(()),
            };
            let error = Quadtree::build_to_file(&device, source, path, &options, &mut progress).unwrap_err();
            assert_eq!(std::fs::read(folder.path().join("scan.kauri")).unwrap(), b"an older file");
            assert_eq!(names(folder.path()), ["scan.kauri"], "{error}");
            error
        };
        let mut broken = points.clone();
        broken[2700][1] = f32::NAN;
        let error = build(&mut in_chunks(&broken, 500), &path, None);
        assert!(matches!(error, Error::NonFinite { index: 2700, axis: 1, .. }), "{error}");

        let failing = in_chunks(&points, 500).take(3).chain([Err(Error::NotOnGpu)]);
        assert!(matches!(build(&mut { failing }, &path, None), Error::NotOnGpu));

        let phases: &[&str] =
            if device.gpu().is_some() { &["points", "counts", "batches", "subtrees"] } else { &["points"] };
        for &phase in phases {
            // Phases on a device may be a single step, which ends with all points.
            for end in if phase == "points" { vec![0, 1, 1500] } else { vec![0] } {
                let error = build(&mut in_chunks(&points, 500), &path, Some((phase, end)));
                assert!(
                    matches!(error, Error::Stopped { phase: stopped, done, .. } if stopped == phase && done >= end),
                    "{error} instead of {phase} {end}"
                );
            }
        }

        let missing = folder.path().join("missing/scan.kauri");
        let error = build(&mut in_chunks(&points, 500), &missing, None);
        assert!(matches!(&error, Error::Io { path, .. } if *path == missing), "{error}");
        let error = build(&mut in_chunks(&points, 500), folder.path(), None);
        assert!(matches!(&error, Error::Io { path, .. } if path == folder.path()), "{error}");
    }
}

#[test]
fn points_of_a_source() {
    let points = Shape::Uniform.points::<f64, 3>(100, 1);
    let mut go_on = |_: Step| Continue(());
    assert_eq!(in_chunks(&points, 7).read_all(&mut go_on).unwrap(), points);
    let none = std::iter::empty::<Result<Vec<[f32; 2]>>>().read_all(&mut go_on).unwrap();
    assert!(none.is_empty());
    let mut stop_at_50 = |step: Step| if step.done >= 50 { Break(()) } else { Continue(()) };
    let error = in_chunks(&points, 20).read_all(&mut stop_at_50).unwrap_err();
    assert_eq!(error.to_string(), "stopped in phase 'points': 60 done");
}
