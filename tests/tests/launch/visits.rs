//! Kernels of your own that visit the points around queries.

use crate::{on_each_gpu, zeros};
use kauri::device::{Buffer, Workspace};
use kauri::query::{DeviceIndex, DeviceQueries, PointMask, Queries, QueryOptions};
use kauri::{Error, KdTree, KdTreeOptions, Quadtree, QuadtreeOptions, SpatialIndex};
use kauri_test_kernels::visit::{Sum, test_visit_nearest, test_visit_sums};

/// Returns points with equal coordinates and equal distances among them.
fn points(num: usize, seed: u64) -> Vec<[f32; 3]> {
    let coordinates: Vec<f32> =
        crate::noise(3 * num, seed).into_iter().map(|bits| (bits % 64) as f32).collect();
    coordinates.as_chunks().0.to_vec()
}

#[test]
fn visits_agree_with_lists_of_ids() {
    on_each_gpu(|gpu, stream| {
        let device = kauri::Device::from_gpu(gpu.clone());
        let (points, queries) = (points(400, 1), points(200, 2));
        let payloads: Vec<u32> = crate::noise(400, 3);
        let tree = KdTree::build(&device, &points, &KdTreeOptions::default()).unwrap();
        let cpu_tree = KdTree::build(&kauri::Device::cpu(), &points, &KdTreeOptions::default()).unwrap();
        let (workspace, coords) = (&mut Workspace::new(gpu), queries.as_flattened());
        let coords = Buffer::from_slice(stream, coords, "queries").unwrap();
        let payloads_on = Buffer::from_slice(stream, &payloads, "payloads").unwrap();
        let mask = PointMask::from_fn(400, |id| id % 3 != 0).unwrap();
        for options in
            [QueryOptions::default(), QueryOptions::default().coherent(), QueryOptions::default().mask(mask)]
        {
            // The payloads within a radius.
            let within = options.clone().radius(12.0);
            let prepared = tree.prepare(stream, &within).unwrap();
            let mut sums = zeros::<u32>(stream, queries.len());
            let queries_on = DeviceQueries::Coordinates(&coords);
            tree.visit_on(stream, workspace, queries_on, &prepared, |num_blocks, visits| {
                // SAFETY: there is a payload for each point and a sum for each query.
                unsafe {
                    stream.launch::<test_visit_sums>(
                        num_blocks,
                        (visits, payloads_on.slice(), sums.slice_mut()),
                    )
                }
            })
            .unwrap();
            let found = tree.within(&queries, 12.0, &options).unwrap();
            let expected: Vec<u32> = (0..queries.len())
                .map(|row| {
                    found
                        .row(row)
                        .ids()
                        .iter()
                        .fold(0, |sum: u32, &id| sum.wrapping_add(payloads[id as usize]))
                })
                .collect();
            assert!(expected.iter().any(|&sum| sum != 0));
            assert_eq!(sums.to_vec(stream).unwrap(), expected);
            // The same visitor on the CPU.
            let begin = |_, bound| Sum { bound, payload: |id| payloads[id as usize], sum: 0 };
            let on_cpu = cpu_tree.visit(&queries, &within, begin, |_, visitor| visitor.sum);
            assert_eq!(on_cpu.unwrap(), expected);
            let refused = tree.visit(&queries, &within, begin, |_, visitor| visitor.sum);
            assert!(matches!(refused, Err(Error::NotOnCpu)), "{refused:?}");
            // The nearest points.
            let prepared = tree.prepare(stream, &options).unwrap();
            let mut ids = zeros::<u32>(stream, 5 * queries.len());
            tree.visit_on(stream, workspace, queries_on, &prepared, |num_blocks, visits| {
                // SAFETY: there are five ids for each query.
                unsafe { stream.launch::<test_visit_nearest>(num_blocks, (visits, ids.slice_mut())) }
            })
            .unwrap();
            assert_eq!(ids.to_vec(stream).unwrap(), tree.nearest_with(&queries, 5, &options).unwrap().ids());
        }
        // The points themselves, each without itself.
        let prepared = tree.prepare(stream, &QueryOptions::default()).unwrap();
        let mut ids = zeros::<u32>(stream, 5 * points.len());
        let own = DeviceQueries::SelfQuery { include_self: false };
        tree.visit_on(stream, workspace, own, &prepared, |num_blocks, visits| {
            // SAFETY: there are five ids for each point.
            unsafe { stream.launch::<test_visit_nearest>(num_blocks, (visits, ids.slice_mut())) }
        })
        .unwrap();
        let all = Queries::SelfQuery { include_self: false };
        let expected = tree.nearest_with(all, 5, &QueryOptions::default()).unwrap();
        assert_eq!(ids.to_vec(stream).unwrap(), expected.ids());
        // No queries, no launch; options of another tree; queries that are not whole points.
        let empty = Buffer::<f32>::from_slice(stream, &[], "queries").unwrap();
        let never = |_, _: kauri_kernels::query::visit::Visits<'_, f32>| unreachable!("there are no queries");
        tree.visit_on(stream, workspace, DeviceQueries::Coordinates(&empty), &prepared, never).unwrap();
        let other = KdTree::build(&device, &points, &KdTreeOptions::default()).unwrap();
        let refused = other.visit_on(stream, workspace, own, &prepared, never);
        assert!(matches!(refused, Err(Error::OtherTree)), "{refused:?}");
        let odd = Buffer::from_slice(stream, &[0.0_f32; 4], "queries").unwrap();
        let refused = tree.visit_on(stream, workspace, DeviceQueries::Coordinates(&odd), &prepared, never);
        assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    });
}

#[test]
fn a_tree_on_the_cpu_has_no_visits_by_kernels() {
    let tree = Quadtree::build(&kauri::Device::cpu(), &[[0.0_f32; 2]], &QuadtreeOptions::default()).unwrap();
    on_each_gpu(|_, stream| {
        let prepared = tree.prepare(stream, &QueryOptions::default());
        assert!(matches!(prepared, Err(Error::NotOnGpu)));
    });
}
