//! Point types of other crates. Their implementations may return anything; kauri checks it before use.

use crate::build;
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::join::{KnnIndex, KnnJoin, Scored, SelfPairs};
use kauri::quadtree::CartesianPoint;
use kauri::query::{Norm, QueryOptions};
use kauri::{
    Cartesian, Device, DistanceJoin, Error, KdTree, KdTreeOptions, Point, Quadtree, QuadtreeOptions, Result,
    SpatialIndex, TopKDistanceJoin,
};
use kauri_tests::devices_for;
use std::borrow::Cow;

/// A point whose implementation returns wrong coordinates.
#[derive(Clone, Copy, Debug)]
struct Foreign {
    at: [f64; 2],
    /// Number of coordinates that the implementation drops; if negative, number that it adds.
    missing: isize,
}

impl Point for Foreign {
    type Coord = f64;
    const DIMS: usize = 2;
    const CONVERTED: bool = true;
    const KEEPS_AXES: bool = true;
    const NAME: &'static str = "Foreign";

    fn coordinates<'a>(points: &'a [Self], _: &'static str) -> Result<Cow<'a, [f64]>> {
        let mut coords: Vec<f64> = points.iter().flat_map(|point| point.at).collect();
        for point in points {
            match point.missing {
                missing if missing > 0 => coords.truncate(coords.len().saturating_sub(missing as usize)),
                more => coords.extend((0..-more).map(|x| x as f64)),
            }
        }
        Ok(coords.into())
    }

    fn bound(radius: f64, norm: Norm) -> f64 {
        BOUND.get().unwrap_or(if norm == Norm::Euclidean { radius * radius } else { radius })
    }
}

impl Cartesian for Foreign {}

impl CartesianPoint<2> for Foreign {}

thread_local! {
    /// Replaces the bound of every radius.
    static BOUND: std::cell::Cell<Option<f64>> = const { std::cell::Cell::new(None) };
}

const GOOD: Foreign = Foreign { at: [1.0, 2.0], missing: 0 };

/// Calls everything that takes points with wrong ones, and returns the errors.
fn errors(device: &Device, wrong: &[Foreign]) -> Vec<(String, Error)> {
    let good = [GOOD; 3];
    let mut errors = Vec::new();
    fn add<T>(errors: &mut Vec<(String, Error)>, call: &str, result: Result<T>) {
        match result {
            Err(error) => errors.push((call.into(), error)),
            Ok(_) => panic!("{call} accepts wrong points"),
        }
    }
    let mut add = |call: &str, result: Result<()>| add(&mut errors, call, result);
    let (balanced, quadtree) = (BalancedOptions::default(), QuadtreeOptions::default());
    add("k-d tree", KdTree::build(device, wrong, &KdTreeOptions::default()).map(drop));
    add("balanced tree", BalancedKdTree::build(device, wrong, &balanced).map(drop));
    if !device.is_cpu() {
        let devices = [device.clone(), device.clone()];
        add("two devices", BalancedKdTree::build_over(&devices, wrong, &balanced).map(drop));
    }
    add("quadtree", Quadtree::build(device, wrong, &quadtree).map(drop));

    let tree = Quadtree::build(device, &good, &quadtree).unwrap();
    add("leaves", tree.leaf_of(wrong).map(drop));
    fn query(
        index: &impl SpatialIndex<Point = Foreign>,
        wrong: &[Foreign],
        mut add: impl FnMut(&str, Result<()>),
    ) {
        let options = QueryOptions::default();
        add("nearest", index.nearest(wrong, 1).map(drop));
        add("none nearest", index.nearest(wrong, 0).map(drop));
        add("count within", index.count_within(wrong, 1.0, &options).map(drop));
        add("within", index.within(wrong, 1.0, &options).map(drop));
        let boxes: Vec<_> = wrong.iter().map(|&corner| [corner, corner]).collect();
        add("count in boxes", index.count_in_boxes(&boxes, None).map(drop));
        add("in boxes", index.in_boxes(&boxes, None).map(drop));
    }
    query(&tree, wrong, &mut add);
    query(&KdTree::build(device, &good, &KdTreeOptions::default()).unwrap(), wrong, &mut add);
    query(&BalancedKdTree::build(device, &good, &balanced).unwrap(), wrong, &mut add);

    let join = DistanceJoin::new(1.0);
    for (left, right) in [(wrong, &good[..]), (&good, wrong)] {
        add("count", join.count(device, left, right).map(drop));
        add("estimate", join.estimate(device, left, right, 1).map(drop));
        add("rows", join.rows(device, left, right).map(drop));
        add("plan", join.plan(device, left, Some(right)).map(drop));
        for index in [KnnIndex::Tree, KnnIndex::Grid] {
            let join = KnnJoin::new(1).within(1.0).index(index);
            add("nearest join", join.run(device, left, right).map(drop));
            add("its plan", join.plan(device, left, right).map(drop));
        }
        let scores = [vec![1.0f64; left.len()], vec![1.0; right.len()]];
        let [left, right] =
            [Scored::new(left, &scores[0]), Scored::new(right, &scores[1])].map(Result::unwrap);
        let join = TopKDistanceJoin::new(1.0, 1);
        add("best pairs", join.run(device, left, right).map(drop));
        add("their plan", join.plan(device, left, right).map(drop));
    }
    add("of one set", join.self_count(device, wrong, SelfPairs::Once).map(drop));
    add("rows of one set", join.self_rows(device, wrong, SelfPairs::Once).map(drop));
    errors
}

#[test]
fn coordinates_of_a_wrong_length_are_refused() {
    for device in devices_for(3) {
        for missing in [1, 2, 100, -1, -2] {
            let wrong = [GOOD, Foreign { missing, ..GOOD }, GOOD];
            for (call, error) in errors(&device, &wrong) {
                let Error::Shape { expected, got, .. } = error else { panic!("{call}: {error}") };
                assert_ne!(expected, got, "{call} on {device}");
            }
        }
    }
}

#[test]
fn invalid_coordinates_are_refused() {
    let cases = [
        (f64::NAN, "NonFinite"),
        (f64::NEG_INFINITY, "NonFinite"),
        (f64::MAX, "CoordinateTooLarge"),
        (-1e160, "CoordinateTooLarge"),
    ];
    for device in devices_for(3) {
        for (value, expected) in cases {
            let wrong = [GOOD, GOOD, Foreign { at: [0.0, value], ..GOOD }];
            for (call, error) in errors(&device, &wrong) {
                let name = format!("{error:?}");
                assert!(name.starts_with(expected), "{call} on {device}: {error}");
                let (Error::NonFinite { index, axis, .. } | Error::CoordinateTooLarge { index, axis, .. }) =
                    error
                else {
                    panic!("{call}: {error}");
                };
                // A box is two corners.
                let index = if call.contains("boxes") { index / 2 } else { index };
                assert_eq!((index, axis), (2, 1), "{call} on {device}");
            }
        }
    }
}

#[test]
fn an_invalid_bound_is_refused() {
    for device in devices_for(3) {
        let tree = build(&device, &[GOOD; 3]);
        for bound in [f64::NAN, -1.0] {
            BOUND.set(Some(bound));
            let errors = [
                tree.within(&[GOOD], 1.0, &QueryOptions::default()).map(drop).unwrap_err(),
                tree.nearest_with(&[GOOD], 1, &QueryOptions::default().radius(1.0)).map(drop).unwrap_err(),
                DistanceJoin::new(1.0).count(&device, &[GOOD], &[GOOD]).map(drop).unwrap_err(),
                KnnJoin::new(1).within(1.0).run(&device, &[GOOD], &[GOOD]).map(drop).unwrap_err(),
            ];
            BOUND.set(None);
            assert!(errors.iter().all(|error| matches!(error, Error::InvalidLength { .. })), "{errors:?}");
        }
        // A right bound is accepted.
        assert_eq!(tree.within(&[GOOD], 1.0, &QueryOptions::default()).unwrap().ids().len(), 3);
    }
}
