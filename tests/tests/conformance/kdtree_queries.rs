//! Queries with options against brute force.

use kauri::kdtree::{Norm, PointMask, Queries, QueryOptions, Traversal};
use kauri::{Error, KdTree, KdTreeOptions};
use kauri_kernels::thread::coord::Coord;
use kauri_tests::devices;
use kauri_tests::for_each_dims;
use kauri_tests::generate::{Random, Scalar, Shape, queries};
use kauri_tests::oracle::padded_row;

use crate::build;

/// Distance by the definition of the norm; axes repeat after periods that are not 0.
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

/// Points in one period, queries as well.
fn in_period<C: Scalar, const D: usize>(n: usize, seed: u64) -> Vec<[C; D]> {
    let mut random = Random::new(seed);
    (0..n).map(|_| std::array::from_fn(|_| C::from_f64((random.unit() * 64.0).floor() / 8.0))).collect()
}

struct Case<C: Coord, const D: usize> {
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
            // One axis does not repeat.
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

    /// The right row, of a query that leaves out a point.
    fn row(&self, points: &[[C; D]], query: &[C; D], except: Option<u32>, k: usize) -> (Vec<u32>, Vec<C>) {
        let bound =
            self.radius.map(|radius| if self.norm == Norm::Euclidean { radius * radius } else { radius });
        let mut found: Vec<(C, u32)> = (0..points.len() as u32)
            .filter(|&id| Some(id) != except && self.mask.as_ref().is_none_or(|mask| mask.takes(id)))
            .map(|id| (distance(query, &points[id as usize], self.norm, &self.periods), id))
            .filter(|(distance, _)| bound.is_none_or(|bound| *distance <= bound))
            .collect();
        found.sort_by(|a, b| a.partial_cmp(b).unwrap());
        found.truncate(k);
        padded_row(&found, k)
    }
}

fn options_equal_to_brute_force<C: Scalar, const D: usize>() {
    let points = in_period::<C, D>(230, D as u64);
    let queries = in_period::<C, D>(40, 100 + D as u64);
    for device in devices() {
        let tree = build(&device, &points);
        for number in 0..Case::<C, D>::COUNT {
            let case = Case::<C, D>::new(number, points.len());
            // Every kernel has its turn: for one, for short lists, for queues, for heaps.
            let k = [1, 7, 40, 150, 300][number % 5];
            let what = format!("{number} k = {k}, {D} x {} on {device}", C::NAME);
            let near = tree.nearest_with(&queries, k, &case.options).unwrap();
            for (i, query) in queries.iter().enumerate() {
                let (ids, dist2) = case.row(&points, query, None, k);
                assert_eq!(near.row(i), (&ids[..], &dist2[..]), "query {i} of case {what}");
            }
            let itself = number % 2 == 0;
            let own = tree.nearest_with(Queries::Own { itself }, k, &case.options).unwrap();
            for (id, query) in points.iter().enumerate().step_by(7) {
                let except = (!itself).then_some(id as u32);
                let (ids, dist2) = case.row(&points, query, except, k);
                assert_eq!(own.row(id), (&ids[..], &dist2[..]), "own {id} of case {what}");
            }
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

#[test]
fn traversals_and_orders_give_the_same_rows() {
    let points = Shape::ALL[0].points::<f32, 3>(3000, 5);
    let queries = queries(&points, 2100, 6);
    let expected = KdTree::build(&kauri::Device::cpu(), &points, &KdTreeOptions::default()).unwrap();
    for device in devices() {
        let tree = build(&device, &points);
        for k in [1, 8, 12, 32, 100, 256, 257] {
            let expected = expected.nearest(&queries, k).unwrap();
            let plain = QueryOptions::default();
            for options in [plain.clone(), plain.clone().coherent(), plain.traversal(Traversal::StackFree)] {
                let near = tree.nearest_with(&queries, k, &options).unwrap();
                assert!(near.ids() == expected.ids(), "k = {k}, {options:?} on {device}");
                assert!(near.dist2() == expected.dist2(), "k = {k}, {options:?} on {device}");
            }
        }
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for device in devices() {
        let tree = build(&device, &[[0.0f32, 1.0], [2.0, 3.0]]);
        let ask =
            |options: QueryOptions<[f32; 2]>| tree.nearest_with(&[[0.0, 0.0]], 1, &options).unwrap_err();
        let plain = QueryOptions::default;
        for length in [-1.0, f32::NAN] {
            assert!(matches!(ask(plain().radius(length)), Error::InvalidLength { what: "radius", .. }));
            assert!(matches!(
                ask(plain().periods([1.0, length])),
                Error::InvalidLength { what: "period", .. }
            ));
        }
        assert!(matches!(ask(plain().periods([1.0])), Error::Shape { expected: 2, got: 1, .. }));
        let mask = PointMask::from_fn(3, |_| true).unwrap();
        assert!(matches!(ask(plain().mask(mask)), Error::Shape { expected: 2, got: 3, .. }));
        // And the tree is as it was.
        assert_eq!(tree.nearest(&[[0.0, 0.0]], 1).unwrap().row(0), (&[0][..], &[1.0][..]));
    }
}
