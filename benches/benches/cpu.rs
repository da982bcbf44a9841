//! The CPU backend against kiddo: equal points and queries, queries on all threads of rayon. (kiddo builds on one thread.)
//!
//! kauri sorts queries itself and returns results in their original order. kiddo gets them twice: in input order, and sorted
//! along a Morton curve, the best order for it; the time of that sort is not counted.

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use kauri::query::QueryOptions;
use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
use kauri_benches::points::uniform;
use kiddo::SquaredEuclidean;
use kiddo::immutable::float::kdtree::ImmutableKdTree;
use rayon::prelude::*;
use std::hint::black_box;
use std::num::NonZero;

/// Points, and queries.
const POINTS: usize = 1_000_000;
/// Average number of points within a query's radius.
const WITHIN: f64 = 10.0;

type Kiddo = ImmutableKdTree<f64, u32, 2, 32>;

/// Both trees over equal points; queries in input order and along a Morton curve.
struct Bench {
    kauri: KdTree<[f64; 2]>,
    kiddo: Kiddo,
    queries: Vec<[f64; 2]>,
    in_order: Vec<[f64; 2]>,
}

impl Bench {
    fn new() -> Self {
        let (points, queries) = (uniform(POINTS, 1), uniform(POINTS, 2));
        let mut in_order = queries.clone();
        in_order.sort_by_cached_key(morton);
        Self { kauri: kauri(&points), kiddo: Kiddo::new_from_slice(&points), queries, in_order }
    }
}

fn kauri(points: &[[f64; 2]]) -> KdTree<[f64; 2]> {
    KdTree::build(&Device::cpu(), points, &KdTreeOptions::default()).expect("finite points")
}

/// Returns the Morton code of a point in the unit square.
fn morton(point: &[f64; 2]) -> u64 {
    let [x, y] = point.map(|x| (x * f64::from(1 << 16)) as u64);
    (0..16).fold(0, |place, bit| place | (x >> bit & 1) << (2 * bit) | (y >> bit & 1) << (2 * bit + 1))
}

fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(format!("{name}, 1M f64 x 2"));
    group.throughput(Throughput::Elements(POINTS as u64)).sample_size(10);
    group
}

fn build(criterion: &mut Criterion) {
    let points = uniform(POINTS, 1);
    let mut group = group(criterion, "build");
    group.bench_function("kauri", |bench| bench.iter(|| kauri(black_box(&points))));
    group.bench_function("kiddo", |bench| bench.iter(|| Kiddo::new_from_slice(black_box(&points))));
    group.finish();
}

fn queries(criterion: &mut Criterion) {
    let Bench { kauri, kiddo, queries, in_order } = &Bench::new();
    let orders = [("kiddo", queries), ("kiddo, queries in Morton order", in_order)];
    for k in [5, 16] {
        let mut group = group(criterion, &format!("nearest k={k}"));
        group.bench_function("kauri", |bench| bench.iter(|| kauri.nearest(queries, k)));
        let k = NonZero::new(k).expect("not 0");
        for (name, queries) in orders {
            group.bench_function(name, |bench| {
                bench.iter(|| -> Vec<_> {
                    queries.par_iter().map(|query| kiddo.nearest_n::<SquaredEuclidean>(query, k)).collect()
                });
            });
        }
        group.finish();
    }

    let radius = (WITHIN / (std::f64::consts::PI * POINTS as f64)).sqrt();
    let options = QueryOptions::default();
    let mut group = group(criterion, &format!("within a radius, {WITHIN} points each"));
    group.bench_function("kauri", |bench| bench.iter(|| kauri.within(queries, radius, &options)));
    for (name, queries) in orders {
        group.bench_function(name, |bench| {
            let within = |query| kiddo.within_unsorted::<SquaredEuclidean>(query, radius * radius);
            bench.iter(|| -> Vec<_> { queries.par_iter().map(within).collect() });
        });
    }
    group.finish();
}

criterion_group!(benches, build, queries);
criterion_main!(benches);
