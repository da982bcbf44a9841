//! Queries with options against brute force; trees and queries on device buffers.

use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::kdtree::{BuildAlgorithm, SplitRule};
use kauri::query::{DeviceIndex, DeviceQueries, Norm, PointMask, Queries, QueryOptions, Traversal};
use kauri::{Device, Error, KdTree, KdTreeOptions, LonLat, SpatialIndex};
use kauri_tests::generate::{Random, Scalar, Shape, queries};
use kauri_tests::oracle::{
    padded_row, {self},
};
use kauri_tests::{devices, devices_for, for_each_dims};

use crate::{build, build_by};

/// Returns the distance by the definition of the norm. An axis with a period other than 0 is periodic.
fn distance<C: Scalar, const D: usize>(a: &[C; D], b: &[C; D], norm: Norm, periods: &[C]) -> C {
    let mut along = (0..D).map(|axis| {
        let d = (a[axis] - b[axis]).abs();
        match periods.get(axis) {
            Some(&period) if period > C::ZERO => d.min(period - d),
            _ => d,
        }
    });
    match norm {
        Norm::Euclidean => along.fold(C::ZERO, |sum, d| sum + d * d),
        Norm::Manhattan => along.fold(C::ZERO, |sum, d| sum + d),
        Norm::Chebyshev => along.by_ref().fold(C::ZERO, |most, d| most.max(d)),
    }
}

/// Generates points within one period.
fn in_period<C: Scalar, const D: usize>(n: usize, seed: u64) -> Vec<[C; D]> {
    let mut random = Random::new(seed);
    (0..n).map(|_| std::array::from_fn(|_| C::from_f64((random.unit() * 64.0).floor() / 8.0))).collect()
}

struct Case<C: Scalar, const D: usize> {
    options: QueryOptions<[C; D]>,
    mask: Option<PointMask>,
    norm: Norm,
    periods: Vec<C>,
    radius: Option<C>,
}

impl<C: Scalar, const D: usize> Case<C, D> {
    fn new(number: usize, num_points: usize) -> Self {
        let norm = [Norm::Euclidean, Norm::Manhattan, Norm::Chebyshev][number % 3];
        let mut options = QueryOptions::default().norm(norm);
        let periods: Vec<C> = match number / 3 % 2 {
            0 => Vec::new(),
            // Axis 1 is not periodic.
            _ => (0..D).map(|axis| C::from_f64(if axis == 1 { 0.0 } else { 8.0 })).collect(),
        };
        if !periods.is_empty() {
            options = options.periods(periods.clone());
        }
        let radius = [None, Some(C::from_f64(1.5)), Some(C::ZERO)][number / 6 % 3];
        if let Some(radius) = radius {
            options = options.radius(radius);
        }
        let mask = (number / 18 % 2 == 1).then(|| PointMask::from_fn(num_points, |id| id % 3 != 1).unwrap());
        if let Some(mask) = &mask {
            options = options.mask(mask.clone());
        }
        Self { options, mask, norm, periods, radius }
    }

    const COUNT: usize = 36;

    /// Returns the points of the tree that a query finds, nearest first. The query excludes point `except`.
    fn found(&self, points: &InTree<C, D>, query: &[C; D], except: Option<u32>) -> Vec<(C, u32)> {
        let InTree { points, order } = points;
        let bound =
            self.radius.map(|radius| if self.norm == Norm::Euclidean { radius * radius } else { radius });
        let mut found: Vec<(C, u32)> = (0..points.len() as u32)
            .filter(|&id| order[id as usize] != REMOVED && Some(id) != except)
            .filter(|&id| self.mask.as_ref().is_none_or(|mask| mask.takes(id)))
            .map(|id| (distance(query, &points[id as usize], self.norm, &self.periods), id))
            .filter(|(distance, _)| bound.is_none_or(|bound| *distance <= bound))
            .collect();
        found.sort_by(|a, b| a.partial_cmp(b).unwrap());
        found
    }

    /// Returns the expected row of the `k` nearest points.
    fn row(
        &self,
        points: &InTree<C, D>,
        query: &[C; D],
        except: Option<u32>,
        k: usize,
    ) -> (Vec<u32>, Vec<C>) {
        let mut found = self.found(points, query, except);
        found.truncate(k);
        padded_row(&found, k)
    }
}

/// Points with their positions in the order of the tree.
struct InTree<'a, C, const D: usize> {
    points: &'a [[C; D]],
    order: Vec<usize>,
}

/// The position of a point that was removed because it equals another.
const REMOVED: usize = usize::MAX;

impl<'a, C: Scalar, const D: usize> InTree<'a, C, D> {
    /// Computes the positions from the ids in level order.
    fn new(points: &'a [[C; D]], node_ids: &[u32]) -> Self {
        Self { points, order: in_order(node_ids, points.len()) }
    }
}

/// Calls `check` with a left-balanced and a balanced tree of every device.
macro_rules! each_tree {
    ($points:expr, |$tree:ident, $in_tree:ident| $check:expr) => {
        let $in_tree = &InTree::new($points, &oracle::tree_ids($points, rule_of(D)));
        for device in devices() {
            let $tree = &build_by(&device, $points, rule_of(D));
            $check;
        }
        let $in_tree = &InTree::new($points, &oracle::balanced($points).0);
        for device in devices() {
            let options = BalancedOptions::default();
            let $tree = &BalancedKdTree::build(&device, $points, &options).unwrap();
            $check;
            if !device.is_cpu() {
                let $tree = &BalancedKdTree::build_over(&vec![device; 3], $points, &options).unwrap();
                $check;
            }
        }
    };
}

fn options_equal_to_brute_force<C: Scalar, const D: usize>() {
    let points = &in_period::<C, D>(230, D as u64);
    each_tree!(points, |tree, in_tree| nearest_equal_to_brute_force(tree, in_tree));
}

fn nearest_equal_to_brute_force<C: Scalar, const D: usize>(
    tree: &impl SpatialIndex<Point = [C; D]>,
    points: &InTree<C, D>,
) {
    let queries = in_period::<C, D>(40, 100 + D as u64);
    for number in 0..Case::<C, D>::COUNT {
        let case = Case::<C, D>::new(number, points.points.len());
        // The kernels for one neighbor, short lists, queues and heaps.
        let k = [1, 7, 40, 150, 300][number % 5];
        let what = format!("{number} k = {k}, {D} x {} on {}", C::NAME, tree.device());
        let near = tree.nearest_with(&queries, k, &case.options).unwrap();
        for (i, query) in queries.iter().enumerate() {
            let (ids, dist2) = case.row(points, query, None, k);
            assert_eq!(near.padded_row(i), (&ids[..], &dist2[..]), "query {i} of case {what}");
        }
        let include_self = number % 2 == 0;
        let own = tree.nearest_with(Queries::SelfQuery { include_self }, k, &case.options).unwrap();
        for (id, query) in points.points.iter().enumerate().step_by(7) {
            let except = (!include_self).then_some(id as u32);
            let (ids, dist2) = case.row(points, query, except, k);
            assert_eq!(own.padded_row(id), (&ids[..], &dist2[..]), "own {id} of case {what}");
        }
    }
}

#[test]
fn options_equal_to_brute_force_f32() {
    for_each_dims!(D => options_equal_to_brute_force::<f32, D>());
}

#[test]
fn options_equal_to_brute_force_f64() {
    for_each_dims!(D => options_equal_to_brute_force::<f64, D>());
}

/// Returns a split rule; both occur among the dimensions.
fn rule_of(dims: usize) -> SplitRule {
    if dims.is_multiple_of(2) { SplitRule::Widest } else { SplitRule::RoundRobin }
}

fn within_equal_to_brute_force<C: Scalar, const D: usize>() {
    let points = &in_period::<C, D>(230, D as u64);
    each_tree!(points, |tree, in_tree| found_equal_to_brute_force(tree, in_tree));
}

fn found_equal_to_brute_force<C: Scalar, const D: usize>(
    tree: &impl SpatialIndex<Point = [C; D]>,
    points: &InTree<C, D>,
) {
    let queries = in_period::<C, D>(40, 100 + D as u64);
    for number in 0..Case::<C, D>::COUNT {
        let case = Case::<C, D>::new(number, points.points.len());
        let Some(radius) = case.radius else { continue };
        let what = format!("{number}, {D} x {} on {}", C::NAME, tree.device());
        let counts = tree.count_within(&queries, radius, &case.options).unwrap();
        let rows = tree.within(&queries, radius, &case.options).unwrap();
        let sorted = tree.within(&queries, radius, &case.options.clone().sorted()).unwrap();
        assert_eq!((rows.len(), sorted.len()), (queries.len(), queries.len()));
        for (i, query) in queries.iter().enumerate() {
            let mut found = case.found(points, query, None);
            assert_eq!(counts[i] as usize, found.len(), "query {i} of case {what}");
            let (dist2, ids): (Vec<C>, Vec<u32>) = found.iter().copied().unzip();
            assert_eq!(
                (sorted.row(i).ids(), sorted.row(i).dist2()),
                (&ids[..], &dist2[..]),
                "query {i} of case {what}"
            );
            found.sort_by_key(|&(_, id)| points.order[id as usize]);
            let (dist2, ids): (Vec<C>, Vec<u32>) = found.into_iter().unzip();
            assert_eq!(
                (rows.row(i).ids(), rows.row(i).dist2()),
                (&ids[..], &dist2[..]),
                "query {i} of case {what}"
            );
        }
        let own = tree
            .within(Queries::SelfQuery { include_self: false }, radius, &case.options.clone().sorted())
            .unwrap();
        for (id, query) in points.points.iter().enumerate().step_by(7) {
            let found = case.found(points, query, Some(id as u32));
            assert!(own.row(id).ids().iter().eq(found.iter().map(|(_, id)| id)), "own {id} of case {what}");
        }
    }
}

/// Returns the in-order rank of each id. `node_ids` is in level order.
fn in_order(node_ids: &[u32], num_points: usize) -> Vec<usize> {
    fn visit(node: usize, node_ids: &[u32], ranks: &mut Vec<usize>, next: &mut usize) {
        if let Some(&id) = node_ids.get(node).filter(|&&id| id != u32::MAX) {
            visit(2 * node + 1, node_ids, ranks, next);
            ranks[id as usize] = *next;
            *next += 1;
            visit(2 * node + 2, node_ids, ranks, next);
        }
    }
    let mut ranks = vec![REMOVED; num_points];
    visit(0, node_ids, &mut ranks, &mut 0);
    ranks
}

#[test]
fn within_equal_to_brute_force_f32() {
    for_each_dims!(D => within_equal_to_brute_force::<f32, D>());
}

#[test]
fn within_equal_to_brute_force_f64() {
    for_each_dims!(D => within_equal_to_brute_force::<f64, D>());
}

fn in_boxes_equal_to_brute_force<C: Scalar, const D: usize>() {
    let points = &in_period::<C, D>(230, D as u64);
    each_tree!(points, |tree, in_tree| boxes_equal_to_brute_force(tree, in_tree));
}

fn boxes_equal_to_brute_force<C: Scalar, const D: usize>(
    tree: &impl SpatialIndex<Point = [C; D]>,
    InTree { points, order }: &InTree<C, D>,
) {
    let corners = in_period::<C, D>(60, 200 + D as u64);
    // Boxes of two random corners, some of them empty; boxes of one corner and a size; a box of one point; the box of everything.
    let mut boxes: Vec<[[C; D]; 2]> = corners.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    boxes.extend(corners.iter().map(|&corner| [corner, corner.map(|x| x + C::from_f64(4.0))]));
    boxes.push([points[3], points[3]]);
    boxes.push([[C::ZERO; D], [C::from_f64(8.0); D]]);
    let mask = PointMask::from_fn(points.len(), |id| id % 2 == 0).unwrap();
    for mask in [None, Some(&mask)] {
        let counts = tree.count_in_boxes(&boxes, mask).unwrap();
        let rows = tree.in_boxes(&boxes, mask).unwrap();
        for (i, [low, high]) in boxes.iter().enumerate() {
            let inside = |id: &u32| {
                let point = &points[*id as usize];
                (0..D).all(|axis| low[axis] <= point[axis] && point[axis] <= high[axis])
                    && order[*id as usize] != REMOVED
                    && mask.is_none_or(|mask| mask.takes(*id))
            };
            let mut ids: Vec<u32> = (0..points.len() as u32).filter(inside).collect();
            ids.sort_by_key(|&id| order[id as usize]);
            let what = format!("box {i} on {}", tree.device());
            assert_eq!((counts[i] as usize, rows.row(i)), (ids.len(), &ids[..]), "{what}");
        }
    }
}

#[test]
fn in_boxes_equal_to_brute_force_of_all_dimensions() {
    for_each_dims!(D => in_boxes_equal_to_brute_force::<f32, D>());
    for_each_dims!(D => in_boxes_equal_to_brute_force::<f64, D>());
}

/// Enough queries to be sorted; with few points per row, which the CPU keeps while it counts, and with many.
#[test]
fn many_rows_equal_to_brute_force() {
    let points = Shape::Lattice.points::<f32, 2>(5000, 1);
    let queries = Shape::Uniform.points::<f32, 2>(4500, 2);
    let found = |query: &[f32; 2], radius: f32| -> Vec<u32> {
        let inside = |point| distance(query, point, Norm::Euclidean, &[]) <= radius * radius;
        (0..points.len() as u32).filter(|&id| inside(&points[id as usize])).collect()
    };
    for device in devices() {
        let tree = build(&device, &points);
        for radius in [0.02f32, 0.3] {
            let options = QueryOptions::default();
            let rows = tree.within(&queries, radius, &options).unwrap();
            let counts = tree.count_within(&queries, radius, &options).unwrap();
            for (i, query) in queries.iter().enumerate() {
                let mut ids = rows.row(i).ids().to_vec();
                ids.sort_unstable();
                assert!(ids == found(query, radius), "query {i} within {radius} on {device}");
                assert_eq!(counts[i] as usize, ids.len());
            }
        }
    }
}

#[test]
fn places_on_earth_within_meters() {
    let place = LonLat::new;
    let places =
        [place(179.9, 0.0), place(-179.9, 0.0), place(0.0, 90.0), place(10.0, 89.9), place(0.0, -90.0)];
    for device in devices() {
        let tree = build(&device, &places);
        let within = |place: LonLat, meters: f64| {
            let rows = tree.within(&[place], meters, &QueryOptions::default().sorted()).unwrap();
            rows.row(0).ids().to_vec()
        };
        assert_eq!(within(place(180.0, 0.0), 12_000.0), [0, 1]);
        assert_eq!(within(place(180.0, 0.0), 11_000.0), [0u32; 0]);
        assert_eq!(within(place(-100.0, 90.0), 12_000.0), [2, 3]);
        // Half the circumference reaches every place.
        assert_eq!(within(place(0.0, 90.0), 20_100_000.0).len(), 5);
        assert_eq!(within(place(0.0, 90.0), 19_900_000.0).len(), 4);
        let near =
            tree.nearest_with(&[place(180.0, 0.0)], 3, &QueryOptions::default().radius(12_000.0)).unwrap();
        assert_eq!(near.row(0).ids(), [0, 1]);
    }
}

#[test]
fn traversals_and_orders_give_the_same_rows() {
    let points = Shape::ALL[0].points::<f32, 3>(3000, 5);
    let queries = queries(&points, 2100, 6);
    let expected = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default()).unwrap();
    for device in devices() {
        let tree = build(&device, &points);
        let balanced = BalancedKdTree::build(&device, &points, &BalancedOptions::default()).unwrap();
        for k in [1, 8, 12, 32, 100, 256, 257] {
            let expected = expected.nearest(&queries, k).unwrap();
            let plain = QueryOptions::default();
            let by = |traversal| plain.clone().traversal(traversal);
            use Traversal::{BruteForce, ClosestCorner, Stack, StackFree};
            let all = [BruteForce, ClosestCorner, Stack, StackFree].map(by);
            for options in all.into_iter().chain([plain.clone(), plain.clone().coherent()]) {
                let near = tree.nearest_with(&queries, k, &options).unwrap();
                assert!(near.ids() == expected.ids(), "k = {k}, {options:?} on {device}");
                assert!(near.dist2() == expected.dist2(), "k = {k}, {options:?} on {device}");
                let near = balanced.nearest_with(&queries, k, &options).unwrap();
                assert!(near.ids() == expected.ids(), "k = {k}, {options:?} of a balanced tree on {device}");
                assert!(
                    near.dist2() == expected.dist2(),
                    "k = {k}, {options:?} of a balanced tree on {device}"
                );
            }
        }
    }
}

/// Returns the results of the queries of thread `number` to a shared tree: ids and distances.
fn results(tree: &KdTree<[f32; 3]>, queries: &[[f32; 3]], number: usize) -> Vec<(Vec<u32>, Vec<f32>)> {
    let k = [1, 4, 16, 33, 64, 100, 257, 300][number % 8];
    let case = Case::<f32, 3>::new(5 * number, tree.len());
    let radius = 0.5 + number as f32 / 4.0;
    let near = tree.nearest_with(queries, k, &case.options).unwrap();
    let own = tree
        .nearest_with(Queries::SelfQuery { include_self: number.is_multiple_of(2) }, k.min(8), &case.options)
        .unwrap();
    let plain = tree.nearest(queries, k).unwrap();
    let (_, (ids, dist2)) = tree.within(queries, radius, &case.options).unwrap().into_parts();
    let counts = tree.count_within(queries, radius, &case.options).unwrap();
    let boxes: Vec<_> = queries.iter().map(|&low| [low, low.map(|x| x + radius)]).collect();
    let (_, in_boxes) = tree.in_boxes(&boxes, case.mask.as_ref()).unwrap().into_parts();
    let [near, own, plain] = [near, own, plain].map(|near| near.into_parts());
    vec![near, own, plain, (ids, dist2), (counts, Vec::new()), (in_boxes, Vec::new())]
}

fn threads_share(device: &Device, num_points: usize, num_queries: usize, rounds: usize) {
    let tree = &build(device, &in_period::<f32, 3>(num_points, 7));
    let queries = &in_period::<f32, 3>(num_queries, 8);
    let expected: Vec<_> = (0..8).map(|number| results(tree, queries, number)).collect();
    std::thread::scope(|scope| {
        for (number, expected) in expected.iter().enumerate() {
            scope.spawn(move || {
                for round in 0..rounds {
                    let same = results(tree, queries, number) == *expected;
                    assert!(same, "thread {number}, round {round} on {}", tree.device());
                }
            });
        }
    });
}

#[test]
fn threads_share_a_tree() {
    for device in devices() {
        threads_share(&device, 10_000, 500, 4);
    }
    for device in devices_for(33) {
        threads_share(&device, 33, 5, 1);
    }
}

#[test]
fn invalid_options_are_refused() {
    for device in devices() {
        let tree = build(&device, &[[0.0f32, 1.0], [2.0, 3.0]]);
        let error_of =
            |options: QueryOptions<[f32; 2]>| tree.nearest_with(&[[0.0, 0.0]], 1, &options).unwrap_err();
        let plain = QueryOptions::default;
        for length in [-1.0, f32::NAN] {
            assert!(matches!(error_of(plain().radius(length)), Error::InvalidLength { what: "radius", .. }));
            assert!(matches!(
                error_of(plain().periods([1.0, length])),
                Error::InvalidLength { what: "period", .. }
            ));
        }
        assert!(matches!(error_of(plain().periods([1.0])), Error::Shape { expected: 2, got: 1, .. }));
        let mask = PointMask::from_fn(3, |_| true).unwrap();
        assert!(matches!(error_of(plain().mask(mask)), Error::Shape { expected: 2, got: 3, .. }));
        // The tree is unchanged.
        assert_eq!(tree.nearest(&[[0.0, 0.0]], 1).unwrap().padded_row(0), (&[0][..], &[1.0][..]));
    }
}

#[test]
fn queries_beyond_a_period_are_refused() {
    for device in devices() {
        refuses_queries_beyond_a_period(&device, &[]);
        // Enough points for boxes.
        refuses_queries_beyond_a_period(&device, &[[1.0, 0.0]; 100]);
    }
}

fn refuses_queries_beyond_a_period(device: &Device, others: &[[f64; 2]]) {
    let mut points = vec![[0.5, 50.0], [7.5, -50.0], [1.0, 0.0]];
    points.extend_from_slice(others);
    let tree = build(device, &points);
    let options = |period: f64| QueryOptions::default().periods([period, 0.0]);
    let refused = |error: Error| match error {
        Error::BeyondPeriod { what, index, axis: 0, distance, period } => (what, index, distance, period),
        other => panic!("{other}"),
    };
    // A distance of exactly one period is valid; the other axis is not periodic.
    assert_eq!(tree.nearest_with(&[[8.5, 1e9]], 1, &options(8.0)).unwrap().ids(), [0]);
    assert_eq!(tree.count_within(&[[-0.5, 0.0]], 0.25, &options(8.0)).unwrap(), [0]);

    let mut queries = vec![[4.0, 0.0]; 10_000];
    queries[9000][0] = 9.0;
    queries[8000][0] = -1.0;
    let expected = ("query", 8000, 8.5, 8.0);
    assert_eq!(refused(tree.nearest_with(&queries, 1, &options(8.0)).unwrap_err()), expected);
    assert_eq!(refused(tree.within(&queries, 1.0, &options(8.0)).unwrap_err()), expected);
    assert_eq!(refused(tree.count_within(&queries, 1.0, &options(8.0)).unwrap_err()), expected);

    let own = Queries::SelfQuery { include_self: true };
    assert_eq!(tree.nearest_with(own, 1, &options(7.0)).unwrap().ids()[..3], [0, 1, 2]);
    let expected = ("point", 0, 7.0, 6.75);
    assert_eq!(refused(tree.nearest_with(own, 1, &options(6.75)).unwrap_err()), expected);
    assert_eq!(refused(tree.within(own, 1.0, &options(6.75)).unwrap_err()), expected);

    let none = build::<[f64; 2]>(device, &[]);
    assert_eq!(none.nearest_with(&[[1e9, 0.0]], 1, &options(8.0)).unwrap().ids(), [u32::MAX]);
}

#[test]
fn buffers_in_and_out() {
    let points = Shape::Uniform.points::<f32, 3>(2500, 1);
    let others = Shape::Uniform.points::<f32, 3>(2500, 2);
    let queries = queries(&points, 1500, 3);
    for device in devices() {
        let Some(gpu) = device.gpu() else { continue };
        let stream = Stream::new(gpu).unwrap();
        let mut workspace = Workspace::new(gpu);
        let coords = Buffer::from_slice(&stream, points.as_flattened(), "points").unwrap();
        let other_coords = Buffer::from_slice(&stream, others.as_flattened(), "points").unwrap();
        let query_coords = Buffer::from_slice(&stream, queries.as_flattened(), "queries").unwrap();
        let options = KdTreeOptions::default();
        let mut tree = KdTree::<[f32; 3]>::build_on(&stream, &mut workspace, &coords, &options).unwrap();
        let prepared = tree.prepare(&stream, &QueryOptions::default()).unwrap();
        let mut ids = Buffer::<u32>::uninitialized(gpu, 1500 * 5, "ids").unwrap();
        let mut dist2 = Buffer::<f32>::uninitialized(gpu, 1500 * 5, "distances").unwrap();
        let mut own_ids = Buffer::<u32>::uninitialized(gpu, 2500 * 5, "ids").unwrap();
        let mut own_dist2 = Buffer::<f32>::uninitialized(gpu, 2500 * 5, "distances").unwrap();
        for (points, coords, algorithm) in
            [(&points, &coords, BuildAlgorithm::Tags), (&others, &other_coords, BuildAlgorithm::Selection)]
        {
            tree.rebuild_on(&stream, &mut workspace, coords, &options.clone().algorithm(algorithm)).unwrap();
            let query_set = DeviceQueries::Coordinates(&query_coords);
            tree.nearest_on(&stream, &mut workspace, query_set, 5, &prepared, &mut ids, &mut dist2).unwrap();
            let own = DeviceQueries::SelfQuery { include_self: false };
            tree.nearest_on(&stream, &mut workspace, own, 5, &prepared, &mut own_ids, &mut own_dist2)
                .unwrap();
            // Calls without a stream wait for the stream of the build.
            tree.verify().unwrap();
            let expected = KdTree::build(&Device::cpu(), points, &options).unwrap();
            let near = expected.nearest(&queries, 5).unwrap();
            assert!(
                ids.to_vec(&stream).unwrap() == near.ids() && dist2.to_vec(&stream).unwrap() == near.dist2()
            );
            let own = expected
                .nearest_with(Queries::SelfQuery { include_self: false }, 5, &QueryOptions::default())
                .unwrap();
            assert!(own_ids.to_vec(&stream).unwrap() == own.ids());
            assert!(own_dist2.to_vec(&stream).unwrap() == own.dist2());
        }
        tree.rebuild_on(&stream, &mut workspace, &coords, &options).unwrap();
        let held = workspace.bytes();
        tree.rebuild_on(&stream, &mut workspace, &coords, &options).unwrap();
        assert_eq!(workspace.bytes(), held);

        let (first, padded) = (&points[..2497], KdTree::<[f32; 3]>::padded_len(2497));
        for split in [SplitRule::RoundRobin, SplitRule::Widest] {
            // The padding behind the points has any value.
            let items = [first.as_flattened(), &vec![f32::NAN; padded - 3 * 2497]].concat();
            let mut memory = Buffer::from_slice(&stream, &items, "points").unwrap();
            let (address, options) = (memory.as_raw(), options.clone().split(split));
            let mut build = |memory: &mut Buffer<f32>, num_points| {
                KdTree::<[f32; 3]>::build_in_place_on(&stream, &mut workspace, memory, num_points, &options)
            };
            for num_points in [2400, 2600, usize::MAX] {
                let error = build(&mut memory, num_points).unwrap_err();
                assert!(matches!(error, Error::Shape { .. } | Error::TooManyItems { .. }), "{error}");
            }
            assert!(memory.as_raw() == address && memory.len() == padded);
            let own = build(&mut memory, 2497).unwrap();
            assert!(memory.is_empty() && memory.as_raw() == 0);
            own.verify().unwrap();
            let expected = KdTree::build(&Device::cpu(), first, &options).unwrap();
            assert_eq!(own.node_ids().unwrap(), expected.node_ids().unwrap());
            let (found, expected) =
                (own.nearest(&queries, 5).unwrap(), expected.nearest(&queries, 5).unwrap());
            assert!(found.ids() == expected.ids() && found.dist2() == expected.dist2());
        }
        let mut empty = Buffer::uninitialized(gpu, 0, "no points").unwrap();
        let none =
            KdTree::<[f32; 3]>::build_in_place_on(&stream, &mut workspace, &mut empty, 0, &options).unwrap();
        assert!(none.is_empty());

        let few = Buffer::from_slice(&stream, &[0.0f32; 9], "few").unwrap();
        let uneven = Buffer::from_slice(&stream, &[0.0f32; 10], "uneven").unwrap();
        for (wrong, expected, got) in [(&few, 7500, 9), (&uneven, 9, 10)] {
            let error = tree.rebuild_on(&stream, &mut workspace, wrong, &options).unwrap_err();
            assert!(
                matches!(error, Error::Shape { expected: e, got: g, .. } if (e, g) == (expected, got)),
                "{error}"
            );
        }
        let query_set = DeviceQueries::Coordinates(&few);
        let error = tree
            .nearest_on(&stream, &mut workspace, query_set, 5, &prepared, &mut ids, &mut dist2)
            .unwrap_err();
        assert!(matches!(error, Error::Shape { expected: 15, .. }), "{error}");
        tree.verify().unwrap();
    }
    let tree = build(&Device::cpu(), &points);
    if let Some(gpu) = devices().iter().find_map(Device::gpu) {
        let stream = Stream::new(gpu).unwrap();
        assert!(matches!(tree.prepare(&stream, &QueryOptions::default()), Err(Error::NotOnGpu)));
    }
}

#[test]
fn points_found_in_buffers() {
    let points = Shape::Uniform.points::<f32, 3>(2500, 1);
    let queries = queries(&points, 1500, 3);
    let (radius, plain) = (0.2, QueryOptions::default());
    let expected = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default()).unwrap();
    let rows = expected.within(&queries, radius, &plain).unwrap();
    let boxes: Vec<_> = queries.iter().map(|&low| [low, low.map(|x| x + radius)]).collect();
    let in_boxes = expected.in_boxes(&boxes, None).unwrap();
    for device in devices() {
        let Some(gpu) = device.gpu() else { continue };
        let (stream, tree) = (Stream::new(gpu).unwrap(), build(&device, &points));
        let mut workspace = Workspace::new(gpu);
        let prepared = tree.prepare(&stream, &plain.clone().radius(radius)).unwrap();
        let coords = Buffer::from_slice(&stream, queries.as_flattened(), "queries").unwrap();
        let corners = Buffer::from_slice(&stream, boxes.as_flattened().as_flattened(), "boxes").unwrap();
        let mut offsets = Buffer::uninitialized(gpu, 1501, "offsets").unwrap();
        let query_set = DeviceQueries::Coordinates(&coords);
        // The capacity is half the result.
        let capacity = rows.ids().len() / 2;
        let mut ids = Buffer::uninitialized(gpu, capacity, "ids").unwrap();
        let mut dist2 = Buffer::uninitialized(gpu, capacity, "distances").unwrap();
        let distances = Some(&mut dist2);
        tree.within_on(&stream, &mut workspace, query_set, &prepared, &mut offsets, &mut ids, distances)
            .unwrap();
        assert!(offsets.to_vec(&stream).unwrap() == rows.offsets());
        assert!(ids.to_vec(&stream).unwrap() == rows.ids()[..capacity]);
        assert!(dist2.to_vec(&stream).unwrap() == rows.dist2()[..capacity]);

        let capacity = in_boxes.ids().len();
        let mut ids = Buffer::uninitialized(gpu, capacity, "ids").unwrap();
        tree.in_boxes_on(&stream, &mut workspace, &corners, &prepared, &mut offsets, &mut ids).unwrap();
        assert!(offsets.to_vec(&stream).unwrap() == in_boxes.offsets());
        assert!(ids.to_vec(&stream).unwrap() == in_boxes.ids());
    }
}
