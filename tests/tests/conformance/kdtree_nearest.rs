//! Nearest neighbors against brute force and kiddo.

use kauri::{Device, SpatialIndex};
use kauri_tests::generate::{Scalar, Shape, queries};
use kauri_tests::oracle::{BruteForce, padded_row};
use kauri_tests::{devices, devices_for, devices_for_shape, for_each_dims};
use kiddo::{ImmutableKdTree, SquaredEuclidean};
use rayon::prelude::*;
use std::num::NonZero;

use crate::build;

const SIZES: [usize; 6] = [1, 2, 31, 33, 256, 1000];
const KS: [usize; 7] = [1, 2, 5, 31, 33, 64, 65];

/// Compares all rows for every `k` with brute force, ids and bits of distances.
fn check<C: Scalar, const D: usize>(
    devices: &[Device],
    points: &[[C; D]],
    queries: &[[C; D]],
    ks: &[usize],
    what: &str,
) {
    let max_k = ks.iter().copied().max().unwrap_or(0);
    let oracle = BruteForce::new(points);
    let expected: Vec<_> = queries.par_iter().map(|&query| oracle.nearest(query, max_k)).collect();
    for device in devices {
        let tree = build(device, points);
        for &k in ks {
            let near = tree.nearest(queries, k).unwrap();
            assert_eq!((near.len(), near.k(), near.ids().len()), (queries.len(), k, queries.len() * k));
            for (i, neighbors) in expected.iter().enumerate() {
                let (ids, dist2) = padded_row(&neighbors[..k.min(neighbors.len())], k);
                assert!(
                    near.padded_row(i) == (&ids[..], &dist2[..]),
                    "query {i} {:?}, k = {k}, {} {what} points, {D} x {} on {device}\n got {:?}\nwant {:?}",
                    queries[i],
                    points.len(),
                    C::NAME,
                    near.row(i),
                    (ids, dist2),
                );
            }
        }
    }
}

fn equal_to_brute_force<C: Scalar, const D: usize>() {
    for (i, n) in SIZES.into_iter().enumerate() {
        for shape in Shape::ALL {
            let points = shape.points::<C, D>(n, i as u64);
            let devices = devices_for_shape(shape, n);
            check(&devices, &points, &queries(&points, 24, i as u64), &KS, &format!("{shape:?}"));
        }
    }
}

#[test]
fn equal_to_brute_force_f32() {
    for_each_dims!(D => equal_to_brute_force::<f32, D>());
}

#[test]
fn equal_to_brute_force_f64() {
    for_each_dims!(D => equal_to_brute_force::<f64, D>());
}

/// Enough queries to be sorted before the traversal.
#[test]
fn many_queries() {
    for shape in [Shape::Uniform, Shape::Clustered, Shape::AllEqual, Shape::Lattice] {
        let points = shape.points::<f32, 2>(5000, 3);
        check(&devices(), &points, &queries(&points, 5000, 3), &[1, 7, 100], &format!("{shape:?}"));
    }
}

/// More queries than are sorted, or copied to a GPU, at a time.
#[test]
fn millions_of_queries() {
    let points: Vec<[f32; 1]> = (0..5000u16).map(|x| [x.into()]).collect();
    let queries: Vec<[f32; 1]> = points.iter().cycle().copied().take((1 << 22) + 5003).collect();
    for device in devices() {
        let near = build(&device, &points).nearest(&queries, 1).unwrap();
        let wrong = near.ids().iter().enumerate().position(|(i, &id)| id as usize != i % points.len());
        assert_eq!(wrong, None, "on {device}");
        assert!(near.dist2().iter().all(|&d| d == 0.0));
    }
}

fn equal_to_kiddo<const D: usize>() {
    let points = Shape::Uniform.points::<f64, D>(20_000, 5);
    let queries = Shape::Uniform.points::<f64, D>(5000, 6);
    let kiddo = ImmutableKdTree::<f64, D>::new_from_slice(&points);
    let k = 8;
    for device in devices() {
        let near = build(&device, &points).nearest(&queries, k).unwrap();
        for (i, query) in queries.iter().enumerate() {
            let found = kiddo.nearest_n::<SquaredEuclidean>(query, NonZero::new(k).unwrap());
            let distances: Vec<f64> = found.iter().map(|item| item.distance).collect();
            assert_eq!(near.row(i).dist2(), distances, "query {i} on {device}");
            // Random points almost never tie, and kiddo does not define the order of ties.
            if distances.windows(2).all(|pair| pair[0] < pair[1]) {
                let ids: Vec<u32> = found.iter().map(|item| item.item as u32).collect();
                assert_eq!(near.row(i).ids(), ids, "query {i} on {device}");
            }
        }
    }
}

#[test]
fn equal_to_kiddo_in_2_and_3_dimensions() {
    equal_to_kiddo::<2>();
    equal_to_kiddo::<3>();
}

#[test]
fn a_tree_outlives_its_points_and_moves_between_threads() {
    for device in devices_for(33) {
        let tree = {
            let points = Shape::Uniform.points::<f64, 2>(33, 8);
            build(&device, &points)
        };
        let near = std::thread::spawn(move || tree.nearest(&[[0.5, 0.5]], 3).unwrap()).join().unwrap();
        let oracle = BruteForce::new(&Shape::Uniform.points::<f64, 2>(33, 8));
        assert_eq!(oracle.row([0.5, 0.5], 3), near.into_parts());
    }
}
