//! Batches of the neighbors of the points themselves, with enough queries to be sorted. Each query excludes its point.
//! Kernels: `notify`, and the kernels of queries.

use kauri::device::SimOptions;
use kauri::query::{Queries, QueryOptions};
use kauri::{Batches, Device, KdTree, KdTreeOptions, SpatialIndex};
use kauri_tests::generate::Random;
use std::ops::ControlFlow;

#[test]
fn sorted_own_queries_exclude_themselves() {
    // A batch has more than the 1024 queries from which on queries are sorted.
    let mut random = Random::new(9);
    let points: Vec<[f32; 2]> =
        (0..2200).map(|_| [random.below(40) as f32, random.below(40) as f32]).collect();
    let options = KdTreeOptions::default();
    let expected = KdTree::build(&Device::cpu(), &points, &options).unwrap();
    let tree = KdTree::build(&Device::sim(SimOptions::nth_order(2, 5)).unwrap(), &points, &options).unwrap();

    let (own, options) = (Queries::SelfQuery { include_self: false }, QueryOptions::default());
    let mut batches = Batches::new().rows(1100);
    let (near, found) =
        (expected.nearest_with(own, 1, &options).unwrap(), expected.within(own, 1.0, &options).unwrap());
    let mut ids = Vec::new();
    tree.nearest_batches(own, 1, &options, &mut batches, |batch| {
        ids.extend_from_slice(batch.ids());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(ids == near.ids());

    // The first batch has few rows, because the first estimate of points per row is large.
    let mut batches = Batches::new().bytes(32 * 8 * 1100).rows(1100);
    let (mut ids, mut dist2) = (Vec::new(), Vec::new());
    let delivered = tree.within_batches(own, 1.0, &options, &mut batches, |batch| {
        ids.extend_from_slice(batch.ids());
        dist2.extend_from_slice(batch.dist2());
        ControlFlow::Continue(())
    });
    assert_eq!(delivered.unwrap().batches, 2);
    assert!(ids == found.ids() && dist2 == found.dist2());
}
