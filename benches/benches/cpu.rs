//! The cpu backend against kiddo, with rayon on both sides: the same points, the same queries, all threads.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kauri::{Device, KdTree, KdTreeOptions};
use kauri_benches::points::uniform;
use kiddo::SquaredEuclidean;
use kiddo::immutable::float::kdtree::ImmutableKdTree;
use rayon::prelude::*;
use std::hint::black_box;
use std::num::NonZero;

const POINTS: usize = 100_000;
const K: usize = 5;

fn build(criterion: &mut Criterion) {
    let points = uniform::<f64, 2>(POINTS, 1);
    let mut group = criterion.benchmark_group("build 100K f64 x 2");
    group.throughput(Throughput::Elements(POINTS as u64)).sample_size(10);
    group.bench_function("kauri", |bench| {
        bench.iter(|| KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default()));
    });
    group.bench_function("kiddo", |bench| {
        bench.iter(|| ImmutableKdTree::<f64, u32, 2, 32>::new_from_slice(black_box(&points)));
    });
    group.finish();
}

fn nearest(criterion: &mut Criterion) {
    let (points, queries) = (uniform::<f64, 2>(POINTS, 1), uniform::<f64, 2>(POINTS, 2));
    let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default()).expect("finite points");
    let kiddo = ImmutableKdTree::<f64, u32, 2, 32>::new_from_slice(&points);
    let mut group = criterion.benchmark_group("nearest k=5, 100K on 100K f64 x 2");
    group.throughput(Throughput::Elements(POINTS as u64)).sample_size(10);
    group.bench_function("kauri", |bench| bench.iter(|| tree.nearest(&queries, K)));
    group.bench_function("kiddo", |bench| {
        let k = NonZero::new(K).expect("not 0");
        bench.iter(|| -> Vec<_> {
            queries.par_iter().map(|query| kiddo.nearest_n::<SquaredEuclidean>(query, k)).collect()
        });
    });
    group.finish();
}

criterion_group!(benches, build, nearest);
criterion_main!(benches);
