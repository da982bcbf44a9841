//! Bad and degenerate inputs, each with its promised outcome.

use kauri::{Error, KdTree, KdTreeOptions, LonLat, Point, Result, SpatialIndex};
use kauri_kernels::thread::coord::Float;
use kauri_tests::generate::{Scalar, Shape};
use kauri_tests::oracle::BruteForce;
use kauri_tests::{devices, devices_for};
use std::borrow::Cow;

use crate::build;

/// A degenerate input, and the promised outcome.
struct Row<C> {
    input: &'static str,
    points: Vec<[C; 3]>,
    queries: Vec<[C; 3]>,
    k: usize,
    promise: Promise,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Promise {
    /// The rows of brute force, bit for bit.
    Rows,
    /// Building is refused, for this point and axis.
    NonFinitePoint(u64, usize),
    TooLargePoint(u64, usize),
    /// The tree is built and the queries are refused, for this query and axis.
    NonFiniteQuery(u64, usize),
    TooLargeQuery(u64, usize),
    /// The tree is built; the result is refused before any work.
    ResultTooLarge,
}

use Promise::{NonFinitePoint, NonFiniteQuery, ResultTooLarge, Rows, TooLargePoint, TooLargeQuery};

/// More points than a block finishes, on a lattice: all kernels of every build algorithm run.
#[test]
fn lattices_of_thousands_of_points() {
    for device in devices_for(8000) {
        build(&device, &Shape::Lattice.points::<f32, 2>(8000, 78));
        build(&device, &Shape::Lattice.points::<f64, 3>(2600, 79));
    }
}

fn table<C: Scalar>() -> Vec<Row<C>> {
    let at = |x: f64| [C::from_f64(x), C::from_f64(-x), C::from_f64(x / 3.0)];
    let some = |n: usize| Shape::Uniform.points::<C, 3>(n, 77);
    let with = |mut points: Vec<[C; 3]>, i: usize, axis: usize, value: C| {
        points[i][axis] = value;
        points
    };
    let (nan, inf, minus) = (C::from_f64(f64::NAN), C::INFINITY, C::from_f64(-1.0));
    let beyond = C::LIMIT * C::from_f64(1.5);
    let row = |input, points: &[[C; 3]], queries: &[[C; 3]], k, promise| Row {
        input,
        points: points.to_vec(),
        queries: queries.to_vec(),
        k,
        promise,
    };
    let mut table = vec![
        row("no points", &[], &some(2), 3, Rows),
        row("no points, no queries", &[], &[], 3, Rows),
        row("no queries", &some(9), &[], 3, Rows),
        row("one point", &[at(1.0)], &some(2), 3, Rows),
        row("two points", &[at(1.0), at(2.0)], &some(2), 3, Rows),
        row("two equal points", &[at(1.0); 2], &[at(1.0), at(0.0)], 2, Rows),
        row("31 points", &some(31), &some(3), 31, Rows),
        row("32 points", &some(32), &some(3), 32, Rows),
        row("33 points", &some(33), &some(3), 33, Rows),
        row("33 equal points", &[at(4.0); 33], &[at(4.0), at(5.0)], 40, Rows),
        row("three places, 11 points each", &[at(1.0), at(2.0), at(3.0)].repeat(11), &[at(2.0)], 30, Rows),
        row("queries at the limit", &some(33), &[[C::LIMIT; 3], [minus * C::LIMIT; 3]], 4, Rows),
        row("k = 0", &some(9), &some(3), 0, Rows),
        row("k = n", &some(9), &some(3), 9, Rows),
        row("k > n", &some(9), &some(3), 64, Rows),
        row("k = 2^46", &some(9), &some(3), 1 << 46, ResultTooLarge),
        row("k = the largest number", &some(9), &some(3), usize::MAX, ResultTooLarge),
        row("NaN in the first point", &with(some(9), 0, 0, nan), &[], 1, NonFinitePoint(0, 0)),
        row("NaN in the last point", &with(some(9), 8, 2, nan), &[], 1, NonFinitePoint(8, 2)),
        row("infinity in a point", &with(some(33), 31, 1, inf), &[], 1, NonFinitePoint(31, 1)),
        row("minus infinity in a point", &with(some(33), 32, 1, minus * inf), &[], 1, NonFinitePoint(32, 1)),
        row("two bad points", &with(with(some(9), 7, 0, nan), 3, 2, inf), &[], 1, NonFinitePoint(3, 2)),
        row("a point whose square overflows", &with(some(9), 4, 1, beyond), &[], 1, TooLargePoint(4, 1)),
        row("NaN in a query", &some(9), &with(some(5), 2, 1, nan), 1, NonFiniteQuery(2, 1)),
        row("infinity in a query", &some(9), &with(some(5), 4, 0, minus * inf), 1, NonFiniteQuery(4, 0)),
        row("NaN in a query, no points", &[], &with(some(5), 1, 2, nan), 1, NonFiniteQuery(1, 2)),
        row(
            "a query whose square overflows",
            &some(9),
            &with(some(5), 0, 2, minus * beyond),
            1,
            TooLargeQuery(0, 2),
        ),
    ];
    let shapes = Shape::ALL.map(|shape| shape.points::<C, 3>(33, 5));
    table.extend(shapes.iter().map(|points| row("a shape", points, &points[..4], 35, Rows)));
    table
}

fn every_row_keeps_its_promise<C: Scalar>() {
    for Row { input, points, queries, k, promise } in table::<C>() {
        for device in devices_for(points.len()) {
            let what = format!("{input}, {}, on {device}", C::NAME);
            let tree = match KdTree::build(&device, &points, &KdTreeOptions::default()) {
                Ok(tree) => tree,
                Err(error) => {
                    assert_eq!(promise_kept(&error, "point"), Some(promise), "{what}: {error}");
                    continue;
                }
            };
            tree.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
            match tree.nearest(&queries, k) {
                Err(error) => assert_eq!(promise_kept(&error, "query"), Some(promise), "{what}: {error}"),
                Ok(near) => {
                    assert_eq!((promise, near.len(), near.k()), (Rows, queries.len(), k), "{what}");
                    for (i, &query) in queries.iter().enumerate() {
                        let (ids, dist2) = BruteForce::new(&points).row(query, k);
                        assert!(near.padded_row(i) == (&ids[..], &dist2[..]), "{what}, query {i}");
                    }
                }
            }
            let first = tree.nearest(&points[..points.len().min(1)], 1).unwrap();
            assert!(first.dist2().iter().all(|&distance| distance == C::ZERO), "{what}: usable afterwards");
        }
    }
}

/// The promise that an error keeps.
fn promise_kept(error: &Error, of: &str) -> Option<Promise> {
    match *error {
        Error::NonFinite { what, index, axis, .. } if what == of => {
            Some(if of == "point" { NonFinitePoint(index, axis) } else { NonFiniteQuery(index, axis) })
        }
        Error::CoordinateTooLarge { what, index, axis, .. } if what == of => {
            Some(if of == "point" { TooLargePoint(index, axis) } else { TooLargeQuery(index, axis) })
        }
        Error::ResultTooLarge { .. } => Some(ResultTooLarge),
        _ => None,
    }
}

#[test]
fn every_row_of_the_table_f32() {
    every_row_keeps_its_promise::<f32>();
}

#[test]
fn every_row_of_the_table_f64() {
    every_row_keeps_its_promise::<f64>();
}

#[test]
fn an_empty_tree_returns_padding() {
    for device in devices_for(0) {
        let tree = build::<[f32; 3]>(&device, &[]);
        assert!(tree.is_empty() && tree.node_ids().unwrap().is_empty());
        let near = tree.nearest(&[[0.0; 3]; 100], 3).unwrap();
        assert_eq!(near.len(), 100);
        assert!(near.ids().iter().all(|&id| id == u32::MAX));
        assert!(near.dist2().iter().all(|&d| d == f32::INFINITY));
        assert!(tree.nearest(&[], 3).unwrap().is_empty());
        assert_eq!(
            build::<LonLat>(&device, &[]).nearest(&[LonLat::default()], 1).unwrap().padded_row(0).0,
            [u32::MAX]
        );
    }
}

#[test]
fn any_k() {
    let points = Shape::Uniform.points::<f64, 2>(5, 0);
    for device in devices() {
        let tree = build(&device, &points);
        let none = tree.nearest(&points, 0).unwrap();
        assert_eq!((none.len(), none.k(), none.ids().len(), none.row(4).len()), (5, 0, 0, 0));
        for k in [5, 6, 63, 64, 65, 1000, 100_000] {
            let near = tree.nearest(&points, k).unwrap();
            for (i, &query) in points.iter().enumerate() {
                let (ids, dist2) = BruteForce::new(&points).row(query, k);
                assert!(near.padded_row(i) == (&ids[..], &dist2[..]), "k = {k} on {device}");
            }
        }
        for k in [1 << 46, usize::MAX / 2, usize::MAX] {
            for queries in [1, 2, 5] {
                let error = tree.nearest(&points[..queries], k).unwrap_err();
                assert!(matches!(error, Error::ResultTooLarge { .. }), "{error}");
            }
            assert!(tree.nearest(&[], k).unwrap().is_empty());
        }
        assert_eq!(tree.nearest(&points, 1).unwrap().ids(), [0, 1, 2, 3, 4], "usable after errors");
    }
}

#[test]
fn equal_points_come_by_id() {
    for device in devices() {
        for n in [1, 2, 31, 32, 33, 1000] {
            let near = build(&device, &vec![[0.25f32; 4]; n]).nearest(&[[0.25; 4], [9.0; 4]], 33).unwrap();
            for row in 0..2 {
                let expected: Vec<u32> =
                    (0..33).map(|id| if id < n as u32 { id } else { u32::MAX }).collect();
                assert_eq!(near.padded_row(row).0, expected, "{n} on {device}");
            }
        }
    }
}

#[test]
fn a_million_equal_points() {
    let points = vec![[1.0f32, 2.0]; 1_000_000];
    for device in devices() {
        let tree = build(&device, &points);
        assert_eq!(tree.nearest(&[[1.0, 2.0]], 3).unwrap().ids(), [0, 1, 2]);
    }
}

#[test]
fn zeros_have_no_sign() {
    for device in devices_for(4) {
        let tree = build(&device, &[[0.0f32], [-0.0], [0.0], [-0.0]]);
        let near = tree.nearest(&[[-0.0], [0.0]], 4).unwrap();
        assert_eq!(near.ids(), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert!(near.dist2().iter().all(|d| d.to_bits() == 0));
        assert_eq!(tree.node_ids().unwrap(), build(&device, &[[0.0f32]; 4]).node_ids().unwrap());
    }
}

/// Builds a tree over bad points, and queries a tree with them: returns the errors.
fn refusals<P: Point>(points: &[P], fine: P) -> Vec<Error> {
    let mut errors = Vec::new();
    for device in devices_for(points.len()) {
        errors.push(KdTree::build(&device, points, &KdTreeOptions::default()).unwrap_err());
        let tree = build(&device, &[fine]);
        errors.push(tree.nearest(points, 1).unwrap_err());
        assert_eq!(tree.nearest(&[fine], 1).unwrap().ids(), [0], "usable after an error");
    }
    errors
}

#[test]
fn errors_name_the_place_of_nan_and_infinity() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for (n, index, axis) in [(1, 0, 0), (10, 7, 2), (100_000, 99_999, 1), (100_000, 20_000, 0)] {
            let mut points = vec![[1.0f64; 3]; n];
            points[index][axis] = bad;
            points[n - 1][2] = bad;
            let axis = if index == n - 1 { axis.min(2) } else { axis };
            for error in refusals(&points, [0.0; 3]) {
                match error {
                    Error::NonFinite { index: at, axis: on, value, .. } => {
                        assert_eq!((at, on, value.to_bits()), (index as u64, axis, bad.to_bits()));
                    }
                    other => panic!("{other}"),
                }
            }
        }
    }
    let text = refusals(&[[f32::NAN]], [0.0])[1].to_string();
    assert_eq!(text, "query 0 has NaN on axis 0: coordinates must be finite");
}

#[test]
fn coordinates_whose_squares_overflow_are_refused() {
    for error in refusals(&[[0.0f32, 0.0], [0.0, -1e30]], [0.0; 2]) {
        assert!(matches!(error, Error::CoordinateTooLarge { index: 1, axis: 1, .. }), "{error}");
    }
    for error in refusals(&[[1e160f64]], [0.0]) {
        assert!(matches!(error, Error::CoordinateTooLarge { .. }), "{error}");
    }
    // The limit itself is accepted, and no distance is infinite.
    for device in devices_for(2) {
        let tree = build(&device, &[[f32::LIMIT; 8], [-f32::LIMIT; 8]]);
        assert!(tree.nearest(&[[f32::LIMIT; 8]], 2).unwrap().dist2().iter().all(|d| d.is_finite()));
    }
}

#[test]
fn places_that_are_not_on_the_earth() {
    for error in refusals(&[LonLat::new(0.0, 0.0), LonLat::new(0.0, -90.5)], LonLat::default()) {
        assert!(matches!(error, Error::InvalidLonLat { index: 1, axis: "latitude", .. }), "{error}");
    }
    for error in refusals(&[LonLat::new(400.0, 0.0)], LonLat::default()) {
        assert!(matches!(error, Error::InvalidLonLat { axis: "longitude", .. }), "{error}");
    }
    for error in refusals(&[LonLat::new(0.0, f64::NAN)], LonLat::default()) {
        assert!(matches!(error, Error::NonFinite { axis: 1, .. }), "{error}");
    }
}

/// A point that takes no memory, so a slice can have any length.
#[derive(Clone, Copy)]
struct Nothing;

impl Point for Nothing {
    type Coord = f32;
    const DIMS: usize = 1;
    const CONVERTED: bool = true;
    const KEEPS_AXES: bool = true;

    fn coordinates<'a>(points: &'a [Self], _: &'static str) -> Result<Cow<'a, [f32]>> {
        assert!(points.len() <= 1, "no work before the number of points is checked");
        Ok(Cow::Borrowed(&[]))
    }
}

#[test]
fn more_points_than_ids() {
    for device in devices_for(0) {
        for count in [u64::from(u32::MAX), 1 << 32, 1 << 40] {
            let points = vec![Nothing; count as usize];
            match KdTree::build(&device, &points, &KdTreeOptions::default()) {
                Err(Error::TooManyItems { what: "points", count: refused, max }) => {
                    assert_eq!((refused, max), (count, u64::from(u32::MAX) - 1));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_point_type_without_coordinates_is_refused() {
    for device in devices_for(1) {
        let error = KdTree::build(&device, &[Nothing], &KdTreeOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Shape { expected: 1, got: 0, .. }), "{error}");
    }
}

#[test]
fn queries_far_from_all_points() {
    let points = Shape::Uniform.points::<f32, 3>(5000, 2);
    let queries = [[1e18f32; 3], [-1e18, 0.0, 0.0], [0.0, 3e17, -2e18]];
    for device in devices() {
        let near = build(&device, &points).nearest(&queries, 5).unwrap();
        for (i, &query) in queries.iter().enumerate() {
            let (ids, dist2) = BruteForce::new(&points).row(query, 5);
            assert!(near.padded_row(i) == (&ids[..], &dist2[..]), "query {i} on {device}");
        }
    }
}
