//! Every top-k join of boxes, by every strategy and on every device, gives the result of a loop over all pairs.

use crate::boxes::{Predicate, boxes};
use crate::joins::TestScore;
use kauri::join::{JoinMethod, Norm, ScoreFunction, Scored, ScoredPair, Strategy};
use kauri::{BoxJoin, Cartesian, Device, Error, TopKBoxJoin, TopKDistanceJoin};
use kauri_tests::generate::{Random, Scalar, Shape};
use kauri_tests::{devices, devices_for, devices_for_shape};

const STRATEGIES: [Strategy; 6] = [
    Strategy::Auto,
    Strategy::NestedLoop,
    Strategy::Threshold,
    Strategy::Cells,
    Strategy::Filter,
    // Cells take the place of heaps.
    Strategy::RegisterHeap,
];
const FUNCTIONS: [ScoreFunction; 4] =
    [ScoreFunction::Sum, ScoreFunction::Product, ScoreFunction::Min, ScoreFunction::Max];
const NORMS: [Norm; 3] = [Norm::Euclidean, Norm::Manhattan, Norm::Chebyshev];

/// The sets of a join, its condition and its scores.
struct Case<C, S, const D: usize> {
    boxes: [Vec<[[C; D]; 2]>; 2],
    scores: [Vec<S>; 2],
    predicate: Predicate<C>,
    function: ScoreFunction,
    weights: Option<[f64; 2]>,
}

impl<C: Scalar, S: TestScore, const D: usize> Case<C, S, D>
where
    [C; D]: Cartesian<Coord = C>,
{
    fn new(shape: Shape, lens: [usize; 2], distinct: u64, predicate: Predicate<C>, turn: usize) -> Self {
        let mut random = Random::new(turn as u64 + 100 * D as u64);
        let mut scores = |len| (0..len).map(|_| S::random(&mut random, distinct)).collect();
        Self {
            boxes: [0, 1].map(|i| boxes(shape, lens[i], turn as u64 + i as u64)),
            scores: [scores(lens[0]), scores(lens[1])],
            predicate,
            function: FUNCTIONS[turn % 4],
            weights: (turn % 5 > 2).then_some([[1.5, -0.25], [-2.0, 0.5]][turn % 2]),
        }
    }

    fn sets(&self) -> [Scored<'_, [[C; D]; 2], S>; 2] {
        [0, 1].map(|i| Scored::new(&self.boxes[i], &self.scores[i]).unwrap())
    }

    /// Returns all pairs, the best first.
    fn all(&self) -> Vec<ScoredPair> {
        let mut all = Vec::new();
        for (l, left) in self.boxes[0].iter().enumerate() {
            for (r, right) in self.boxes[1].iter().enumerate() {
                if self.predicate.holds(left, right) {
                    let score = S::of_pair(self.function, self.weights, self.scores[0][l], self.scores[1][r]);
                    all.push(ScoredPair { left: l as u32, right: r as u32, score });
                }
            }
        }
        // The sort is stable, so ties stay in the order of ids.
        all.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap());
        all
    }

    fn join(&self, k: usize, strategy: Strategy) -> TopKBoxJoin<C> {
        let join = match self.predicate {
            Predicate::Intersects => TopKBoxJoin::intersects(k),
            Predicate::Contains => TopKBoxJoin::contains(k),
            Predicate::Within(epsilon, norm) => TopKBoxJoin::within(epsilon, k).norm(norm),
        };
        let join = join.strategy(strategy);
        match self.weights {
            Some([left, right]) => join.weighted(left, right),
            None => join.score(self.function),
        }
    }

    /// Compares the result of a join with the expected result.
    fn check(&self, device: &Device, join: &TopKBoxJoin<C>, k: usize, all: &[ScoredPair], what: &str) {
        let [left, right] = self.sets();
        let found = join.run(device, left, right).unwrap_or_else(|error| panic!("{what}: {error}"));
        let expected = &all[..k.min(all.len())];
        assert!(
            found.pairs() == expected,
            "{what}, k = {k}, {join:?} on {device}: {} pairs of {}",
            found.pairs().len(),
            expected.len()
        );
    }
}

/// The strategies on a device: the CPU ignores them.
fn strategies(device: &Device) -> &'static [Strategy] {
    if device.is_cpu() { &STRATEGIES[..1] } else { &STRATEGIES }
}

fn every_strategy<C: Scalar, S: TestScore, const D: usize>(n: usize)
where
    [C; D]: Cartesian<Coord = C>,
{
    let ks = [1, 16, 65, 1000, 10 * n * n];
    for (turn, shape) in Shape::ALL.into_iter().enumerate() {
        let epsilon = C::from_f64(if shape == Shape::Lattice { 1.0 } else { 0.05 });
        let within = Predicate::Within(epsilon, NORMS[turn % 3]);
        for (p, predicate) in [Predicate::Intersects, Predicate::Contains, within].into_iter().enumerate() {
            let distinct = [2, 1 << 20][(turn + p) % 2];
            let lens = [n, n - n / 5];
            let case = Case::<C, S, D>::new(shape, lens, distinct, predicate, turn + 7 * p);
            let all = case.all();
            let what = format!("{shape:?}, {} x {D}, {predicate:?}, {distinct} scores", C::NAME);
            for device in devices_for_shape(shape, n) {
                for (i, &strategy) in strategies(&device).iter().enumerate() {
                    let k = ks[(turn + i + p) % 5];
                    let join = case.join(k, strategy).best_boxes(n / 4);
                    case.check(&device, &join, k, &all, &what);
                }
            }
        }
    }
}

#[test]
fn every_strategy_f32() {
    every_strategy::<f32, u32, 2>(150);
    every_strategy::<f32, f32, 3>(100);
    every_strategy::<f32, i64, 6>(60);
    every_strategy::<f32, u32, 1>(33);
}

#[test]
fn every_strategy_f64() {
    every_strategy::<f64, f64, 2>(150);
    every_strategy::<f64, i64, 3>(100);
    every_strategy::<f64, u32, 4>(60);
    every_strategy::<f64, f32, 5>(33);
}

#[test]
fn many_boxes_by_every_strategy() {
    for (turn, distinct) in [3, 1 << 24].into_iter().enumerate() {
        for predicate in [Predicate::Intersects, Predicate::Within(0.01, Norm::Euclidean)] {
            let case = Case::<f32, u32, 2>::new(Shape::Uniform, [3000, 2500], distinct, predicate, turn);
            let all = case.all();
            for device in devices() {
                for &strategy in strategies(&device) {
                    for k in [16, 1024, 5000] {
                        case.check(&device, &case.join(k, strategy), k, &all, "many boxes");
                        let join = case.join(k, strategy).best_boxes(200);
                        case.check(&device, &join, k, &all, "many boxes");
                    }
                }
            }
        }
    }
}

#[test]
fn sets_of_very_different_sizes() {
    for (turn, lens) in [[2000, 60], [60, 2000], [1, 3000], [3000, 1]].into_iter().enumerate() {
        let predicate = [Predicate::Intersects, Predicate::Contains][turn / 2];
        let case = Case::<f64, i64, 2>::new(Shape::Uniform, lens, 9, predicate, turn);
        let all = case.all();
        for device in devices() {
            for &strategy in strategies(&device) {
                let join = case.join(50, strategy).best_boxes(20);
                case.check(&device, &join, 50, &all, "sizes");
            }
        }
    }
}

#[test]
fn sets_larger_than_device_memory() {
    let shapes = [Shape::Uniform, Shape::Clustered, Shape::Lattice, Shape::AllEqual];
    for (turn, shape) in shapes.into_iter().enumerate() {
        let within = Predicate::Within(0.02, NORMS[turn % 3]);
        let predicate = [Predicate::Intersects, within, Predicate::Contains, within][turn];
        for distinct in [3, 1 << 20] {
            let case = Case::<f32, f64, 3>::new(shape, [1500, 700], distinct, predicate, turn);
            let all = case.all();
            for device in devices().into_iter().filter(|device| !device.is_cpu()) {
                for strategy in STRATEGIES {
                    let join = case.join(50, strategy).device_bytes(0).best_boxes(100);
                    case.check(&device, &join, 50, &all, "parts");
                }
            }
        }
    }
}

#[test]
fn equal_boxes_and_scores() {
    let boxes = vec![[[1.0f32, 2.0], [1.5, 2.5]]; 40];
    let scores = vec![i64::MIN; boxes.len()];
    let set = Scored::new(&boxes, &scores).unwrap();
    for device in devices_for(boxes.len()) {
        for strategy in STRATEGIES {
            for join in [TopKBoxJoin::intersects(60), TopKBoxJoin::contains(60)] {
                let found = join.strategy(strategy).best_boxes(2).run(&device, set, set).unwrap();
                let ids: Vec<_> = found.iter().map(|pair| (pair.left, pair.right)).collect();
                let expected: Vec<_> = (0..60).map(|i| (i / 40, i % 40)).collect();
                assert!(ids == expected, "{strategy:?} on {device}");
            }
        }
    }
}

#[test]
fn boxes_without_extent_are_points() {
    let points = Shape::Lattice.points::<f64, 3>(90, 4);
    let boxes: Vec<_> = points.iter().map(|&point| [point; 2]).collect();
    let scores: Vec<f32> = (0..90).map(|i| (i * 37 % 11) as f32).collect();
    let (points, boxes) = (Scored::new(&points, &scores).unwrap(), Scored::new(&boxes, &scores).unwrap());
    for device in devices_for(90) {
        for (i, epsilon) in [0.0, 1.0, 1.5, f64::INFINITY].into_iter().enumerate() {
            let join = TopKDistanceJoin::new(epsilon, 200).norm(NORMS[i % 3]);
            let expected = join.run(&device, points, points).unwrap();
            for strategy in STRATEGIES {
                let join = TopKBoxJoin::within(epsilon, 200).norm(NORMS[i % 3]).strategy(strategy);
                let found = join.run(&device, boxes, boxes).unwrap();
                assert!(found.pairs() == expected.pairs(), "{join:?} on {device}");
            }
        }
    }
}

#[test]
fn empty_sets_and_sets_apart() {
    let some = [[[0.0f32, 0.0], [1.0, 1.0]], [[2.0, 2.0], [1.0, 3.0]]];
    let far = [[[9.0f32, 9.0], [9.5, 9.5]]];
    let inverted = [[[5.0f32, 0.0], [3.0, 1.0]], [[9.0, 9.0], [-9.0, -9.0]]];
    let scores = [7u32, 5];
    let scored = |boxes| Scored::new(boxes, &scores[..<[_]>::len(boxes)]).unwrap();
    for device in devices_for(3) {
        for strategy in STRATEGIES {
            let join = TopKBoxJoin::intersects(4).strategy(strategy);
            for (left, right) in [
                (&some[..], &[][..]),
                (&[], &some),
                (&[], &[]),
                (&some, &far),
                (&some, &inverted),
                (&inverted, &inverted),
            ] {
                let found = join.run(&device, scored(left), scored(right)).unwrap();
                assert!(found.pairs().is_empty(), "{strategy:?} on {device}");
            }
            let found = join.run(&device, scored(&some), scored(&some)).unwrap();
            assert_eq!(found.pairs().len(), 1, "{strategy:?} on {device}");
            let none = TopKBoxJoin::intersects(0).strategy(strategy);
            assert!(none.run(&device, scored(&some), scored(&some)).unwrap().pairs().is_empty());
        }
    }
}

#[test]
fn errors_name_the_refused_argument() {
    let good = [[[0.0f32, 0.0], [1.0, 1.0]]];
    let bad = [[[0.0, 1.0], [2.0, f32::NAN]]];
    let [left, right] = [Scored::new(&good, &[1u32]).unwrap(), Scored::new(&bad, &[1u32]).unwrap()];
    assert!(matches!(Scored::new(&good, &[1.0, 2.0]), Err(Error::Shape { expected: 1, got: 2, .. })));
    assert!(matches!(Scored::new(&good, &[f64::INFINITY]), Err(Error::NonFiniteScore { index: 0, .. })));
    for device in devices_for(2) {
        let join = TopKBoxJoin::intersects(1);
        for error in
            [join.run(&device, left, right).unwrap_err(), join.plan(&device, left, right).unwrap_err()]
        {
            assert_eq!(
                error.to_string(),
                "high corner of right box 0 has NaN on axis 1: coordinates must be finite"
            );
        }
        let error = TopKBoxJoin::within(-1.0, 1).run(&device, left, left).unwrap_err();
        assert!(matches!(error, Error::InvalidLength { what: "distance", .. }), "{error}");
        let error = join.weighted(f64::NAN, 1.0).run(&device, left, left).unwrap_err();
        assert!(matches!(error, Error::NonFiniteScore { index: 0, .. }), "{error}");
    }
}

#[test]
fn joins_take_what_was_planned() {
    let case = Case::<f32, u32, 2>::new(Shape::Uniform, [900, 700], 1 << 20, Predicate::Intersects, 0);
    let [left, right] = case.sets();
    for device in devices_for(900) {
        for strategy in STRATEGIES {
            let join = case.join(5, strategy).best_boxes(20);
            let plan = join.plan(&device, left, right).unwrap();
            let temp = join.run(&device, left, right).unwrap().stats().temp_bytes;
            let what = format!("{strategy:?} on {device}: {temp} bytes\n{plan}");
            assert_eq!(plan.num_points, [900, 700]);
            if device.is_cpu() {
                assert!(plan.input_bytes == 0 && plan.temp_bytes > 50 * 700, "{what}");
                continue;
            }
            assert_eq!(plan.input_bytes, 20 * 1600, "{what}");
            let all = BoxJoin::intersects().count(&device, left.points(), right.points()).unwrap();
            assert!(temp > 0 && temp <= plan.temp_bytes + all * plan.pair_bytes, "{what}");
            match plan.method {
                JoinMethod::Best(Strategy::Cells) => assert!(strategy != Strategy::Threshold, "{what}"),
                JoinMethod::Best(of) => assert!(strategy == Strategy::Auto || strategy == of, "{what}"),
                _ => panic!("{what}"),
            }
        }
    }
}
