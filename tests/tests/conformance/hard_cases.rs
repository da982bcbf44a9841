//! Inputs on which published libraries gave wrong results or none.

use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
use kauri_tests::devices;
use kauri_tests::generate::{Random, Scalar, Shape, queries};
use kauri_tests::oracle::{BruteForce, padded_row};
use rayon::prelude::*;

use crate::build;

/// Compares the `k` nearest of every query with brute force, for each k.
fn check<C: Scalar, const D: usize>(points: &[[C; D]], queries: &[[C; D]], ks: &[usize]) {
    let most = ks.iter().copied().max().unwrap_or(0);
    let oracle = BruteForce::new(points);
    let expected: Vec<_> = queries.par_iter().map(|&query| oracle.nearest(query, most)).collect();
    for device in devices() {
        let tree = build(&device, points);
        for &k in ks {
            let near = tree.nearest(queries, k).unwrap();
            for (i, neighbors) in expected.iter().enumerate() {
                let (ids, dist2) = padded_row(&neighbors[..k.min(neighbors.len())], k);
                let what = format!("query {i} {:?}, k = {k} on {device}", queries[i]);
                assert!(near.padded_row(i) == (&ids[..], &dist2[..]), "{what}: {:?}", near.row(i));
            }
        }
    }
}

/// A build of left-balanced trees was off by one at this number of points.
#[test]
fn points_90167() {
    const POINTS: usize = 90_167;
    fn of<const D: usize>() {
        let points = Shape::Uniform.points::<f32, D>(POINTS, 1);
        check(&points, &queries(&points, 100, 2), &[1, 8, 100]);
        // The row of every point, against the CPU.
        let expected = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default()).unwrap();
        let expected = expected.nearest(&points, 4).unwrap();
        assert!((0..POINTS).all(|id| expected.row(id).dist2()[0] == 0.0));
        for device in devices() {
            let near = build(&device, &points).nearest(&points, 4).unwrap();
            assert!(near.ids() == expected.ids() && near.dist2() == expected.dist2(), "{D} on {device}");
        }
    }
    of::<2>();
    of::<3>();
    of::<4>();
}

/// Buckets of 32 points could not be split where more had one coordinate.
#[test]
fn more_equal_points_than_a_bucket_holds() {
    for n in [32, 33, 34, 64, 65, 1000] {
        let equal = vec![[0.5f64, -2.0, 3.0]; n];
        check(&equal, &[[0.5, -2.0, 3.0], [1.0, 1.0, 1.0]], &[1, 33, n, n + 1]);
        // Points that are equal on one axis only, and points that alternate between two positions.
        let along: Vec<[f32; 2]> = (0..n).map(|i| [7.0, (i * 37 % n) as f32]).collect();
        check(&along, &[[7.0, 3.0], [0.0, n as f32]], &[1, 33, n]);
        let in_turn: Vec<[f32; 2]> = (0..n).map(|i| [[1.0, 1.0], [1.0, 2.0]][i % 2]).collect();
        check(&in_turn, &[[1.0, 1.5], [1.0, 2.0]], &[1, 33, n]);
    }
}

/// Positions in a few cities with four decimals, as phones write them: coordinates and whole points repeat.
#[test]
fn gps_positions_in_cities() {
    const CITIES: [[f64; 2]; 5] =
        [[18.0686, 59.3293], [24.9384, 60.1699], [-0.1276, 51.5072], [-179.99, -16.8], [139.6917, 35.6895]];
    const IN_A_CITY: usize = 2000;
    let mut random = Random::new(90_167);
    let points: Vec<[f32; 2]> = (0..CITIES.len() * IN_A_CITY)
        .map(|i| {
            // Denser towards the center; every twentieth point is at the center.
            let mut offset = || match i / CITIES.len() % 20 {
                0 => 0.0,
                _ => 0.02 * (random.unit() + random.unit() - 1.0),
            };
            CITIES[i % CITIES.len()].map(|x| ((1e4 * (x + offset())).round() / 1e4) as f32)
        })
        .collect();
    let mut all_queries = queries(&points, 30, 4);
    all_queries.push([0.0, 0.0]);
    check(&points, &all_queries, &[1, 33, 101, IN_A_CITY + 500, points.len() + 1]);
}
