//! Balanced trees against a naive build and across devices.

use kauri::balanced::{BalancedKdTree, BalancedOptions, Node, Removed};
use kauri::query::QueryOptions;
use kauri::research::balanced::BuildAlgorithm;
use kauri::{Device, Error, KdTree, KdTreeOptions, LonLat, Point, SpatialIndex};
use kauri_tests::generate::{Scalar, Shape};
use kauri_tests::{devices, devices_for_shape, for_each_dims, oracle};
use rayon::prelude::*;

const SIZES: [usize; 12] = [0, 1, 2, 3, 4, 5, 31, 32, 33, 100, 1000, 1025];

/// Builds a tree and verifies it. Builds it on a GPU with every algorithm.
fn build<P: Point>(device: &Device, points: &[P], options: &BalancedOptions) -> BalancedKdTree<P> {
    let verified = |options: &BalancedOptions| {
        let what = format!("{} points, {options:?} on {device}", points.len());
        let tree = BalancedKdTree::build(device, points, options).unwrap_or_else(|e| panic!("{what}: {e}"));
        tree.verify().unwrap_or_else(|e| panic!("{what}: {e}"));
        (tree, what)
    };
    let (tree, _) = verified(options);
    if !device.is_cpu() {
        let robinson = options.clone().algorithm(BuildAlgorithm::Robinson);
        let variants = [robinson.clone().direct_stores(true), robinson.clone().sequential_compactions(true)];
        let both = robinson.clone().direct_stores(true).sequential_compactions(true);
        for options in variants.into_iter().chain([both, robinson, options.clone().renumber(true)]) {
            let (other, what) = verified(&options);
            assert!(other.medians().unwrap() == tree.medians().unwrap(), "{what}: another tree");
        }
    }
    tree
}

fn equal_to_the_naive_build<C: Scalar, const D: usize>() {
    for (i, n) in SIZES.into_iter().enumerate() {
        for shape in Shape::ALL {
            let points = shape.points::<C, D>(n, i as u64);
            let (medians, representatives) = oracle::balanced(&points);
            for device in devices_for_shape(shape, n) {
                let what = format!("{n} {shape:?} points, {D} x {} on {device}", C::NAME);
                let tree = build(&device, &points, &BalancedOptions::default());
                assert!(tree.medians().unwrap() == medians, "{what}");
                let removed = |(id, &kept): (usize, &u32)| Removed { id: id as u32, kept };
                let removed = representatives.iter().enumerate().map(removed);
                let removed = removed.filter(|pair| pair.id != pair.kept);
                assert!(tree.removed().unwrap().into_iter().eq(removed), "{what}");
                assert_eq!(tree.num_points(), n);
                has_the_nodes_of(&tree, &medians);
            }
        }
    }
}

/// Checks that the nodes with children are the tree of the medians.
fn has_the_nodes_of<P: Point>(tree: &BalancedKdTree<P>, medians: &[u32]) {
    let at = |slot: usize| medians.get(slot).copied().filter(|&id| id != u32::MAX);
    let nodes = (0..medians.len())
        .filter_map(|slot| at(slot).map(|id| Node { id, less: at(2 * slot + 1), greater: at(2 * slot + 2) }));
    let found = tree.nodes().unwrap();
    assert_eq!(found.len(), tree.len());
    assert!(found.into_iter().eq(nodes));
}

#[test]
fn equal_to_the_naive_build_f32() {
    for_each_dims!(D => equal_to_the_naive_build::<f32, D>());
}

#[test]
fn equal_to_the_naive_build_f64() {
    for_each_dims!(D => equal_to_the_naive_build::<f64, D>());
}

/// Every number of points up to a limit, so that the last level has every shape.
#[test]
fn any_number_of_points() {
    let points = Shape::Uniform.points::<f32, 2>(4999, 1);
    let devices = devices();
    for n in 1..=points.len() {
        let trees: Vec<_> =
            devices.iter().map(|device| build(device, &points[..n], &BalancedOptions::default())).collect();
        assert_eq!(trees[0].len(), n);
        for tree in &trees[1..] {
            assert!(
                tree.medians().unwrap() == trees[0].medians().unwrap(),
                "{n} points on {}",
                tree.device()
            );
        }
    }
}

/// A small number of warps takes many runs per warp; a large one shares runs among warps.
#[test]
fn any_number_of_warps() {
    let points = Shape::Lattice.points::<f64, 5>(60_000, 3);
    let expected = build(&Device::cpu(), &points, &BalancedOptions::default());
    assert!(expected.len() <= 1024, "a lattice has equal points");
    let more = Shape::Uniform.points::<f32, 3>(200_003, 4);
    let expected_of_more = build(&Device::cpu(), &more, &BalancedOptions::default());
    for device in devices() {
        for warps in [0, 1, 7, 64, 1 << 12, u32::MAX] {
            let options = BalancedOptions::default().warps(warps);
            let tree = build(&device, &points, &options);
            assert!(tree.medians().unwrap() == expected.medians().unwrap(), "{warps} warps on {device}");
            assert_eq!(tree.removed().unwrap(), expected.removed().unwrap());
            let tree = build(&device, &more, &options);
            assert!(
                tree.medians().unwrap() == expected_of_more.medians().unwrap(),
                "{warps} warps on {device}"
            );
        }
    }
}

#[test]
fn any_number_of_threads() {
    let points = Shape::Uniform.points::<f32, 3>(20_000, 4);
    let (expected, _) = oracle::balanced(&points);
    for threads in [1, 2, 4, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let tree = pool.install(|| build(&Device::cpu(), &points, &BalancedOptions::default()));
        assert!(tree.medians().unwrap() == expected, "{threads} threads");
    }
}

#[test]
fn integers_and_places_on_earth() {
    let integers: Vec<[i64; 3]> = Shape::Uniform
        .points::<f64, 3>(500, 5)
        .iter()
        .map(|point| point.map(|x| (x * 7.0) as i64 - 3))
        .collect();
    let places: Vec<_> = Shape::Uniform
        .points::<f64, 2>(100, 6)
        .iter()
        .map(|&[x, y]| LonLat { lon: 360.0 * x - 180.0, lat: 180.0 * y - 90.0 })
        .collect();
    for device in devices() {
        let tree = build(&device, &integers, &BalancedOptions::default());
        assert_eq!(tree.medians().unwrap(), oracle::balanced(&integers).0);
        let tree = build(&device, &places, &BalancedOptions::default());
        assert_eq!(tree.medians().unwrap(), oracle::balanced(&places).0);
    }
}

#[test]
fn bad_points_are_refused() {
    for device in devices() {
        let points = [[0.0f32, 1.0], [2.0, f32::NAN]];
        let error = BalancedKdTree::build(&device, &points, &BalancedOptions::default()).unwrap_err();
        assert!(matches!(error, Error::NonFinite { index: 1, axis: 1, .. }), "{error}");
    }
}

#[test]
fn a_million_points() {
    let points = Shape::Uniform.points::<f32, 4>(1 << 20, 7);
    let expected = build(&Device::cpu(), &points, &BalancedOptions::default());
    for device in devices() {
        let tree = build(&device, &points, &BalancedOptions::default());
        assert!(tree.medians().unwrap() == expected.medians().unwrap(), "{device}");
        let plan = BalancedKdTree::<[f32; 4]>::plan(&device, points.len(), &BalancedOptions::default());
        assert_eq!(tree.stats().temp_bytes, plan.temp_bytes);
    }
}

/// The first queries build the index. While they wait, threads of a pool run each other's queries.
#[test]
fn first_queries_from_a_pool() {
    let points = Shape::Uniform.points::<f32, 3>(50_000, 1);
    let expected = oracle::BruteForce::new(&points);
    let options = QueryOptions::default().periods([10.0, 10.0, 10.0]);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(8).build().unwrap();
    for device in devices() {
        let balanced = BalancedKdTree::build(&device, &points, &BalancedOptions::default()).unwrap();
        let tree = KdTree::build(&device, &points, &KdTreeOptions::default()).unwrap();
        pool.install(|| {
            points[..64].par_iter().for_each(|&query| {
                let found = [balanced.nearest(&[query], 2), tree.nearest_with(&[query], 2, &options)];
                for found in found {
                    assert_eq!(found.unwrap().padded_row(0).0, expected.row(query, 2).0, "{device}");
                }
            });
        });
    }
}
