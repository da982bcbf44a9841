//! Points with integer coordinates against brute force in exact arithmetic.

use kauri::kdtree::SplitRule;
use kauri::query::{Norm, Queries, QueryOptions};
use kauri::{Error, KdTree, KdTreeOptions, Scalar, SpatialIndex};
use kauri_kernels::thread::coord::Coord;
use kauri_tests::generate::Random;
use kauri_tests::oracle::{
    BruteForce, padded_row, {self},
};
use kauri_tests::{devices, devices_for, for_each_dims};

use crate::build;

/// Up to here squared distances in 8 dimensions are exact in `f64`.
const EXACT: i64 = 1 << 24;

trait Integer: Scalar<Coord: Coord<Distance = f64>> + Into<i128> + TryFrom<i64> + Ord + std::fmt::Debug {
    /// The largest accepted magnitude.
    const MOST: i64;

    fn of(number: i64) -> Self {
        Self::try_from(number).unwrap_or_else(|_| panic!("{number} is too large"))
    }
}

impl Integer for i32 {
    const MOST: i64 = i32::MAX as i64;
}

impl Integer for i64 {
    const MOST: i64 = 1 << 53;
}

/// Generates points from `-most` to `most`; half of the coordinates are on a coarse lattice, at the borders or next to them.
fn points<I: Integer, const D: usize>(n: usize, most: i64, seed: u64) -> Vec<[I; D]> {
    let mut random = Random::new(seed ^ (D as u64) << 32);
    let mut number = |i: usize| match i % 4 {
        0 => most / 2 * (random.below(5) as i64 - 2),
        1 => [most, -most, most - 1, 1 - most, 0, 1][random.below(6) as usize],
        _ => random.below(2 * most as u64 + 1) as i64 - most,
    };
    (0..n).map(|i| std::array::from_fn(|_| I::of(number(i)))).collect()
}

/// Sorts all points by (distance, id), distances without rounding.
fn exact<I: Integer, const D: usize>(
    points: &[[I; D]],
    query: &[I; D],
    norm: Norm,
    period: i128,
) -> Vec<(i128, u32)> {
    let distance = |point: &[I; D]| {
        let along = (0..D).map(|axis| {
            let d = (query[axis].into() - point[axis].into()).abs();
            if period > 0 { d.min(period - d) } else { d }
        });
        match norm {
            Norm::Euclidean => along.map(|d| d * d).sum(),
            Norm::Manhattan => along.sum::<i128>(),
            Norm::Chebyshev => along.max().unwrap_or(0),
        }
    };
    let mut found: Vec<(i128, u32)> = points.iter().map(distance).zip(0..).collect();
    found.sort_unstable();
    found
}

/// Converts a row to `f64`, which represents its distances exactly.
fn rounded(found: &[(i128, u32)]) -> Vec<(f64, u32)> {
    let exact = |&(distance, id): &(i128, u32)| {
        assert!(distance <= 1 << 53);
        (distance as f64, id)
    };
    found.iter().map(exact).collect()
}

/// Returns the rank of each coordinate among all coordinates of its axis.
fn ranks<I: Integer, const D: usize>(points: &[[I; D]]) -> Vec<[f64; D]> {
    let sorted: [Vec<I>; D] = std::array::from_fn(|axis| {
        let mut sorted: Vec<I> = points.iter().map(|point| point[axis]).collect();
        sorted.sort_unstable();
        sorted
    });
    let rank = |axis: usize, x: I| sorted[axis].partition_point(|&other| other < x) as f64;
    points.iter().map(|point| std::array::from_fn(|axis| rank(axis, point[axis]))).collect()
}

fn trees_in_the_order_of_integers<I: Integer, const D: usize>() {
    for n in [1, 2, 33, 1025, 5000] {
        let points = points::<I, D>(n, I::MOST, n as u64);
        let expected = oracle::tree_ids(&ranks(&points), SplitRule::RoundRobin);
        for device in devices_for(n) {
            assert!(build(&device, &points).node_ids().unwrap() == expected, "{n} x {D} on {device}");
        }
    }
}

#[test]
fn trees_in_the_order_of_integers_of_all_dimensions() {
    for_each_dims!(D => trees_in_the_order_of_integers::<i32, D>());
    for_each_dims!(D => trees_in_the_order_of_integers::<i64, D>());
}

fn equal_to_exact_brute_force<I: Integer, const D: usize>(n: usize, num_queries: usize) {
    // Without squares, distances are exact for far larger coordinates.
    let half = I::MOST.min(1 << 49);
    for (norm, most) in [(Norm::Euclidean, EXACT / 2), (Norm::Manhattan, half), (Norm::Chebyshev, half)] {
        let given = points::<I, D>(n, most, 1);
        let queries = points::<I, D>(num_queries, most, 2);
        for (device, period) in devices_for(n).into_iter().flat_map(|device| {
            // Points and queries are at most a period apart.
            [(device.clone(), 0), (device, i128::from(2 * most))]
        }) {
            let tree = build(&device, &given);
            let mut options = QueryOptions::default().norm(norm).sorted();
            if period > 0 {
                options = options.periods([period as f64; D]);
            }
            let near = tree.nearest_with(&queries, 9, &options).unwrap();
            let own = tree.nearest_with(Queries::SelfQuery { include_self: false }, 3, &options).unwrap();
            // The distance of some points, which the radius includes.
            let radius = (most / 2) as f64;
            let rows = tree.within(&queries, radius, &options).unwrap();
            let counts = tree.count_within(&queries, radius, &options).unwrap();
            for (i, query) in queries.iter().enumerate() {
                let what = format!("query {i}, {norm:?}, period {period}, {D} dimensions on {device}");
                let found = exact(&given, query, norm, period);
                let (ids, dist2) = padded_row(&rounded(&found[..n.min(9)]), 9);
                assert_eq!(near.padded_row(i), (&ids[..], &dist2[..]), "{what}");

                let bound = match norm {
                    Norm::Euclidean => i128::from(most / 2).pow(2),
                    _ => i128::from(most / 2),
                };
                let within = rounded(&found[..found.partition_point(|&(distance, _)| distance <= bound)]);
                let (dist2, ids): (Vec<f64>, Vec<u32>) = within.into_iter().unzip();
                assert_eq!(counts[i] as usize, ids.len(), "{what}");
                assert_eq!((rows.row(i).ids(), rows.row(i).dist2()), (&ids[..], &dist2[..]), "{what}");
            }
            for (id, query) in given.iter().enumerate().step_by(11) {
                let mut found = exact(&given, query, norm, period);
                found.retain(|&(_, other)| other as usize != id);
                let (ids, dist2) = padded_row(&rounded(&found[..found.len().min(3)]), 3);
                assert_eq!(own.padded_row(id), (&ids[..], &dist2[..]), "own {id}, {norm:?} on {device}");
            }
        }
    }
}

#[test]
fn equal_to_exact_brute_force_of_all_dimensions() {
    for_each_dims!(D => equal_to_exact_brute_force::<i32, D>(600, 30));
    for_each_dims!(D => equal_to_exact_brute_force::<i64, D>(600, 30));
}

#[test]
fn a_few_integers_on_every_device() {
    equal_to_exact_brute_force::<i32, 2>(33, 5);
    equal_to_exact_brute_force::<i64, 3>(33, 5);
}

fn extremes<I: Integer, const D: usize>(extremes: [I; 4]) {
    let mut random = Random::new(3);
    let mut some = |n| -> Vec<[I; D]> {
        (0..n).map(|_| std::array::from_fn(|_| extremes[random.below(4) as usize])).collect()
    };
    let (points, queries) = (some(33), some(9));
    let oracle = BruteForce::new(&points);
    for device in devices_for(33) {
        let near = build(&device, &points).nearest(&queries, 35).unwrap();
        for (i, query) in queries.iter().enumerate() {
            let (ids, dist2) = oracle.row(*query, 35);
            assert_eq!(near.padded_row(i), (&ids[..], &dist2[..]), "query {i} on {device}");
            // Rounded distances differ from the exact ones by the rounding only.
            let found = exact(&points, query, Norm::Euclidean, 0);
            for (&(distance, _), &got) in found.iter().zip(near.row(i).dist2()) {
                assert!((got - distance as f64).abs() <= 1e-15 * got, "{got} {distance}");
            }
        }
    }
}

#[test]
fn the_largest_and_the_least() {
    for_each_dims!(D => extremes::<i32, D>([i32::MIN, i32::MIN + 1, i32::MAX, 0]));
    for_each_dims!(D => extremes::<i64, D>([-1 << 53, 1 - (1 << 53), 1 << 53, 0]));
    // Distances are exact even where they overflow the integer type.
    for device in devices_for(2) {
        let tree = build(&device, &[[i32::MIN], [i32::MAX]]);
        let far = QueryOptions::default().norm(Norm::Manhattan);
        let near = tree.nearest_with(&[[i32::MAX]], 2, &far).unwrap();
        assert_eq!(near.padded_row(0), (&[1, 0][..], &[0.0, f64::from(u32::MAX)][..]));
    }
}

fn in_boxes<I: Integer, const D: usize>() {
    let given = points::<I, D>(400, I::MOST, 5);
    let mut boxes: Vec<[[I; D]; 2]> = points::<I, D>(60, I::MOST, 6)
        .chunks_exact(2)
        .map(|pair| {
            let side = |axis: usize, least: bool| {
                if least { pair[0][axis].min(pair[1][axis]) } else { pair[0][axis].max(pair[1][axis]) }
            };
            [std::array::from_fn(|axis| side(axis, true)), std::array::from_fn(|axis| side(axis, false))]
        })
        .collect();
    boxes.push([[I::of(-I::MOST); D], [I::of(I::MOST); D]]);
    boxes.push([given[9], given[9]]);
    for device in devices() {
        let tree = build(&device, &given);
        let counts = tree.count_in_boxes(&boxes, None).unwrap();
        let rows = tree.in_boxes(&boxes, None).unwrap();
        for (i, [low, high]) in boxes.iter().enumerate() {
            let inside =
                |id: &u32| (0..D).all(|axis| (low[axis]..=high[axis]).contains(&given[*id as usize][axis]));
            let expected: Vec<u32> = (0..given.len() as u32).filter(inside).collect();
            let mut ids = rows.row(i).to_vec();
            ids.sort_unstable();
            assert_eq!((counts[i] as usize, ids), (expected.len(), expected), "box {i} on {device}");
        }
    }
}

#[test]
fn in_boxes_of_all_dimensions() {
    for_each_dims!(D => in_boxes::<i32, D>());
    for_each_dims!(D => in_boxes::<i64, D>());
}

#[test]
fn integers_beyond_2_to_the_53_are_refused() {
    let limit = 1i64 << 53;
    for beyond in [limit + 1, -limit - 1, i64::MAX, i64::MIN] {
        let mut points = vec![[limit, -limit, 0]; 33];
        points[20][1] = beyond;
        points[30][0] = beyond;
        let named = |error: Error, of: &str| match error {
            Error::CoordinateTooLarge { what, index: 20, axis: 1, value, limit: most } => {
                assert_eq!((what, value, most), (of, beyond as f64, limit as f64));
            }
            other => panic!("{other}"),
        };
        for device in devices_for(33) {
            named(KdTree::build(&device, &points, &KdTreeOptions::default()).unwrap_err(), "point");
            let tree = build(&device, &points[..20]);
            named(tree.nearest(&points, 1).unwrap_err(), "query");
            named(tree.within(&points, 1.0, &QueryOptions::default()).unwrap_err(), "query");
            let boxes: Vec<_> = points.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
            named(tree.count_in_boxes(&boxes, None).unwrap_err(), "corner of a box");
            assert_eq!(tree.nearest(&points[..1], 1).unwrap().ids(), [0], "usable after an error");
        }
    }
}
