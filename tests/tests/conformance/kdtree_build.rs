//! Trees against a naive build and across devices.

use kauri::kdtree::{BuildAlgorithm, SplitRule};
use kauri::query::{QueryOptions, Traversal};
use kauri::{KdTree, KdTreeOptions, LonLat, Point, SpatialIndex};
use kauri_tests::generate::{Random, Scalar, Shape};
use kauri_tests::{devices, devices_for, devices_for_shape, for_each_dims, oracle};

use crate::{build, build_by};

const SIZES: [usize; 12] = [0, 1, 2, 3, 31, 32, 33, 100, 1023, 1024, 1025, 5000];

/// The worked example of Wald 2022, with its last row.
#[test]
fn the_ten_points_of_wald() {
    let points = [
        [10.0f32, 15.0],
        [46.0, 63.0],
        [68.0, 21.0],
        [40.0, 33.0],
        [25.0, 54.0],
        [15.0, 43.0],
        [44.0, 58.0],
        [45.0, 40.0],
        [62.0, 69.0],
        [53.0, 67.0],
    ];
    for device in devices_for(points.len()) {
        assert_eq!(build(&device, &points).node_ids().unwrap(), [1, 5, 9, 3, 6, 2, 8, 0, 7, 4]);
    }
}

fn equal_to_the_naive_build<C: Scalar, const D: usize>() {
    for (i, n) in SIZES.into_iter().enumerate() {
        for shape in Shape::ALL {
            let points = shape.points::<C, D>(n, i as u64);
            for device in devices_for_shape(shape, n) {
                for rule in [SplitRule::RoundRobin, SplitRule::Widest] {
                    let tree = build_by(&device, &points, rule);
                    assert_eq!(tree.len(), n);
                    let ids = tree.node_ids().unwrap();
                    assert!(
                        ids == oracle::tree_ids(&points, rule),
                        "{n} {shape:?} points, {D} x {} by {rule:?} on {device}",
                        C::NAME
                    );
                }
            }
        }
    }
}

#[test]
fn equal_to_the_naive_build_f32() {
    for_each_dims!(D => equal_to_the_naive_build::<f32, D>());
}

#[test]
fn equal_to_the_naive_build_f64() {
    for_each_dims!(D => equal_to_the_naive_build::<f64, D>());
}

#[test]
fn large_builds_are_equal_and_repeatable() {
    for shape in [Shape::Uniform, Shape::AllEqual, Shape::Lattice, Shape::Reversed] {
        let points = shape.points::<f32, 2>(200_003, 9);
        for rule in [SplitRule::RoundRobin, SplitRule::Widest] {
            let expected = oracle::tree_ids(&points, rule);
            for device in devices() {
                for _ in 0..2 {
                    let ids = build_by(&device, &points, rule).node_ids().unwrap();
                    assert!(ids == expected, "{shape:?} by {rule:?} on {device}");
                }
            }
        }
    }
}

/// Builds, checks, saves, loads and queries trees over points that are equal on some axes: planes and lines along all combinations of axes.
/// A constant coordinate is a zero of either sign.
fn planes_and_lines<S: kauri::Scalar, const D: usize>(from_f64: fn(f64) -> S)
where
    [S; D]: Point,
{
    for varying in 1..(1 << D) - 1 {
        for n in [1, 2, 33, 2500] {
            let mut random = Random::new(n << D | varying);
            let points: Vec<[S; D]> = (0..n)
                .map(|i| {
                    let zero = if i % 2 == 0 { 0.0 } else { -0.0 };
                    std::array::from_fn(|axis| {
                        let number = random.below(1000) as f64;
                        from_f64(if varying >> axis & 1 == 1 { number } else { zero })
                    })
                })
                .collect();
            let queries: Vec<[S; D]> =
                (0..7).map(|_| std::array::from_fn(|_| from_f64(random.below(1000) as f64))).collect();
            let expected = oracle::tree_ids(&points, SplitRule::RoundRobin);
            let brute_force = oracle::BruteForce::new(&points);
            let mut file = Vec::new();
            build(&kauri::Device::cpu(), &points).write_to(&mut file).unwrap();
            for device in devices_for(points.len()) {
                let what = format!("{n} points in {D}-D, axes {varying:b}, on {device}");
                let built = build(&device, &points);
                let mut bytes = Vec::new();
                built.write_to(&mut bytes).unwrap();
                assert!(bytes == file, "{what}: another file");
                let loaded = KdTree::<[S; D]>::read_from(&device, &bytes[..]).unwrap();
                loaded.verify().unwrap_or_else(|error| panic!("{what}, loaded: {error}"));
                for tree in [built, loaded] {
                    assert!(tree.node_ids().unwrap() == expected, "{what}");
                    use Traversal::{BruteForce, Buckets, ClosestCorner, Stack, StackFree};
                    for traversal in [StackFree, Stack, ClosestCorner, Buckets, BruteForce] {
                        let options = QueryOptions::default().traversal(traversal);
                        let found = tree.nearest_with(&queries, 5, &options).unwrap();
                        for (row, &query) in queries.iter().enumerate() {
                            let (ids, dist2) = brute_force.row(query, 5);
                            assert_eq!(
                                found.padded_row(row),
                                (&ids[..], &dist2[..]),
                                "{what}, query {row} by {traversal:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn trees_of_planes_and_lines_f32() {
    planes_and_lines::<f32, 2>(|x| x as f32);
    planes_and_lines::<f32, 3>(|x| x as f32);
    planes_and_lines::<f32, 4>(|x| x as f32);
}

#[test]
fn trees_of_planes_and_lines_f64() {
    planes_and_lines::<f64, 2>(|x| x);
    planes_and_lines::<f64, 3>(|x| x);
    planes_and_lines::<f64, 4>(|x| x);
}

#[test]
fn trees_of_planes_and_lines_of_integers() {
    planes_and_lines::<i32, 2>(|x| x as i32);
    planes_and_lines::<i32, 3>(|x| x as i32);
    planes_and_lines::<i64, 4>(|x| x as i64);
}

#[test]
fn stats_and_plan_are_exact() {
    for device in devices_for(33) {
        let tree = build(&device, &Shape::Uniform.points::<f64, 3>(33, 0));
        let plan = KdTree::<[f64; 3]>::plan(&device, 33, &KdTreeOptions::default());
        // A GPU also stores, for four buckets, the boxes and planes of the three nodes above, the least ids of all seven nodes, a padding of
        // three points, and the mask of the axes that levels split on.
        // The CPU also stores the box of the only node above its two buckets, with an id and a number of points, and a padding of eight
        // coordinates.
        let buckets = |c: u64| {
            if device.is_cpu() { 2 * 3 * c + 8 + 8 * c } else { 3 * (4 * 3 + 1) * c + 7 * 4 + 3 * 3 * c + 4 }
        };
        assert_eq!(plan.tree_bytes, 33 * (3 * 8 + 4) + buckets(8));
        assert_eq!(tree.stats().temp_bytes, plan.temp_bytes);
        assert_eq!(tree.stats().device, device.to_string());
        assert!(!tree.stats().reason.is_empty() && !tree.stats().phases.is_empty());
        assert_eq!(tree.device().to_string(), device.to_string());
        assert!(KdTree::<LonLat>::plan(&device, 33, &KdTreeOptions::default()).temp_bytes > plan.temp_bytes);
        // A tree over `i32` stores them; `i64` are converted to `f64` in a copy.
        let of_i32 = KdTree::<[i32; 3]>::plan(&device, 33, &KdTreeOptions::default());
        assert_eq!(of_i32.tree_bytes, 33 * (3 * 4 + 4) + buckets(4));
        assert!(of_i32.temp_bytes <= plan.temp_bytes);
        let of_i64 = KdTree::<[i64; 3]>::plan(&device, 33, &KdTreeOptions::default());
        assert_eq!(of_i64.tree_bytes, plan.tree_bytes);
        assert_eq!(of_i64.temp_bytes, plan.temp_bytes + 33 * 3 * 8);
    }
}

#[test]
fn plans_by_rule_and_algorithm() {
    for device in devices() {
        let plan = |options: KdTreeOptions| KdTree::<[f32; 3]>::plan(&device, 1_000_000, &options);
        let plain = plan(KdTreeOptions::default());
        let widest = plan(KdTreeOptions::default().split(SplitRule::Widest));
        let mask = if device.is_cpu() { 0 } else { 4 };
        assert_eq!(widest.tree_bytes + mask, plain.tree_bytes + 500_000);
        if !device.is_cpu() {
            // A build in place only needs one word per point.
            let in_place = plan(KdTreeOptions::default().algorithm(BuildAlgorithm::SelectionInPlace));
            assert_eq!(in_place.temp_bytes, 4_000_000u64.next_multiple_of(256));
            assert!(plain.temp_bytes as f64 - 12e6 <= 1.6 * 12e6, "{plain:?}");
        }
    }
}
