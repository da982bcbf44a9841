//! R-trees on simulated devices, against the CPU: builds, inserts, removals and queries.

use crate::query::points;
use crate::{on_each_schedule, on_each_schedule_in_turn};
use kauri::device::Gpu;
use kauri::query::{Norm, PointMask, Queries, QueryOptions};
use kauri::{Device, Error, Point, RTree, SpatialIndex};
use kauri_tests::oracle::DistanceOf;

/// A tree on the GPU and one on the CPU, with the same changes.
struct Trees<P: Point>([RTree<P>; 2]);

impl<P: Point> Trees<P> {
    fn build(gpu: &Gpu, points: &[P]) -> Self {
        let tree = |device: &Device| RTree::build(device, points).unwrap_or_else(|e| panic!("{e}"));
        Self([tree(&Device::from_gpu(gpu.clone())), tree(&Device::cpu())])
    }

    fn insert(&mut self, points: &[P]) {
        let ids = self.0.each_mut().map(|tree| tree.insert(points).unwrap_or_else(|e| panic!("{e}")));
        assert_eq!(ids[0], ids[1]);
    }

    fn remove(&mut self, ids: &[u32]) {
        self.0.iter_mut().for_each(|tree| tree.remove(ids).unwrap_or_else(|e| panic!("{e}")));
    }

    /// Compares queries.
    fn check(&self, queries: &[P], ks: &[usize], options: &QueryOptions<P>, radius: DistanceOf<P>) {
        let [tree, expected] = &self.0;
        assert_eq!(tree.len(), expected.len());
        for queries in [Queries::Points(queries), Queries::SelfQuery { include_self: false }] {
            for &k in ks {
                let (found, near) =
                    (tree.nearest_with(queries, k, options), expected.nearest_with(queries, k, options));
                assert!(found.unwrap_or_else(|e| panic!("{e}")) == near.unwrap(), "k = {k}");
            }
            let counts = tree.count_within(queries, radius, options).unwrap_or_else(|e| panic!("{e}"));
            assert!(counts == expected.count_within(queries, radius, options).unwrap());
            // The trees have the same order.
            let found = tree.within(queries, radius, options).unwrap_or_else(|e| panic!("{e}"));
            let rows = expected.within(queries, radius, options).unwrap();
            assert!(found.offsets() == rows.offsets() && found.ids() == rows.ids());
            assert!(found.dist2() == rows.dist2());
        }
    }
}

/// Each schedule has points of one type; together the schedules have all.
#[test]
fn points_come_and_go() {
    on_each_schedule_in_turn(4, |gpu, _, turn| {
        let (f32s, f64s, i32s) = (|x| x as f32, |x| x, |x| (x * 31.25) as i32);
        match turn {
            0 => changes(gpu, &points::<f32, 3>(230, 1, f32s), &[1, 4, 20], 1.5),
            1 => changes(gpu, &points::<f64, 2>(150, 2, f64s), &[3, 40], 1.0),
            2 => changes(gpu, &points::<i32, 3>(150, 3, i32s), &[1, 8, 300], 50.0),
            _ => changes(gpu, &points::<f32, 5>(120, 4, f32s), &[2], 4.0),
        }
    });
}

fn changes<P: Point>(gpu: &Gpu, all: &[P], ks: &[usize], radius: DistanceOf<P>) {
    let (queries, options) = (&all[..20], QueryOptions::default());
    let mut trees = Trees::build(gpu, &all[..all.len() * 2 / 3]);
    trees.check(queries, ks, &options, radius);
    trees.insert(&all[all.len() * 2 / 3..]);
    trees.insert(&[all[5]; 20]);
    trees.check(queries, ks, &options, radius);
    trees.remove(&(0..all.len() as u32 + 20).step_by(3).collect::<Vec<_>>());
    trees.insert(&all[..10]);
    let mask = PointMask::from_fn(trees.0[0].num_ids(), |id| id % 4 != 1).unwrap();
    trees.check(queries, ks, &options.mask(mask), radius);
}

#[test]
fn ids_are_checked() {
    on_each_schedule(|gpu, _| {
        let device = Device::from_gpu(gpu.clone());
        let mut tree = RTree::build(&device, &points::<f32, 2>(70, 1, |x| x as f32)).unwrap();
        tree.remove(&[5, 69, 33]).unwrap();
        let error = |ids: &[u32], tree: &mut RTree<[f32; 2]>| tree.remove(ids).unwrap_err();
        assert!(matches!(error(&[1, 70, u32::MAX, 33, 40], &mut tree), Error::UnknownId { id: 33 }));
        assert!(matches!(error(&[68, 7, 68, 7, 69], &mut tree), Error::RepeatedId { id: 7 }));
        assert!(tree.len() == 67 && tree.contains(7).unwrap() && !tree.contains(33).unwrap());
    });
}

/// The options of a general kernel.
#[test]
fn options_of_queries() {
    on_each_schedule_in_turn(1, |gpu, _, _| {
        let all = points::<f32, 2>(130, 6, |x| x as f32);
        let mut trees = Trees::build(gpu, &all[..100]);
        trees.insert(&all[100..]);
        trees.remove(&[1, 100, 129]);
        let options = QueryOptions::default().norm(Norm::Chebyshev).periods([8.0, 0.0]);
        trees.check(&all[..15], &[1, 6], &options, 1.0);
        trees.check(&all[..15], &[5], &QueryOptions::default().coherent().radius(2.0), 1.0);
    });
}
