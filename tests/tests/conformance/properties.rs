//! Properties that hold for any points, on small random cases, which proptest shrinks.

use kauri::{Device, SpatialIndex};
use kauri_tests::{devices, devices_for};
use proptest::prelude::*;

use crate::build;

type P = [f64; 2];

/// Generates small sets, half of them with many equal coordinates.
fn points(max: usize) -> impl Strategy<Value = Vec<P>> {
    let lattice = prop::collection::vec([0..6i32, 0..6i32].prop_map(|p| p.map(f64::from)), 0..max);
    let anywhere = prop::collection::vec([-1e3..1e3f64, -1e3..1e3f64], 0..max);
    prop_oneof![lattice, anywhere]
}

fn integers(max: usize) -> impl Strategy<Value = Vec<P>> {
    prop::collection::vec([-500..500i32, -500..500i32].prop_map(|p| p.map(f64::from)), 0..max)
}

fn nearest(device: &Device, points: &[P], queries: &[P], k: usize) -> (Vec<u32>, Vec<f64>) {
    build(device, points).nearest(queries, k).unwrap().into_parts()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_points_does_not_matter(points in points(200), queries in points(20), k in 1..12usize, by in 0..200usize) {
        for device in devices_for(points.len()) {
            let mut rotated = points.clone();
            rotated.rotate_left(by.min(points.len()));
            let original = |id: u32| match id {
                u32::MAX => id,
                _ => ((id as usize + by.min(points.len())) % points.len()) as u32,
            };
            let (ids, dist2) = nearest(&device, &points, &queries, k);
            let (rotated_ids, rotated_dist2) = nearest(&device, &rotated, &queries, k);
            prop_assert_eq!(&dist2, &rotated_dist2);
            for row in 0..queries.len() {
                // Which points at the k-th distance are in the row depends on ids.
                let (row, last) = (row * k..(row + 1) * k, dist2[(row + 1) * k - 1]);
                let nearer = row.clone().filter(|&i| dist2[i] < last);
                let mut expected: Vec<u32> = nearer.clone().map(|i| ids[i]).collect();
                let mut got: Vec<u32> = nearer.map(|i| original(rotated_ids[i])).collect();
                expected.sort_unstable();
                got.sort_unstable();
                prop_assert_eq!(expected, got);
            }
        }
    }

    #[test]
    fn fewer_neighbors_are_the_first_ones(points in points(200), queries in points(20), k in 0..70usize) {
        for device in devices_for(points.len()) {
            let tree = build(&device, &points);
            let (few, more) = (tree.nearest(&queries, k).unwrap(), tree.nearest(&queries, k + 1).unwrap());
            for row in 0..queries.len() {
                prop_assert_eq!(few.padded_row(row).0, &more.padded_row(row).0[..k]);
                prop_assert_eq!(few.padded_row(row).1, &more.padded_row(row).1[..k]);
            }
        }
    }

    #[test]
    fn every_run_gives_the_same_bits(points in points(500), queries in points(20)) {
        let first = &devices()[0];
        let (ids, near) = (build(first, &points).node_ids().unwrap(), nearest(first, &points, &queries, 5));
        for device in devices_for(points.len()) {
            prop_assert_eq!(&build(&device, &points).node_ids().unwrap(), &ids);
            prop_assert_eq!(&nearest(&device, &points, &queries, 5), &near);
        }
    }

    #[test]
    fn moving_and_scaling_exactly_changes_nothing(points in integers(300), queries in integers(20), power in -20..20i32) {
        for device in devices_for(points.len()) {
            let (ids, dist2) = nearest(&device, &points, &queries, 4);
            let nodes = build(&device, &points).node_ids().unwrap();
            let by = 2f64.powi(power.abs() + 10);
            let moved = |from: &[P]| -> Vec<P> { from.iter().map(|p| p.map(|x| x + by)).collect() };
            prop_assert_eq!(&nearest(&device, &moved(&points), &moved(&queries), 4), &(ids.clone(), dist2.clone()));
            prop_assert_eq!(&build(&device, &moved(&points)).node_ids().unwrap(), &nodes);

            let scale = 2f64.powi(power);
            let scaled = |from: &[P]| -> Vec<P> { from.iter().map(|p| p.map(|x| x * scale)).collect() };
            let scaled_dist2: Vec<f64> = dist2.iter().map(|d| d * scale * scale).collect();
            prop_assert_eq!(&nearest(&device, &scaled(&points), &scaled(&queries), 4), &(ids, scaled_dist2));
        }
    }
}
