//! The CPU backend against kiddo: equal points and queries, queries on all threads of rayon. Both build on all threads.
//!
//! kauri sorts queries itself and returns results in their original order. kiddo gets them twice: in input order, and sorted
//! along a Morton curve, the best order for it; the time of that sort is not counted. Single queries are calls of one thread.
//!
//! kiddo has no queries in boxes. Points within a distance by the Chebyshev norm are the points in a cube, which is the box here.

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use kauri::query::QueryOptions;
use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
use kauri_benches::points::uniform;
use kiddo6::{Chebyshev, ImmutableKdTree, SquaredEuclidean};
use rayon::prelude::*;
use std::hint::black_box;
use std::num::NonZero;

/// Points, and queries.
const POINTS: usize = 1_000_000;
/// Average number of points within a query's radius, and in a box.
const WITHIN: f64 = 10.0;

/// Returns the Morton code of a point in the unit cube.
fn morton<const D: usize>(point: [f64; D]) -> u64 {
    let point = point.map(|x| (x * f64::from(1 << 16)) as u64);
    (0..16).rev().fold(0, |code, bit| point.iter().fold(code, |code, x| code << 1 | (x >> bit & 1)))
}

fn group<'a>(criterion: &'a mut Criterion, name: &str, points: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(format!("{name}, 1M {points}"));
    group.throughput(Throughput::Elements(POINTS as u64)).sample_size(10);
    group
}

/// Measures all calls for points of a type, whose unit ball has this volume.
macro_rules! benches_of {
    ($bench:ident, $C:ty, $D:literal, $unit_ball:expr) => {
        fn $bench(criterion: &mut Criterion) {
            type Kiddo = ImmutableKdTree<$C, $D>;
            type Norm = SquaredEuclidean<$C>;
            let kauri = |points: &[[$C; $D]]| {
                KdTree::build(&Device::cpu(), points, &KdTreeOptions::default()).expect("finite points")
            };
            let kiddo = |points: &[[$C; $D]]| Kiddo::new_from_slice(points).expect("finite points");
            let named = concat!(stringify!($C), " x ", $D);
            let (points, queries) = (uniform::<$C, $D>(POINTS, 1), uniform::<$C, $D>(POINTS, 2));
            let mut in_order = queries.clone();
            in_order.sort_by_cached_key(|query| morton(query.map(f64::from)));

            let mut group = group(criterion, "build", named);
            group.bench_function("kauri", |bench| bench.iter(|| kauri(black_box(&points))));
            group.bench_function("kiddo", |bench| bench.iter(|| kiddo(black_box(&points))));
            group.finish();

            let (kauri, kiddo) = (kauri(&points), kiddo(&points));
            let orders = [("kiddo", &queries), ("kiddo, queries in Morton order", &in_order)];
            for k in [1, 5, 16] {
                let mut group = self::group(criterion, &format!("nearest k={k}"), named);
                group.bench_function("kauri", |bench| bench.iter(|| kauri.nearest(&queries, k)));
                let k = NonZero::new(k).expect("not 0");
                for (name, queries) in orders {
                    group.bench_function(name, |bench| {
                        if k.get() == 1 {
                            let one = |query| kiddo.query(query).nearest_one::<Norm>().execute();
                            bench.iter(|| queries.par_iter().map(one).collect::<Vec<_>>());
                        } else {
                            let nearest = |query| kiddo.query(query).nearest_n::<Norm>(k).execute();
                            bench.iter(|| queries.par_iter().map(nearest).collect::<Vec<_>>());
                        }
                    });
                }
                group.finish();
            }

            let share = WITHIN / POINTS as f64;
            let radius = (share / $unit_ball).powf(1.0 / f64::from($D)) as $C;
            let options = QueryOptions::default();
            let mut group = self::group(criterion, &format!("within a radius, {WITHIN} points each"), named);
            group.bench_function("kauri", |bench| bench.iter(|| kauri.within(&queries, radius, &options)));
            for (name, queries) in orders {
                let within = |query| kiddo.query(query).within::<Norm>(radius * radius).unsorted().execute();
                group.bench_function(name, |bench| {
                    bench.iter(|| queries.par_iter().map(within).collect::<Vec<_>>());
                });
            }
            group.finish();

            let half = share.powf(1.0 / f64::from($D)) as $C / 2.0;
            let boxes: Vec<_> =
                queries.iter().map(|at| [at.map(|x| x - half), at.map(|x| x + half)]).collect();
            let mut group = self::group(criterion, &format!("in boxes, {WITHIN} points each"), named);
            group.bench_function("kauri", |bench| bench.iter(|| kauri.in_boxes(&boxes, None)));
            for (name, queries) in orders {
                let within = |query| kiddo.query(query).within::<Chebyshev<$C>>(half).unsorted().execute();
                group.bench_function(name, |bench| {
                    bench.iter(|| queries.par_iter().map(within).collect::<Vec<_>>());
                });
            }
            group.finish();

            let mut group = self::group(criterion, "single queries", named);
            group.bench_function("kauri", |bench| {
                bench.iter(|| {
                    queries.iter().for_each(|query| {
                        black_box(kauri.nearest_one(query).expect("a finite query"));
                    });
                });
            });
            for (name, queries) in orders {
                group.bench_function(name, |bench| {
                    bench.iter(|| {
                        queries.iter().for_each(|query| {
                            black_box(kiddo.query(query).nearest_one::<Norm>().execute());
                        });
                    });
                });
            }
            group.finish();
        }
    };
}

benches_of!(f32_3, f32, 3, 4.0 / 3.0 * std::f64::consts::PI);
benches_of!(f64_2, f64, 2, std::f64::consts::PI);

criterion_group!(benches, f32_3, f64_2);
criterion_main!(benches);
