//! Indexes and joins over the points of LAS and LAZ files.

use crate::command_line_case::Case;
use kauri::io::{Attributes, CloudFiles, CloudFilter};
use kauri::{
    Device, DistanceJoin, KdTree, KdTreeOptions, Octree, Quadtree, QuadtreeOptions, SpatialIndex, Step,
};
use kauri_tests::devices_for;
use kauri_tests::generate::Random;
use las::point::{Classification, Format};
use las::{Builder, Point, Transform, Vector, Writer};
use std::ops::ControlFlow;
use std::path::Path;

/// Writes points, each on whole hundredths, with the classes 2 and 5 in turn.
fn write(path: &Path, points: &[[i32; 3]]) {
    let mut builder = Builder::from((1, 2));
    builder.point_format = Format::new(1).unwrap();
    builder.point_format.is_compressed = path.extension().is_some_and(|extension| extension == "laz");
    builder.transforms = Vector {
        x: Transform { scale: 0.01, offset: 4_000_000.0 },
        y: Transform { scale: 0.01, offset: 0.0 },
        z: Transform { scale: 0.01, offset: 0.0 },
    };
    let mut writer = Writer::from_path(path, builder.into_header().unwrap()).unwrap();
    for (i, &[x, y, z]) in points.iter().enumerate() {
        let [x, y, z] = [x, y, z].map(|at| f64::from(at) / 100.0);
        let classification = Classification::new(if i % 2 == 0 { 2 } else { 5 }).unwrap();
        let point =
            Point { x: 4_000_000.0 + x, y, z, classification, gps_time: Some(0.0), ..Point::default() };
        writer.write_point(point).unwrap();
    }
    writer.close().unwrap();
}

#[test]
fn indexes_and_joins_of_files() {
    let case = Case { folder: tempfile::tempdir().unwrap() };
    let mut random = Random::new(5);
    let points: Vec<[i32; 3]> = (0..600).map(|_| [0; 3].map(|_| random.below(2000) as i32 - 1000)).collect();
    write(&case.path("a.las"), &points[..350]);
    write(&case.path("b.laz"), &points[350..]);
    let files = CloudFiles::open(&[case.path("a.las"), case.path("b.laz")]).unwrap();
    let cloud = files.read(&Attributes::default()).unwrap();
    assert_eq!(cloud.points, points);
    let positions: Vec<[f64; 3]> = cloud.positions().collect();
    let ground = files.filter(CloudFilter::default().classes([2])).read(&Attributes::default()).unwrap();
    assert_eq!(ground.points.len(), 300);
    let ground: Vec<[f64; 3]> = ground.positions().collect();
    let near =
        |a: &[f64; 3], b: &[f64; 3]| (0..3).map(|axis| (a[axis] - b[axis]).powi(2)).sum::<f64>() <= 9.0;
    let num_pairs =
        ground.iter().map(|a| positions.iter().filter(|b| near(a, b)).count() as u64).sum::<u64>();
    for device in devices_for(600) {
        let tree = KdTree::build(&device, &positions, &KdTreeOptions::default()).unwrap();
        let found = tree.nearest(&positions, 1).unwrap();
        assert!((0..positions.len()).all(|i| positions[found.row(i).ids()[0] as usize] == positions[i]));
        let octree =
            Octree::build(&device, &cloud.points, &QuadtreeOptions::default().leaf_points(20)).unwrap();
        octree.verify().unwrap();
        assert_eq!(octree.len(), 600);
        assert_eq!(DistanceJoin::new(3.0).count(&device, &ground, &positions).unwrap(), num_pairs);
    }
}

/// The file has an octree of two levels, and its hierarchy two pages: the root and each of its children have 20 points.
#[test]
fn indexes_and_joins_of_a_copc_file() {
    let case = Case { folder: tempfile::tempdir().unwrap() };
    let path = case.path("two-levels.copc.laz");
    std::fs::write(&path, include_bytes!("../../data/two-levels.copc.laz")).unwrap();
    let files = CloudFiles::open(&[path]).unwrap();
    let points = files.read(&Attributes::default()).unwrap().points;
    let root =
        files.filter(CloudFilter::default().levels(0..=0)).read(&Attributes::default()).unwrap().points;
    assert_eq!((points.len(), &root[..]), (180, &points[..20]));
    let dist2 = |a: &[i32; 3], b: &[i32; 3]| {
        (0..3).map(|axis| (f64::from(a[axis]) - f64::from(b[axis])).powi(2)).sum::<f64>()
    };
    let near = root.iter().map(|a| points.iter().filter(|b| dist2(a, b) <= 2500.0f64.powi(2)).count() as u64);
    let num_pairs = near.sum::<u64>();
    for device in devices_for(180) {
        let tree = KdTree::build(&device, &points, &KdTreeOptions::default()).unwrap();
        let octree = Octree::build(&device, &points, &QuadtreeOptions::default().leaf_points(5)).unwrap();
        octree.verify().unwrap();
        let [of_tree, of_octree] = [tree.nearest(&root, 3), octree.nearest(&root, 3)].map(Result::unwrap);
        assert!(of_tree.ids() == of_octree.ids() && of_tree.dist2() == of_octree.dist2());
        for (query, &from) in root.iter().enumerate() {
            let mut all: Vec<f64> = points.iter().map(|point| dist2(&from, point)).collect();
            all.sort_by(f64::total_cmp);
            assert_eq!(of_tree.row(query).dist2(), &all[..3]);
        }
        assert_eq!(DistanceJoin::new(2500.0).count(&device, &root, &points).unwrap(), num_pairs);
    }
}

#[test]
fn octrees_of_files_become_files() {
    let case = Case { folder: tempfile::tempdir().unwrap() };
    let mut random = Random::new(6);
    let points: Vec<[i32; 3]> = (0..2000).map(|_| [0; 3].map(|_| random.below(500) as i32 - 250)).collect();
    write(&case.path("a.las"), &points[..1200]);
    write(&case.path("b.laz"), &points[1200..]);
    let files = CloudFiles::open(&[case.path("a.las"), case.path("b.laz")]).unwrap();
    let options = QuadtreeOptions::default().leaf_points(9);
    Octree::build(&Device::cpu(), &points, &options).unwrap().save(case.path("saved")).unwrap();
    let data_bytes = ["a.las", "b.laz"].map(|name| std::fs::metadata(case.path(name)).unwrap().len());
    let ground = files.clone().filter(CloudFilter::default().classes([2]));
    for device in devices_for(2000) {
        let mut steps = Vec::new();
        let mut progress = |step: Step| {
            steps.push(step);
            ControlFlow::Continue(())
        };
        Octree::build_to_file(&device, files.points(), case.path("built"), &options, &mut progress).unwrap();
        assert!(std::fs::read(case.path("built")).unwrap() == std::fs::read(case.path("saved")).unwrap());
        let read = steps.iter().rfind(|step| step.phase == "points").unwrap();
        assert_eq!((read.done, read.total), (2000, Some(2000)));
        // All of both files but their headers.
        assert!(read.bytes < data_bytes.iter().sum() && read.bytes > 1200 * 28, "{read:?}");

        let mut progress = |_| ControlFlow::Continue(());
        Quadtree::build_to_file(&device, ground.plane(), case.path("ground"), &options, &mut progress)
            .unwrap();
        assert_eq!(Quadtree::<[i32; 2]>::load(&device, case.path("ground")).unwrap().len(), 1000);
    }
}

#[test]
fn info_describes_point_clouds() {
    let case = Case { folder: tempfile::tempdir().unwrap() };
    write(&case.path("a.laz"), &[[0, 100, -50], [25, 300, 8]]);
    let expected = "@/a.laz: 2 points of format 1, LAS 1.2, compressed\n\
                    reference system (CRS): none\n\
                    axis  least    greatest    scale  offset\n\
                    x     4000000  4000000.25  0.01   4000000\n\
                    y     1        3           0.01   0\n\
                    z     -0.5     0.08        0.01   0\n";
    assert_eq!(case.answer("info @/a.laz"), expected);
    let bytes = std::fs::read(case.path("a.laz")).unwrap();
    std::fs::write(case.path("a.laz"), &bytes[..bytes.len() - 20]).unwrap();
    assert!(case.refused("info @/a.laz").contains("@/a.laz"), "{}", case.refused("info @/a.laz"));
}
