//! Trees and results whose sizes exceed 31 and 32 bits. They need a GPU with 120 GB and a host with 60 GB of free memory.

use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::kdtree::BuildAlgorithm;
use kauri::query::{DeviceIndex, DeviceQueries, QueryOptions, num_found};
use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
use kauri_kernels::thread::coord::dist2;
use kauri_tests::generate::Random;
use rayon::prelude::*;

fn points(n: usize, seed: u64) -> Vec<[f32; 2]> {
    let point = |i| {
        let mut random = Random::new(seed ^ i);
        [random.unit() as f32, random.unit() as f32]
    };
    (0..n as u64).into_par_iter().map(point).collect()
}

fn gpu() -> Option<(Device, Gpu)> {
    let device = Device::from_name("cuda").ok()?;
    let gpu = device.gpu()?.clone();
    Some((device, gpu))
}

#[test]
#[ignore = "needs a GPU with 120 GB of free memory"]
fn more_than_31_bits_of_points() {
    let Some((device, _)) = gpu() else { return };
    let points = points((1 << 31) + 7, 1);
    for algorithm in [BuildAlgorithm::Selection, BuildAlgorithm::SelectionInPlace, BuildAlgorithm::Tags] {
        let tree = KdTree::build(&device, &points, &KdTreeOptions::default().algorithm(algorithm)).unwrap();
        tree.verify().unwrap();
        if algorithm != BuildAlgorithm::Selection {
            continue;
        }
        let queries: Vec<_> =
            points.iter().rev().take(5).chain([&[0.5, 0.25], &[1.0, 2.0]]).copied().collect();
        let nearest = tree.nearest(&queries, 3).unwrap();
        for (row, query) in queries.iter().enumerate() {
            let mut expected: Vec<_> = points
                .par_iter()
                .enumerate()
                .map(|(id, point)| (dist2(2, |axis| query[axis], |axis| point[axis]), id as u32))
                .filter(|&(distance, _)| distance <= nearest.dist2()[3 * row + 2])
                .collect();
            expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
            let got = (0..3).map(|i| (nearest.dist2()[3 * row + i], nearest.ids()[3 * row + i]));
            assert!(got.eq(expected.into_iter().take(3)), "query {row}");
        }
    }
}

#[test]
#[ignore = "needs a GPU with 120 GB of free memory"]
fn more_than_32_bits_of_neighbors() {
    let Some((device, gpu)) = gpu() else { return };
    let (stream, mut workspace) = (Stream::new(&gpu).unwrap(), Workspace::new(&gpu));
    let tree = KdTree::build(&device, &points(100_000, 2), &KdTreeOptions::default()).unwrap();
    let prepared = tree.prepare(&stream, &QueryOptions::default()).unwrap();
    // The kernels of lists, queues and heaps.
    for k in [32, 64, 300] {
        let num_queries = (1 << 32) / k + 1000;
        let queries = points(num_queries, 3);
        let coords = Buffer::from_slice(&stream, queries.as_flattened(), "queries").unwrap();
        let mut ids = Buffer::<u32>::uninitialized(&gpu, num_queries * k, "ids").unwrap();
        let mut dist2 = Buffer::<f32>::uninitialized(&gpu, num_queries * k, "distances").unwrap();
        let query_set = DeviceQueries::Coordinates(&coords);
        tree.nearest_on(&stream, &mut workspace, query_set, k, &prepared, &mut ids, &mut dist2).unwrap();
        for begin in [0, (1 << 31) / k - 500, num_queries - 2000] {
            let rows = begin..begin + 2000;
            let expected = tree.nearest(&queries[rows.clone()], k).unwrap();
            let entries = rows.start * k..rows.end * k;
            assert!(
                ids.part_to_vec(&stream, entries.clone()).unwrap() == expected.ids(),
                "k = {k}, {rows:?}"
            );
            assert!(dist2.part_to_vec(&stream, entries).unwrap() == expected.dist2(), "k = {k}, {rows:?}");
        }
    }
}

#[test]
#[ignore = "needs a GPU with 120 GB of free memory"]
fn more_than_32_bits_of_points_found() {
    let Some((device, gpu)) = gpu() else { return };
    let (stream, mut workspace) = (Stream::new(&gpu).unwrap(), Workspace::new(&gpu));
    let num_points = 100_000;
    let tree = KdTree::build(&device, &points(num_points, 4), &KdTreeOptions::default()).unwrap();
    let queries = points((1 << 32) / num_points + 100, 5);
    let coords = Buffer::from_slice(&stream, queries.as_flattened(), "queries").unwrap();
    // Every query finds all points.
    let prepared = tree.prepare(&stream, &QueryOptions::default().radius(2.0)).unwrap();
    let query_set = DeviceQueries::Coordinates(&coords);
    let found = tree.all_within_on(&stream, &mut workspace, query_set, &prepared).unwrap();
    let total = queries.len() * num_points;
    assert_eq!(num_found(&stream, &found.offsets).unwrap(), total as u64);
    assert_eq!((found.ids.len(), found.dist2.len()), (total, total));
    let offsets = found.offsets.to_vec(&stream).unwrap();
    assert!(offsets.iter().enumerate().all(|(row, &offset)| offset == (row * num_points) as u64));
    let expected = tree.within(&queries[..1], 2.0, &QueryOptions::default()).unwrap();
    for row in [0, queries.len() / 2, queries.len() - 1] {
        let entries = row * num_points..(row + 1) * num_points;
        // In the order of the tree.
        assert!(found.ids.part_to_vec(&stream, entries.clone()).unwrap() == expected.ids(), "row {row}");
        let expected = tree.within(&queries[row..=row], 2.0, &QueryOptions::default()).unwrap();
        assert!(found.dist2.part_to_vec(&stream, entries).unwrap() == expected.dist2(), "row {row}");
    }
}
