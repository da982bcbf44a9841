//! Joins of boxes on the CPU against `packed_spatial_index` and `rstar`: 100k boxes of each set, `f64` x 2, density 1.
//!
//! A join of kauri needs no index, and sorts the boxes each time. The others are measured with the build of both indexes, and with indexes
//! that exist. kauri and the builds of packed_spatial_index use all threads of rayon, the other joins one thread.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kauri::{BoxJoin, Device};
use kauri_benches::points::cubes;
use packed_spatial_index::{Box2D, Index2DBuilder, SimdIndex2D};
use rstar::primitives::{GeomWithData, Rectangle};
use rstar::{AABB, RTree};
use std::hint::black_box;

/// Boxes of each set.
const BOXES: usize = 100_000;

type Boxes = Vec<[[f64; 2]; 2]>;
type Item = GeomWithData<Rectangle<[f64; 2]>, u32>;

fn packed(boxes: &Boxes) -> SimdIndex2D {
    let mut builder = Index2DBuilder::new(boxes.len());
    for [low, high] in boxes {
        builder.add(Box2D::new(low[0], low[1], high[0], high[1]));
    }
    builder.finish_simd().expect("all boxes were added")
}

fn rtree(boxes: &Boxes) -> RTree<Item> {
    let item = |(id, [low, high]): (usize, &[[f64; 2]; 2])| {
        GeomWithData::new(Rectangle::from_aabb(AABB::from_corners(*low, *high)), id as u32)
    };
    RTree::bulk_load(boxes.iter().enumerate().map(item).collect())
}

fn pairs_of(left: &RTree<Item>, right: &RTree<Item>) -> Vec<(u32, u32)> {
    left.intersection_candidates_with_other_tree(right).map(|(left, right)| (left.data, right.data)).collect()
}

fn join(criterion: &mut Criterion) {
    let [left, right]: [Boxes; 2] = [1, 2].map(|seed| cubes(BOXES, 1.0, seed));
    let (join, device) = (BoxJoin::intersects(), Device::cpu());
    let rows = |left: &Boxes, right: &Boxes| join.rows(&device, left, right).expect("finite boxes");
    let (packed_left, packed_right) = (packed(&left), packed(&right));
    let (tree_left, tree_right) = (rtree(&left), rtree(&right));
    let count = rows(&left, &right).ids().len();
    assert!(count == packed_left.join(&packed_right).len() && count == pairs_of(&tree_left, &tree_right).len());

    let mut group = criterion.benchmark_group("boxes joined, 100k x 100k f64 x 2");
    group.throughput(Throughput::Elements(BOXES as u64));
    group.bench_function("kauri", |bench| bench.iter(|| rows(black_box(&left), &right)));
    group.bench_function("kauri, counted", |bench| {
        bench.iter(|| join.count(&device, black_box(&left), &right).expect("finite boxes"))
    });
    group.bench_function("packed_spatial_index", |bench| {
        bench.iter(|| packed(black_box(&left)).join(&packed(&right)));
    });
    group.bench_function("packed_spatial_index, built before", |bench| {
        bench.iter(|| black_box(&packed_left).join(&packed_right));
    });
    group.bench_function("rstar", |bench| bench.iter(|| pairs_of(&rtree(black_box(&left)), &rtree(&right))));
    group.bench_function("rstar, built before", |bench| {
        bench.iter(|| pairs_of(black_box(&tree_left), &tree_right));
    });
    group.finish();
}

criterion_group!(benches, join);
criterion_main!(benches);
