//! Every join strategy on every device gives the result of a loop over all pairs.

use kauri::join::{
    Curve, DistanceJoin, KnnIndex, KnnJoin, Norm, PairScore, RankedPair, Score, ScoreFunction, Scored,
    ScoredPair, SelfPairs, Strategy, TopKDistanceJoin,
};
use kauri::research::join::Lookup;
use kauri::{Batches, Device, Error, KdTree, KdTreeOptions, LonLat, Point, SpatialIndex};
use kauri_kernels::thread::coord::Float;
use kauri_tests::generate::{Random, Scalar, Shape};
use kauri_tests::{devices, devices_for, devices_for_shape};
use std::ops::ControlFlow;

const STRATEGIES: [Strategy; 8] = [
    Strategy::Auto,
    Strategy::NestedLoop,
    Strategy::Threshold,
    Strategy::Cells,
    Strategy::RegisterHeap,
    Strategy::SharedHeap,
    Strategy::AppendSort,
    Strategy::Filter,
];
const FUNCTIONS: [ScoreFunction; 4] =
    [ScoreFunction::Sum, ScoreFunction::Product, ScoreFunction::Min, ScoreFunction::Max];
const CURVES: [Curve; 3] = [Curve::Linear, Curve::ZOrder, Curve::Hilbert];
const LOOKUPS: [Lookup; 2] = [Lookup::Points, Lookup::Cells];
const NORMS: [Norm; 3] = [Norm::Euclidean, Norm::Manhattan, Norm::Chebyshev];

/// Returns the distance as it is compared: squared under the Euclidean norm.
fn distance<C: Float, const D: usize>(norm: Norm, a: &[C; D], b: &[C; D]) -> C {
    norm.put_together(D, |axis| (a[axis] - b[axis]).abs())
}

fn is_near<C: Float, const D: usize>(norm: Norm, a: &[C; D], b: &[C; D], epsilon: C) -> bool {
    distance(norm, a, b) <= if norm == Norm::Euclidean { epsilon * epsilon } else { epsilon }
}

/// Computes the score of a pair as documented.
pub(crate) trait TestScore: Score {
    fn random(random: &mut Random, distinct: u64) -> Self;
    fn of_pair(function: ScoreFunction, weights: Option<[f64; 2]>, left: Self, right: Self) -> PairScore;
}

fn weighted(weights: [f64; 2], left: f64, right: f64) -> PairScore {
    PairScore::Float(weights[0] * left + weights[1] * right)
}

macro_rules! integer_scores {
    ($($t:ty: $least:expr;)*) => { $(
        impl TestScore for $t {
            fn random(random: &mut Random, distinct: u64) -> Self {
                (random.below(distinct) as i64 + $least) as $t
            }
            fn of_pair(function: ScoreFunction, weights: Option<[f64; 2]>, left: Self, right: Self) -> PairScore {
                if let Some(weights) = weights {
                    return weighted(weights, left as f64, right as f64);
                }
                let (left, right) = (left as i64, right as i64);
                PairScore::Integer(match function {
                    ScoreFunction::Sum => left + right,
                    ScoreFunction::Product => left * right,
                    ScoreFunction::Min => left.min(right),
                    _ => left.max(right),
                })
            }
        }
    )* };
}
integer_scores! {
    u32: 0;
    i64: -3;
}

macro_rules! float_scores {
    ($($t:ty)*) => { $(
        impl TestScore for $t {
            fn random(random: &mut Random, distinct: u64) -> Self {
                (random.below(distinct) as f64 - 2.0) as $t / 4.0
            }
            fn of_pair(function: ScoreFunction, weights: Option<[f64; 2]>, left: Self, right: Self) -> PairScore {
                let (left, right) = (left as f64, right as f64);
                if let Some(weights) = weights {
                    return weighted(weights, left, right);
                }
                PairScore::Float(match function {
                    ScoreFunction::Sum => left + right,
                    ScoreFunction::Product => left * right,
                    ScoreFunction::Min => left.min(right),
                    _ => left.max(right),
                })
            }
        }
    )* };
}
float_scores! { f32 f64 }

/// The sets of a join, and the expected result.
struct Case<'a, C, S, const D: usize> {
    left: &'a [[C; D]],
    right: &'a [[C; D]],
    scores: [&'a [S]; 2],
    epsilon: C,
    norm: Norm,
    function: ScoreFunction,
    weights: Option<[f64; 2]>,
}

impl<C: Scalar, S: TestScore, const D: usize> Case<'_, C, S, D>
where
    [C; D]: Point<Coord = C>,
{
    /// Returns all pairs, the best first.
    fn all(&self) -> Vec<ScoredPair> {
        let mut all = Vec::new();
        for (l, a) in self.left.iter().enumerate() {
            for (r, b) in self.right.iter().enumerate() {
                if is_near(self.norm, a, b, self.epsilon) {
                    let score = S::of_pair(self.function, self.weights, self.scores[0][l], self.scores[1][r]);
                    all.push(ScoredPair { left: l as u32, right: r as u32, score });
                }
            }
        }
        // The sort is stable, so ties stay in the order of ids.
        all.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap());
        all
    }

    fn join(&self, k: usize, strategy: Strategy, curve: Curve) -> TopKDistanceJoin<C> {
        let join = TopKDistanceJoin::new(self.epsilon, k).norm(self.norm).strategy(strategy).curve(curve);
        let join = join.lookup(LOOKUPS[k % 2]);
        match self.weights {
            Some([left, right]) => join.weighted(left, right),
            None => join.score(self.function),
        }
    }

    /// Compares the result of a join with the expected result.
    fn check(&self, device: &Device, join: &TopKDistanceJoin<C>, k: usize, all: &[ScoredPair], what: &str) {
        let sets = [(self.left, self.scores[0]), (self.right, self.scores[1])];
        let [left, right] = sets.map(|(points, scores)| Scored::new(points, scores).unwrap());
        let found = join.run(device, left, right).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(found.pairs() == &all[..k.min(all.len())], "{what}, k = {k}, {join:?} on {device}");
    }
}

fn keeps(strategy: Strategy, k: usize) -> bool {
    k <= 128 || !matches!(strategy, Strategy::RegisterHeap | Strategy::SharedHeap)
}

fn every_strategy<C: Scalar, S: TestScore, const D: usize>(n: usize)
where
    [C; D]: Point<Coord = C>,
{
    let ks = [1, 16, 63, 64, 128, 1000, 10 * n * n];
    for (turn, shape) in Shape::ALL.into_iter().enumerate() {
        let mut random = Random::new(turn as u64 + 100 * D as u64);
        let (left, right) = (shape.points::<C, D>(n, 1), shape.points::<C, D>(n - n / 5, 2));
        for distinct in [2, 1 << 20] {
            let mut scores = |len| (0..len).map(|_| S::random(&mut random, distinct)).collect::<Vec<_>>();
            let (left_scores, right_scores) = (scores(left.len()), scores(right.len()));
            let turn = turn + distinct as usize % 3;
            let norm = NORMS[turn % 3];
            // The distance of two of the points, so that some pairs are exactly at the distance.
            let epsilon = distance(Norm::Chebyshev, &left[n / 3], &right[n / 2]);
            let weights = (turn % 5 == 4).then_some([1.5, -0.25]);
            let scores = [&left_scores[..], &right_scores];
            let function = FUNCTIONS[turn % 4];
            let case = Case { left: &left, right: &right, scores, epsilon, norm, function, weights };
            let all = case.all();
            let what = format!("{shape:?}, {} x {D}, {function:?} of {distinct}, {norm:?}", C::NAME);
            for device in devices_for_shape(shape, n) {
                for (i, strategy) in STRATEGIES.into_iter().enumerate() {
                    if device.is_cpu() && i > 0 {
                        continue;
                    }
                    for k in [ks[(turn + i) % 7], ks[(turn + i + 3) % 7]] {
                        if keeps(strategy, k.min(n * n)) {
                            let join = case.join(k, strategy, CURVES[(turn + i) % 3]).best_points(n / 4);
                            case.check(&device, &join, k, &all, &what);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn every_strategy_f32() {
    every_strategy::<f32, u32, 2>(300);
    every_strategy::<f32, f32, 3>(200);
    every_strategy::<f32, i64, 6>(100);
    every_strategy::<f32, u32, 1>(33);
}

#[test]
fn every_strategy_f64() {
    every_strategy::<f64, f64, 2>(300);
    every_strategy::<f64, i64, 3>(200);
    every_strategy::<f64, u32, 4>(100);
    every_strategy::<f64, f32, 5>(33);
}

#[test]
fn many_points_by_every_strategy() {
    let n = 20_000;
    let mut random = Random::new(5);
    let (left, right) = (Shape::Uniform.points::<f32, 2>(n, 3), Shape::Uniform.points::<f32, 2>(n, 4));
    let mut scores = |distinct| (0..n).map(|_| random.below(distinct) as u32).collect::<Vec<_>>();
    for distinct in [3, 1 << 24] {
        let (left_scores, right_scores) = (scores(distinct), scores(distinct));
        let scores = [&left_scores[..], &right_scores];
        let (function, norm) = (ScoreFunction::Sum, Norm::Euclidean);
        let case = Case { left: &left, right: &right, scores, epsilon: 0.02, norm, function, weights: None };
        let all = case.all();
        for device in devices() {
            for k in [16, 64, 1024, 5000] {
                for strategy in STRATEGIES.into_iter().filter(|&strategy| keeps(strategy, k)) {
                    case.check(&device, &case.join(k, strategy, Curve::Linear), k, &all, "many points");
                    case.check(
                        &device,
                        &case.join(k, strategy, Curve::Hilbert).best_points(500),
                        k,
                        &all,
                        "many",
                    );
                }
            }
        }
    }
}

/// Results of a custom score on the CPU, also in cells with many points.
#[test]
fn custom_scores() {
    fn check<C: Scalar, const D: usize>(shape: Shape, n: usize)
    where
        [C; D]: Point<Coord = C>,
    {
        let (left, right) = (shape.points::<C, D>(n, 1), shape.points::<C, D>(n - n / 5, 2));
        let epsilon = distance(Norm::Chebyshev, &left[n / 3], &right[n / 2]);
        // Not monotone in any score of points, with many ties.
        let score =
            |left: u32, right: u32| u64::from((left ^ right).count_ones()) << 60 | u64::from(left % 3);
        for norm in NORMS {
            let mut expected = Vec::new();
            for (l, r) in (0..n as u32).flat_map(|l| (0..right.len() as u32).map(move |r| (l, r))) {
                if is_near(norm, &left[l as usize], &right[r as usize], epsilon) {
                    expected.push(RankedPair { left: l, right: r, rank: score(l, r) });
                }
            }
            expected.sort_by_key(|pair| std::cmp::Reverse(pair.rank));
            for k in [0, 1, 50, n * n * 2] {
                let found = TopKDistanceJoin::new(epsilon, k).norm(norm).run_custom(&left, &right, score);
                assert!(found.unwrap() == expected[..k.min(expected.len())], "{shape:?}, {norm:?}, k = {k}");
            }
        }
    }
    for shape in Shape::ALL {
        check::<f32, 2>(shape, 300);
        check::<f64, 3>(shape, 100);
    }
    // Cells with more points than a scan visits.
    check::<f32, 2>(Shape::AllEqual, 2000);
    let bad = [[f32::NAN]];
    let error = TopKDistanceJoin::new(1.0, 1).run_custom(&bad, &bad, |_, _| 0).unwrap_err();
    assert!(matches!(error, Error::NonFinite { what: "left point", index: 0, .. }), "{error}");
}

#[test]
fn sets_of_very_different_sizes() {
    let (n, few) = (3000, 100);
    let shapes = [Shape::Uniform, Shape::Clustered, Shape::Lattice];
    for (turn, shape) in shapes.into_iter().enumerate() {
        let points = [shape.points::<f64, 2>(n, 1), shape.points::<f64, 2>(few, 2)];
        let mut random = Random::new(turn as u64);
        let mut scores = |len| (0..len).map(|_| i64::random(&mut random, 9)).collect::<Vec<_>>();
        let scores = [scores(n), scores(few)];
        let epsilon = distance(Norm::Chebyshev, &points[0][1], &points[1][1]) / 4.0;
        for sides in [[0, 1], [1, 0]] {
            let [left, right] = sides.map(|side| &points[side][..]);
            let scores = sides.map(|side| &scores[side][..]);
            let (function, norm, weights) =
                (FUNCTIONS[turn], NORMS[turn], (turn == 1).then_some([-1.5, 2.0]));
            let case = Case { left, right, scores, epsilon, norm, function, weights };
            let all = case.all();
            for device in devices() {
                for strategy in STRATEGIES {
                    case.check(&device, &case.join(50, strategy, CURVES[turn]), 50, &all, "sizes");
                }
                let join = DistanceJoin::new(epsilon).norm(norm);
                assert_eq!(join.count(&device, left, right).unwrap(), all.len() as u64, "{device}");
            }
        }
    }
}

#[test]
fn sets_larger_than_device_memory() {
    let n = 2000;
    for (turn, shape) in
        [Shape::Uniform, Shape::Clustered, Shape::Lattice, Shape::AllEqual].into_iter().enumerate()
    {
        let (left, right) = (shape.points::<f32, 3>(n, 3), shape.points::<f32, 3>(n / 2, 4));
        let epsilon = distance(Norm::Chebyshev, &left[n / 3], &right[n / 5]) / 16.0;
        let mut random = Random::new(turn as u64);
        for distinct in [3, 1 << 20] {
            let mut scores = |len| (0..len).map(|_| random.below(distinct) as f64 - 1.0).collect::<Vec<_>>();
            let (left_scores, right_scores) = (scores(left.len()), scores(right.len()));
            let sets = [(&left, &left_scores), (&right, &right_scores)];
            let [left, right] = sets.map(|(points, scores)| Scored::new(points, scores).unwrap());
            let join = TopKDistanceJoin::new(epsilon, 50).score(FUNCTIONS[turn]).norm(NORMS[turn % 3]);
            let expected = join.run(&Device::cpu(), left, right).unwrap();
            for device in devices().into_iter().filter(|device| !device.is_cpu()) {
                for strategy in STRATEGIES {
                    let join = join.clone().strategy(strategy).device_bytes(0).best_points(100);
                    let found = join.run(&device, left, right).unwrap();
                    assert!(found.pairs() == expected.pairs(), "{shape:?}, {join:?} on {device}");
                }
            }
        }
    }
}

#[test]
fn scores_for_which_a_threshold_does_not_help() {
    // The best points of each set are far from all points of the other set.
    let n = 3000;
    let mut random = Random::new(6);
    let mut place = |base: f64| [(base + random.unit()) as f32, random.unit() as f32];
    let left: Vec<_> = (0..n).map(|i| place(if i < n / 2 { 0.0 } else { 5.0 })).collect();
    let right: Vec<_> = (0..n).map(|i| place(if i < n / 2 { 0.0 } else { -5.0 })).collect();
    let scores: Vec<i64> =
        (0..n as i64).map(|i| (i * 7919) % 1000 + if i < 1500 { -5000 } else { 5000 }).collect();
    for function in FUNCTIONS {
        let scores = [&scores[..], &scores];
        let case = Case {
            left: &left,
            right: &right,
            scores,
            epsilon: 0.05,
            norm: NORMS[0],
            function,
            weights: None,
        };
        let all = case.all();
        for device in devices() {
            for strategy in STRATEGIES {
                case.check(
                    &device,
                    &case.join(40, strategy, Curve::Linear).best_points(200),
                    40,
                    &all,
                    "far",
                );
            }
        }
    }
}

#[test]
fn the_least_possible_score() {
    // All scores are the worst possible score, and the pairs are still the result.
    let points: Vec<_> = (0..12).map(|i| [i as f32]).collect();
    let scores = vec![i64::MIN; points.len()];
    let set = Scored::new(&points, &scores).unwrap();
    for device in devices_for(points.len()) {
        for strategy in STRATEGIES {
            let join = TopKDistanceJoin::new(100.0, 60).strategy(strategy).best_points(2);
            let found = join.run(&device, set, set).unwrap();
            let ids: Vec<_> = found.pairs().iter().map(|pair| (pair.left, pair.right)).collect();
            let expected: Vec<_> = (0..60).map(|i| (i / 12, i % 12)).collect();
            assert!(ids == expected, "{strategy:?} on {device}");
        }
    }
}

#[test]
fn distances_of_every_kind() {
    let points = [[0.0_f64, 0.0], [3.0, 4.0], [3.0, 4.0], [-1e6, 7.0], [0.0, 1e-170]];
    let scores = [1_u32, 2, 3, 4, 5];
    let sets = Scored::new(&points, &scores).unwrap();
    for device in devices_for(5) {
        let found = |epsilon| {
            let best = TopKDistanceJoin::new(epsilon, 100).run(&device, sets, sets).unwrap();
            let count = DistanceJoin::new(epsilon).count(&device, &points, &points).unwrap();
            assert_eq!(best.pairs().len() as u64, count);
            count
        };
        // The square of 1e-170 underflows to 0.
        assert_eq!(found(0.0), 5 + 2 + 2);
        assert_eq!(found(1e-300), 9);
        assert_eq!(found(5.0_f64.next_down()), 9);
        assert_eq!(found(5.0), 9 + 4 * 2);
        assert_eq!(found(1e7), 25);
        assert_eq!(found(f64::INFINITY), 25);
        for epsilon in [-1.0, f64::NAN, f64::NEG_INFINITY] {
            let error = TopKDistanceJoin::new(epsilon, 1).run(&device, sets, sets).unwrap_err();
            assert!(matches!(error, Error::InvalidLength { what: "distance", .. }), "{error}");
            let error = DistanceJoin::new(epsilon).count(&device, &points, &points).unwrap_err();
            assert!(matches!(error, Error::InvalidLength { what: "distance", .. }), "{error}");
        }
        let none: [[f64; 2]; 0] = [];
        let nothing = Scored::new(&none, &[0_u32; 0]).unwrap();
        for strategy in STRATEGIES {
            let join = TopKDistanceJoin::new(5.0, 4).strategy(strategy);
            assert!(join.run(&device, nothing, sets).unwrap().pairs().is_empty());
            assert!(join.run(&device, sets, nothing).unwrap().pairs().is_empty());
            let join = TopKDistanceJoin::new(5.0, 0).strategy(strategy);
            assert!(join.run(&device, sets, sets).unwrap().pairs().is_empty());
        }
        assert_eq!(DistanceJoin::new(5.0).count(&device, &none, &points).unwrap(), 0);
        assert!(DistanceJoin::new(5.0).rows(&device, &none, &points).unwrap().is_empty());
        assert_eq!(DistanceJoin::new(5.0).rows(&device, &points, &none).unwrap().offsets(), [0; 6]);
    }
}

#[test]
fn errors_name_the_refused_argument() {
    let points = [[0.0_f32], [1.0]];
    let error = Scored::new(&points, &[1.0, f64::NAN]).unwrap_err();
    assert!(matches!(error, Error::NonFiniteScore { index: 1, .. }), "{error}");
    assert!(matches!(Scored::new(&points, &[1_u32]).unwrap_err(), Error::Shape { expected: 2, got: 1, .. }));
    let bad = [[0.0_f32], [f32::NAN]];
    let sets = [Scored::new(&points, &[1_u32, 2]).unwrap(), Scored::new(&bad, &[1_u32, 2]).unwrap()];
    for device in devices_for(2) {
        let error = TopKDistanceJoin::new(1.0, 1).run(&device, sets[0], sets[1]).unwrap_err();
        assert!(matches!(error, Error::NonFinite { what: "right point", index: 1, .. }), "{error}");
        let error = DistanceJoin::new(1.0).self_rows(&device, &bad, SelfPairs::Once).unwrap_err();
        assert!(matches!(error, Error::NonFinite { what: "point", index: 1, .. }), "{error}");
        let join = TopKDistanceJoin::new(1.0, 1).weighted(1.0, f64::INFINITY);
        let error = join.run(&device, sets[0], sets[0]).unwrap_err();
        assert!(matches!(error, Error::NonFiniteScore { index: 1, .. }), "{error}");
    }
    let many = vec![[0.0_f32]; 100];
    let scores = vec![0_u32; 100];
    let many = Scored::new(&many, &scores).unwrap();
    for device in devices_for(2).into_iter().filter(|device| !device.is_cpu()) {
        for strategy in [Strategy::RegisterHeap, Strategy::SharedHeap] {
            let join = TopKDistanceJoin::new(1.0, 129).strategy(strategy);
            let error = join.run(&device, many, many).unwrap_err();
            assert!(matches!(error, Error::StrategyLimit { k: 129, most: 128, .. }), "{error}");
        }
    }
}

/// Finds the pairs within a distance by a loop over all pairs.
fn near_pairs<C: Scalar, const D: usize>(
    left: &[[C; D]],
    right: &[[C; D]],
    norm: Norm,
    epsilon: C,
) -> Vec<Vec<u32>> {
    let near =
        |a| (0..right.len() as u32).filter(|&r| is_near(norm, a, &right[r as usize], epsilon)).collect();
    left.iter().map(near).collect()
}

fn distance_joins<C: Scalar, const D: usize>(n: usize)
where
    [C; D]: Point<Coord = C>,
{
    for (turn, shape) in Shape::ALL.into_iter().enumerate() {
        let (left, right) = (shape.points::<C, D>(n, 1), shape.points::<C, D>(n + n / 7, 2));
        let epsilon = distance(Norm::Chebyshev, &left[n / 3], &right[n / 2]);
        let norm = NORMS[turn % 3];
        let what = format!("{shape:?}, {} x {D}, {norm:?}", C::NAME);
        let (expected, own) =
            (near_pairs(&left, &right, norm, epsilon), near_pairs(&left, &left, norm, epsilon));
        let mut in_order = Vec::new();
        for device in devices_for_shape(shape, n) {
            let join =
                DistanceJoin::new(epsilon).norm(norm).curve(CURVES[turn % 3]).lookup(LOOKUPS[turn / 3 % 2]);
            let rows = join.rows(&device, &left, &right).unwrap();
            for (row, expected) in expected.iter().enumerate() {
                let mut ids = rows.row(row).to_vec();
                ids.sort_unstable();
                assert!(ids == *expected, "{what}: row {row} on {device}");
            }
            let count = expected.iter().map(|row| row.len() as u64).sum::<u64>();
            assert_eq!(join.count(&device, &left, &right).unwrap(), count, "{what} on {device}");
            // The order of ids is equal on all devices.
            if in_order.is_empty() {
                in_order = rows.ids().to_vec();
            }
            assert!(rows.ids() == in_order, "{what} on {device}");

            let once = join.self_rows(&device, &left, SelfPairs::Once).unwrap();
            let both = join.self_rows(&device, &left, SelfPairs::Both).unwrap();
            for (row, own) in own.iter().enumerate() {
                let row_id = row as u32;
                let sorted = |ids: &[u32]| {
                    let mut ids = ids.to_vec();
                    ids.sort_unstable();
                    ids
                };
                let others: Vec<u32> = own.iter().copied().filter(|&id| id != row_id).collect();
                assert!(sorted(both.row(row)) == others, "{what}: row {row} of one set on {device}");
                let lesser: Vec<u32> = own.iter().copied().filter(|&id| id < row_id).collect();
                assert!(sorted(once.row(row)) == lesser, "{what}: row {row} of one set, once, on {device}");
            }
            assert_eq!(join.self_count(&device, &left, SelfPairs::Both).unwrap(), both.ids().len() as u64);
            assert_eq!(join.self_count(&device, &left, SelfPairs::Once).unwrap(), once.ids().len() as u64);
        }
    }
}

#[test]
fn distance_joins_f32() {
    distance_joins::<f32, 1>(200);
    distance_joins::<f32, 2>(300);
    distance_joins::<f32, 3>(33);
    distance_joins::<f32, 6>(150);
}

#[test]
fn distance_joins_f64() {
    distance_joins::<f64, 2>(33);
    distance_joins::<f64, 3>(300);
    distance_joins::<f64, 4>(150);
    distance_joins::<f64, 5>(100);
}

#[test]
fn a_join_finds_the_points_that_an_index_finds() {
    let (left, right) =
        (Shape::Clustered.points::<f32, 3>(20_000, 7), Shape::Uniform.points::<f32, 3>(20_000, 8));
    let (epsilon, options) = (0.03, kauri::query::QueryOptions::default());
    let tree = KdTree::build(&Device::cpu(), &right, &KdTreeOptions::default()).unwrap();
    let expected = tree.within(&left, epsilon, &options).unwrap();
    for device in devices() {
        for curve in CURVES {
            let rows = DistanceJoin::new(epsilon).curve(curve).rows(&device, &left, &right).unwrap();
            assert_eq!(rows.offsets(), expected.offsets(), "{curve:?} on {device}");
            for row in 0..left.len() {
                let [mut ids, mut expected] = [rows.row(row), expected.row(row).ids()].map(<[u32]>::to_vec);
                ids.sort_unstable();
                expected.sort_unstable();
                assert!(ids == expected, "row {row}, {curve:?} on {device}");
            }
        }
    }
}

#[test]
fn places_on_the_earth() {
    let mut random = Random::new(9);
    let mut place = || {
        let lat = (2.0 * random.unit() - 1.0).asin().to_degrees();
        LonLat::new(360.0 * random.unit() - 180.0, lat)
    };
    let mut places: Vec<LonLat> = (0..1500).map(|_| place()).collect();
    places.extend([LonLat::new(180.0, 10.0), LonLat::new(-180.0, 10.0), LonLat::new(-179.99, 10.0)]);
    places.extend([LonLat::new(0.0, 90.0), LonLat::new(77.0, 89.999), LonLat::new(-120.0, 89.999)]);
    let scores: Vec<u32> = (0..places.len() as u32).map(|i| i * 7919 % 4001).collect();
    let sets = Scored::new(&places, &scores).unwrap();
    for meters in [1.0, 2500.0, 500_000.0, 15_000_000.0, 3e7] {
        let mut all: Vec<(u32, u32, u32)> = Vec::new();
        for (l, a) in places.iter().enumerate() {
            for (r, b) in places.iter().enumerate() {
                if a.meters_to(b) <= meters {
                    all.push((u32::MAX - scores[l] - scores[r], l as u32, r as u32));
                }
            }
        }
        all.sort_unstable();
        for device in devices() {
            assert_eq!(DistanceJoin::new(meters).count(&device, &places, &places).unwrap(), all.len() as u64);
            let best = TopKDistanceJoin::new(meters, 100).run(&device, sets, sets).unwrap();
            let found: Vec<_> = best.pairs().iter().map(|pair| (pair.left, pair.right)).collect();
            let expected: Vec<_> = all.iter().take(100).map(|pair| (pair.1, pair.2)).collect();
            assert_eq!(found, expected, "{meters} m on {device}");
        }
    }
}

#[test]
fn nearly_all_points_in_one_cell() {
    // Far points make cells as large as possible, apart from the distance.
    let n = 6000;
    let mut random = Random::new(10);
    let mut points: Vec<[f32; 2]> =
        (0..n).map(|_| [random.unit() as f32 * 1e-3, random.unit() as f32 * 1e-3]).collect();
    points.extend((0..n / 100).map(|i| [i as f32, 1.0 - i as f32]));
    let scores: Vec<f64> = (0..points.len()).map(|_| random.unit()).collect();
    let scores = [&scores[..], &scores];
    let (function, norm) = (ScoreFunction::Sum, Norm::Euclidean);
    let case = Case { left: &points, right: &points, scores, epsilon: 0.01, norm, function, weights: None };
    let all = case.all();
    for device in devices() {
        for strategy in STRATEGIES {
            case.check(&device, &case.join(64, strategy, Curve::Linear), 64, &all, "one cell");
        }
    }
}

/// Points at the corners of a grid with the smallest cells that codes allow: the code of the last cell equals that of points outside the
/// grid.
fn corners_of_the_finest_grid<C: Scalar, const D: usize>()
where
    [C; D]: Point<Coord = C>,
{
    const COPIES: u32 = 4;
    for extent in [1.0, 0.7] {
        let places = [0.0, extent, 0.3 * extent].map(|x| [C::from_f64(x); D]);
        let corners: Vec<[C; D]> = places.into_iter().cycle().take(3 * COPIES as usize).collect();
        let ways = LOOKUPS.into_iter().flat_map(|lookup| CURVES.map(|curve| (lookup, curve)));
        let devices = devices_for(corners.len());
        for (device, (lookup, curve)) in
            devices.iter().flat_map(|device| ways.clone().map(move |way| (device, way)))
        {
            let join = DistanceJoin::new(C::from_f64(1e-30)).curve(curve).lookup(lookup);
            let what = format!("{} x {D} to {extent}, {curve:?}, {lookup:?} on {device}", C::NAME);
            assert_eq!(
                join.count(device, &corners, &corners).unwrap(),
                3 * u64::from(COPIES).pow(2),
                "{what}"
            );
            let rows = join.rows(device, &corners, &corners).unwrap();
            for row in 0..3 {
                let expected: Vec<u32> = (row..3 * COPIES).step_by(3).collect();
                assert_eq!(rows.row(row as usize), expected, "{what}");
            }
        }
    }
}

#[test]
fn corners_of_the_finest_grids() {
    corners_of_the_finest_grid::<f32, 4>();
    corners_of_the_finest_grid::<f64, 2>();
}

#[test]
fn estimates_are_near_the_counts() {
    let n = 4000;
    let (left, right) = (Shape::Uniform.points::<f64, 2>(n, 1), Shape::Uniform.points::<f64, 2>(n / 2, 2));
    let join = DistanceJoin::new(0.05);
    for device in devices() {
        let counts = [
            join.count(&device, &left, &right).unwrap(),
            join.self_count(&device, &left, SelfPairs::Both).unwrap(),
            join.self_count(&device, &left, SelfPairs::Once).unwrap(),
        ];
        for sample in [0, 500, n, usize::MAX] {
            let estimates = [
                join.estimate(&device, &left, &right, sample).unwrap(),
                join.self_estimate(&device, &left, SelfPairs::Both, sample).unwrap(),
                join.self_estimate(&device, &left, SelfPairs::Once, sample).unwrap(),
            ];
            for (estimate, count) in estimates.into_iter().zip(counts) {
                match sample {
                    0 => assert!(estimate < 4 * count),
                    500 => {
                        assert!(estimate.abs_diff(count) < count / 10, "{estimate} for {count} on {device}")
                    }
                    _ => assert_eq!(estimate, count, "a sample of all points"),
                }
            }
        }
        assert_eq!(join.estimate::<[f64; 2]>(&device, &[], &right, 100).unwrap(), 0);
    }
}

#[test]
fn more_than_four_billion_pairs_are_counted() {
    let points = vec![[1.0_f32, 2.0]; 70_000];
    let n = points.len() as u64;
    for device in devices().into_iter().filter(|device| !device.is_cpu()) {
        let join = DistanceJoin::new(0.5);
        assert_eq!(join.count(&device, &points, &points).unwrap(), n * n);
        assert_eq!(join.self_count(&device, &points, SelfPairs::Once).unwrap(), n * (n - 1) / 2);
    }
}

#[test]
fn batches_have_the_pairs_of_the_whole_result() {
    let (left, right) =
        (Shape::Clustered.points::<f32, 2>(700, 11), Shape::Clustered.points::<f32, 2>(900, 12));
    let join = DistanceJoin::new(4e-5);
    for device in devices() {
        let whole = [
            join.rows(&device, &left, &right).unwrap(),
            join.self_rows(&device, &left, SelfPairs::Once).unwrap(),
            join.self_rows(&device, &left, SelfPairs::Both).unwrap(),
        ];
        for (bytes, rows) in [(u64::MAX, 1000), (3000, 50), (1000, usize::MAX)] {
            for (i, whole) in whole.iter().enumerate() {
                let (mut ids, mut next) = (Vec::new(), 0);
                let mut batches = Batches::new().bytes(bytes).rows(rows);
                let mut check = |batch: kauri::RowsBatch<'_>| {
                    assert!(batch.rows().start == next && batch.rows().len() <= rows);
                    for row in batch.rows() {
                        assert_eq!(batch.row(row), whole.row(row), "row {row} on {device}");
                    }
                    next = batch.rows().end;
                    ids.extend_from_slice(batch.ids());
                    ControlFlow::Continue(())
                };
                let delivered = match i {
                    0 => join.rows_batches(&device, &left, &right, &mut batches, &mut check),
                    1 => join.self_rows_batches(&device, &left, SelfPairs::Once, &mut batches, &mut check),
                    _ => join.self_rows_batches(&device, &left, SelfPairs::Both, &mut batches, &mut check),
                };
                let delivered = delivered.unwrap();
                assert!(delivered.is_complete && delivered.rows == left.len() as u64);
                assert!(ids == whole.ids() && delivered.items == ids.len() as u64, "{device}");
            }
        }
        let mut batches = Batches::new().bytes(8);
        let error = join
            .rows_batches(&device, &left, &left, &mut batches, |_| ControlFlow::Continue(()))
            .unwrap_err();
        assert!(matches!(error, Error::RowTooLarge { most: 8, .. }), "{error}");
        // Far from all points.
        let far = [[1e9_f32, 1e9]; 3];
        let mut num_rows = 0;
        let check = |batch: kauri::RowsBatch<'_>| {
            num_rows += batch.rows().len();
            ControlFlow::Continue(())
        };
        let delivered = join.rows_batches(&device, &far, &right, &mut Batches::new(), check).unwrap();
        assert!(delivered.is_complete && delivered.items == 0 && num_rows == 3);
    }
}

fn nearest_of_two_sets<C: Scalar, const D: usize>(n: usize)
where
    [C; D]: Point<Coord = C>,
{
    for (turn, shape) in Shape::ALL.into_iter().enumerate() {
        let (left, right) = (shape.points::<C, D>(n, 1), shape.points::<C, D>(n + n / 7, 2));
        let (norm, epsilon) = (NORMS[turn % 3], distance(Norm::Chebyshev, &left[n / 3], &right[n / 2]));
        let bound = if norm == Norm::Euclidean { epsilon * epsilon } else { epsilon };
        for k in [1, 8, 40] {
            let expected = right.iter().map(|point| {
                let mut all: Vec<_> =
                    (0..).zip(&left).map(|(id, other)| (distance(norm, other, point), id)).collect();
                all.retain(|pair| pair.0 <= bound);
                all.sort_by(|a, b| a.partial_cmp(b).unwrap());
                let ids = all.iter().map(|pair| pair.1).chain(std::iter::repeat(u32::MAX));
                ids.take(k).collect::<Vec<u32>>()
            });
            let expected: Vec<u32> = expected.flatten().collect();
            for device in devices_for_shape(shape, n) {
                for index in [KnnIndex::Auto, KnnIndex::Tree, KnnIndex::Grid] {
                    let join = KnnJoin::new(k).within(epsilon).norm(norm).index(index);
                    let found = join.run(&device, &left, &right).unwrap();
                    assert!(found.ids() == expected, "{shape:?}, {} x {D}, {join:?} on {device}", C::NAME);
                }
            }
        }
    }
}

#[test]
fn nearest_points_of_two_sets() {
    nearest_of_two_sets::<f32, 2>(200);
    nearest_of_two_sets::<f64, 3>(33);
    nearest_of_two_sets::<f32, 7>(33);
    for device in devices_for(3) {
        let (left, right) = ([[0.0_f32], [5.0], [7.0]], [[6.1_f32]]);
        assert_eq!(KnnJoin::new(2).run(&device, &left, &right).unwrap().ids(), [2, 1]);
        assert!(KnnJoin::new(0).within(1.0).run(&device, &left, &right).unwrap().ids().is_empty());
        let none: [[f32; 1]; 0] = [];
        assert_eq!(KnnJoin::new(1).within(1.0).run(&device, &none, &right).unwrap().ids(), [u32::MAX]);
        let error = KnnJoin::new(1).within(-1.0).run(&device, &left, &right).unwrap_err();
        assert!(matches!(error, Error::InvalidLength { .. }), "{error}");
    }
}
