//! Many points at one position or at one distance: every index returns the rows of brute force, and ties go to the smaller id.

use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::kdtree::SplitRule;
use kauri::quadtree::{CartesianPoint, CellTree, QuadtreeOptions};
use kauri::query::{Norm, PointMask, Queries, QueryOptions};
use kauri::{Cartesian, Device, KdTree, KdTreeOptions, SpatialIndex};
use kauri_tests::devices;
use kauri_tests::generate::{Random, Scalar};
use kauri_tests::oracle::BruteForce;

/// Number of points: too many for brute force on a GPU.
const POINTS: usize = 1200;

/// Sets of points with many ties, and their names.
fn points<C: Scalar, const D: usize>() -> Vec<(&'static str, Vec<[C; D]>)> {
    let at = |x: f64| [C::from_f64(x); D];
    let of = |point: &dyn Fn(usize) -> [C; D]| (0..POINTS).map(point).collect::<Vec<_>>();
    let mut random = Random::new(4);
    let order: Vec<_> = (0..POINTS).map(|_| random.below(1 << 20) as usize).collect();
    let on_axis = |i: usize| {
        let mut point = at(2.0);
        point[D - 1] = C::from_f64((order[i] % POINTS) as f64 / POINTS as f64);
        point
    };
    vec![
        ("all equal", vec![at(3.0); POINTS]),
        ("three places in turn", of(&|i| at([-100.0, 0.0, 100.0][i % 3]))),
        ("places in no order", of(&|i| at((order[i] % 5) as f64))),
        ("16 at each place", of(&|i| at((i / 16) as f64))),
        ("a line", of(&on_axis)),
        ("equal, and one far away", of(&|i| at(if i == 77 { 1e9 } else { -1.0 }))),
        ("a cluster, and one far away", of(&|i| at(if i == 77 { 1e17 } else { order[i] as f64 * 1e-6 }))),
    ]
}

/// Queries at points, beside them, between them, and far away from all.
fn queries<C: Scalar, const D: usize>(points: &[[C; D]]) -> Vec<[C; D]> {
    let beside = |shift: f64| {
        std::array::from_fn(|axis| C::from_f64(if axis % 2 == 0 { shift } else { -2.0 * shift }))
    };
    let far = [0.0, 1.0, 5.0, -40.0, 1e7].map(beside);
    [points[0], points[POINTS / 2], points[POINTS - 1]].into_iter().chain(far).collect()
}

/// Compares an index with brute force over the points that it has, the ids `in_tree`.
fn check<C: Scalar, const D: usize>(
    index: &impl SpatialIndex<Point = [C; D]>,
    points: &[[C; D]],
    in_tree: &[u32],
    what: &str,
) where
    [C; D]: Cartesian<Coord = C>,
{
    let kept: Vec<_> = in_tree.iter().map(|&id| points[id as usize]).collect();
    let (oracle, queries) = (BruteForce::new(&kept), queries(points));
    let global = |id: u32| in_tree.get(id as usize).copied().unwrap_or(u32::MAX);
    for k in [1, 8, 40, 100] {
        let near = index.nearest(&queries, k).unwrap();
        for (i, &query) in queries.iter().enumerate() {
            let (ids, dist2) = oracle.row(query, k);
            let ids: Vec<_> = ids.into_iter().map(global).collect();
            assert!(
                near.padded_row(i) == (&ids[..], &dist2[..]),
                "{what}, k = {k}, {query:?}: {:?}",
                near.row(i)
            );
        }
    }
    let default = QueryOptions::default();
    for radius in [0.0, 1.0, 3.5, 150.0, 1e8] {
        let radius = C::from_f64(radius);
        let counts = index.count_within(Queries::Points(&queries), radius, &default).unwrap();
        let rows = index.within(Queries::Points(&queries), radius, &default).unwrap();
        for (i, &query) in queries.iter().enumerate() {
            let all = oracle.nearest(query, POINTS);
            let count = all.iter().filter(|(distance, _)| *distance <= radius * radius).count();
            assert_eq!(counts[i] as usize, count, "{what}, {query:?} within {radius:?}");
            assert_eq!(rows.row(i).len(), count, "{what}, {query:?} within {radius:?}");
        }
        // Without themselves, all points of the tree find one point less.
        let with = index.count_within(Queries::SelfQuery { include_self: true }, radius, &default).unwrap();
        let without =
            index.count_within(Queries::SelfQuery { include_self: false }, radius, &default).unwrap();
        for (id, (with, without)) in with.into_iter().zip(without).enumerate() {
            let is_in_tree = in_tree.binary_search(&(id as u32)).is_ok();
            assert_eq!(with - without, u32::from(is_in_tree), "{what}, point {id} within {radius:?}");
        }
    }
    let boxes = queries.iter().flat_map(|&query| {
        [0.0, 2.0, 1e6].map(|side| {
            let side = C::from_f64(side);
            [query.map(|x| x - side), query.map(|x| x + side)]
        })
    });
    let boxes: Vec<_> = boxes.collect();
    let mask = PointMask::from_fn(points.len(), |id| id % 3 == 1).unwrap();
    for mask in [None, Some(&mask)] {
        let counts = index.count_in_boxes(&boxes, mask).unwrap();
        for ([low, high], count) in boxes.iter().zip(counts) {
            let is_inside = |&&id: &&u32| {
                let point = points[id as usize];
                (0..D).all(|axis| low[axis] <= point[axis] && point[axis] <= high[axis])
                    && mask.is_none_or(|_| id % 3 == 1)
            };
            assert_eq!(
                in_tree.iter().filter(is_inside).count(),
                count as usize,
                "{what}, {low:?} to {high:?}"
            );
        }
    }
}

fn check_all<C: Scalar, const D: usize>(device: &Device)
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    for (name, points) in points::<C, D>() {
        let what = format!("{name}, {D}-D {} on {device}", C::NAME);
        let all: Vec<u32> = (0..POINTS as u32).collect();
        for rule in [SplitRule::RoundRobin, SplitRule::Widest] {
            let tree = KdTree::build(device, &points, &KdTreeOptions::default().split(rule)).unwrap();
            check(&tree, &points, &all, &format!("{what}, {rule:?}"));
        }
        let tree = BalancedKdTree::build(device, &points, &BalancedOptions::default()).unwrap();
        let is_first = |&id: &u32| !points[..id as usize].contains(&points[id as usize]);
        let distinct: Vec<u32> = all.iter().copied().filter(is_first).collect();
        check(&tree, &points, &distinct, &format!("{what}, balanced"));
        let tree = CellTree::build(device, &points, &QuadtreeOptions::default()).unwrap();
        tree.verify().unwrap();
        check(&tree, &points, &all, &format!("{what}, quadtree"));
    }
}

#[test]
fn rows_of_points_with_ties_equal_brute_force() {
    for device in devices() {
        check_all::<f32, 2>(&device);
        check_all::<f64, 3>(&device);
    }
}

/// Other norms have whole lines of points at one distance.
#[test]
fn lines_at_one_distance_by_other_norms() {
    let mut random = Random::new(9);
    let points: Vec<[f64; 2]> = (0..POINTS).map(|_| [0.0, random.unit()]).collect();
    for device in devices() {
        let tree = KdTree::build(&device, &points, &KdTreeOptions::default()).unwrap();
        let options = QueryOptions::default().norm(Norm::Chebyshev);
        // All points are at distance 1000: the smallest ids are the nearest.
        let near = tree.nearest_with(Queries::Points(&[[-1000.0, 0.5]]), 8, &options).unwrap();
        assert_eq!(near.padded_row(0), (&[0, 1, 2, 3, 4, 5, 6, 7][..], &[1000.0; 8][..]), "{device}");
    }
}
