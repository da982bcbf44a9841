//! Balanced k-d trees on several simulated devices with separate memories, against the CPU.

use crate::{noise, on_each_schedule, upload};
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::device::{Device, Gpu, SimOptions, Stream};
use kauri::query::{Norm, PointMask, Queries, QueryOptions};
use kauri::research::balanced::BuildAlgorithm;
use kauri::{Batches, Error, LonLat, Point, SpatialIndex};
use kauri_kernels::balanced::multi_gpu::balanced_verify_sides;
use std::ops::ControlFlow;

fn points<C, const D: usize>(n: usize, values: u64, coord: impl Fn(u64) -> C) -> Vec<[C; D]> {
    let numbers = noise(n * D, n as u64);
    numbers.chunks(D).map(|c| std::array::from_fn(|axis| coord(c[axis] % values))).collect()
}

/// Returns `count` separate devices, each under a different standard schedule.
fn separate(count: usize) -> Vec<Device> {
    (0..count).map(|i| Device::sim(SimOptions::nth_order(i, 3)).unwrap()).collect()
}

/// Returns the devices without peer access.
fn apart(devices: &[Device]) -> Vec<Device> {
    devices.iter().map(|device| Device::from_gpu(device.gpu().unwrap().without_peer_copies())).collect()
}

/// Builds on the devices with both algorithms, and compares with the tree of the CPU.
fn same_as_on_the_cpu<P: Point>(devices: &[Device], points: &[P]) {
    let expected = BalancedKdTree::build(&Device::cpu(), points, &BalancedOptions::default()).unwrap();
    for algorithm in [BuildAlgorithm::Paths, BuildAlgorithm::Robinson] {
        let options = BalancedOptions::default().algorithm(algorithm).warps(16);
        let what = format!("{} points over {} devices, {algorithm:?}", points.len(), devices.len());
        let tree =
            BalancedKdTree::build_over(devices, points, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(tree.len(), expected.len(), "{what}");
        assert_eq!(tree.medians().unwrap(), expected.medians().unwrap(), "{what}");
        assert_eq!(tree.nodes().unwrap(), expected.nodes().unwrap(), "{what}");
        assert_eq!(tree.removed().unwrap(), expected.removed().unwrap(), "{what}");
        tree.verify().unwrap_or_else(|e| panic!("{what}: {e}"));
    }
}

#[test]
fn few_points() {
    for count in 1..=4 {
        let devices = separate(count);
        for n in [0, 1, 2, 3, 4, 5, 7, 12] {
            same_as_on_the_cpu(&devices, &points::<f32, 2>(n, 100, |x| x as f32));
        }
        same_as_on_the_cpu(&devices, &[[1.0f64]; 5]);
        same_as_on_the_cpu(&devices, &[[0.0f32, -0.0], [-0.0, 0.0], [0.0, 0.0]]);
    }
}

#[test]
fn every_arrangement_of_points() {
    for count in [1, 2, 3, 4] {
        let devices = separate(count);
        same_as_on_the_cpu(&devices, &points::<f32, 2>(301, 1 << 20, |x| x as f32));
        // Many equal coordinates, and many equal points.
        same_as_on_the_cpu(&devices, &points::<f32, 3>(150, 4, |x| x as f32 - 1.0));
        same_as_on_the_cpu(&devices, &points::<f64, 1>(97, 9, |x| x as f64));
        same_as_on_the_cpu(&devices, &[[3.0f32, 1.0]; 70]);
        // Sorted points, which need not move at first, and points in reverse order, which all move.
        let sorted: Vec<_> = (0..130).map(|x| [x as f32, (x % 7) as f32]).collect();
        same_as_on_the_cpu(&devices, &sorted);
        let falling: Vec<_> = sorted.iter().rev().copied().collect();
        same_as_on_the_cpu(&devices, &falling);
        // Chunks that interleave with and equal others.
        let twice = [&sorted[..], &sorted].concat();
        same_as_on_the_cpu(&devices, &twice);
    }
}

#[test]
fn subtrees_of_every_size() {
    // Subtrees in shared memory below other levels of a part, more points than samples, and merges of several tiles.
    let devices = separate(2);
    let options = BalancedOptions::default();
    let points = points::<f32, 3>(4300, 1 << 20, |x| x as f32);
    let expected = BalancedKdTree::build(&Device::cpu(), &points, &options).unwrap();
    let tree = BalancedKdTree::build_over(&devices, &points, &options).unwrap();
    assert_eq!(tree.medians().unwrap(), expected.medians().unwrap());
    tree.verify().unwrap();
}

/// More points than the host selects among: devices count digits of the first coordinate.
#[test]
fn medians_by_selection() {
    for count in [2, 3, 4] {
        let devices = separate(count);
        let mut many = points::<f32, 2>(6000, 1 << 20, |x| x as f32 - 300_000.0);
        same_as_on_the_cpu(&devices, &many);
        // The median twice, and another point twice.
        let sorted = BalancedKdTree::build(&Device::cpu(), &many, &BalancedOptions::default()).unwrap();
        let median = many[sorted.medians().unwrap()[0] as usize];
        many.push(median);
        same_as_on_the_cpu(&devices, &many);
        many[5000] = many[1];
        same_as_on_the_cpu(&devices, &many);
    }
    let devices = separate(2);
    // Many points with the first coordinate of the median, of which the host can take some, but not all.
    for column in [900, 3000] {
        let points: Vec<_> = (0..5000u32)
            .map(|i| [if i % 5000 < column { 7.5 } else { f64::from(i % 13) }, f64::from(i * 7919 % 10_007)])
            .collect();
        same_as_on_the_cpu(&devices, &points);
    }
    same_as_on_the_cpu(&devices, &points::<i64, 3>(4100, 1 << 40, |x| x as i64 - (1 << 39)));
}

#[test]
fn all_dimensions_and_types() {
    let devices = separate(3);
    kauri_tests::for_each_dims!(D => same_as_on_the_cpu(&devices, &points::<f32, D>(40, 1 << 20, |x| x as f32)));
    same_as_on_the_cpu(&devices, &points::<f64, 5>(37, 3, |x| x as f64));
    same_as_on_the_cpu(&devices, &points::<i64, 3>(41, 50, |x| x as i64 - 25));
    same_as_on_the_cpu(&devices, &points::<i32, 2>(41, 50, |x| x as i32 - 25));
    let places: Vec<_> =
        points::<f64, 2>(30, 90, |x| x as f64).iter().map(|p| LonLat::new(p[0], p[1])).collect();
    same_as_on_the_cpu(&devices, &places);
}

#[test]
fn the_most_parts() {
    for count in [5, 8] {
        same_as_on_the_cpu(&separate(count), &points::<f32, 2>(90, 1 << 20, |x| x as f32));
    }
    // One device for all parts, and for some of them.
    let device = &separate(1)[0];
    same_as_on_the_cpu(&[device, device, device].map(Device::clone), &points::<f32, 2>(90, 60, |x| x as f32));
    let other = &separate(1)[0];
    same_as_on_the_cpu(
        &[device, other, device, other].map(Device::clone),
        &points::<f32, 2>(90, 8, |x| x as f32),
    );
}

#[test]
fn devices_without_peer_access() {
    for count in [2, 3] {
        let devices = separate(count);
        same_as_on_the_cpu(&apart(&devices), &points::<f32, 2>(200, 12, |x| x as f32));
        // One device has peer access.
        let mixed = [&devices[..1], &apart(&devices[1..])].concat();
        same_as_on_the_cpu(&mixed, &points::<f64, 3>(60, 1 << 20, |x| x as f64));
    }
}

/// Compares the results of two trees for queries of all kinds, with all options.
fn compare_results(
    tree: &BalancedKdTree<[f32; 2]>,
    expected: &BalancedKdTree<[f32; 2]>,
    queries: &[[f32; 2]],
) {
    let mask = PointMask::from_fn(expected.num_points(), |id| id % 3 > 0).unwrap();
    let plain = QueryOptions::default;
    let around = plain().norm(Norm::Manhattan).periods([60.0, 0.0]);
    for options in [plain(), plain().mask(mask.clone()).radius(15.0), around] {
        let all = [
            Queries::Points(queries),
            Queries::SelfQuery { include_self: true },
            Queries::SelfQuery { include_self: false },
        ];
        for query_set in all {
            for k in [0, 1, 6, 300] {
                let near = |tree: &BalancedKdTree<_>| {
                    tree.nearest_with(query_set, k, &options).unwrap().into_parts()
                };
                assert!(near(tree) == near(expected), "k = {k}, {options:?}");
            }
            let counts = |tree: &BalancedKdTree<_>| tree.count_within(query_set, 9.0, &options).unwrap();
            assert_eq!(counts(tree), counts(expected), "{options:?}");
            for options in [options.clone(), options.clone().sorted()] {
                let within =
                    |tree: &BalancedKdTree<_>| tree.within(query_set, 9.0, &options).unwrap().into_parts();
                assert!(within(tree) == within(expected), "{options:?}");
            }
            let in_batches = |tree: &BalancedKdTree<_>| {
                let (mut rows, mut batches) = (Vec::new(), Batches::new().bytes(1800).rows(60));
                tree.within_batches(query_set, 9.0, &options, &mut batches, |batch| {
                    rows.extend(
                        batch
                            .rows()
                            .map(|row| (batch.row(row).ids().to_vec(), batch.row(row).dist2().to_vec())),
                    );
                    ControlFlow::Continue(())
                })
                .unwrap();
                tree.nearest_batches(query_set, 3, &options, &mut batches, |batch| {
                    rows.extend(
                        batch
                            .rows()
                            .map(|row| (batch.padded_row(row).0.to_vec(), batch.padded_row(row).1.to_vec())),
                    );
                    ControlFlow::Continue(())
                })
                .unwrap();
                rows
            };
            assert!(in_batches(tree) == in_batches(expected), "{options:?}");
        }
    }
    let boxes: Vec<_> = queries.iter().map(|&low| [low, low.map(|x| x + 7.0)]).collect();
    for mask in [None, Some(&mask)] {
        let inside = |tree: &BalancedKdTree<_>| {
            (tree.count_in_boxes(&boxes, mask).unwrap(), tree.in_boxes(&boxes, mask).unwrap().into_parts())
        };
        assert!(inside(tree) == inside(expected));
    }
    let far = tree.nearest_with(&[[500.0, 0.0]], 1, &plain().periods([60.0, 60.0])).unwrap_err();
    assert!(matches!(far, Error::BeyondPeriod { index: 0, axis: 0, .. }), "{far}");
}

#[test]
fn queries_use_all_devices() {
    let points = points::<f32, 2>(150, 50, |x| x as f32);
    let queries = self::points::<f32, 2>(20, 50, |x| x as f32);
    let options = BalancedOptions::default();
    let expected = BalancedKdTree::build(&Device::cpu(), &points, &options).unwrap();
    assert!(expected.len() < points.len(), "some are equal");
    let tree = BalancedKdTree::build_over(&separate(3), &points, &options).unwrap();
    compare_results(&tree, &expected, &queries);
    // Some parts have no points, or all parts have none.
    for n in [0, 1, 2, 5, 150] {
        let expected = BalancedKdTree::build(&Device::cpu(), &points[..n], &options).unwrap();
        let tree = BalancedKdTree::build_over(&separate(4), &points[..n], &options).unwrap();
        let near = |tree: &BalancedKdTree<_>| tree.nearest(&queries, 3).unwrap().into_parts();
        assert!(near(&tree) == near(&expected), "{n} points");
    }
}

/// Files store the points by id with unrotated columns, whatever the level of their part.
#[test]
fn files_equal_those_of_one_device() {
    let points = points::<f32, 3>(70, 5, |x| x as f32);
    let bytes = |tree: &BalancedKdTree<[f32; 3]>| {
        let mut bytes = Vec::new();
        tree.write_to(&mut bytes).unwrap();
        bytes
    };
    let options = BalancedOptions::default();
    let expected = bytes(&BalancedKdTree::build(&Device::cpu(), &points, &options).unwrap());
    for count in [1, 3, 4] {
        let devices = separate(count);
        let found = bytes(&BalancedKdTree::build_over(&devices, &points, &options).unwrap());
        assert!(found == expected, "{count} devices");
        BalancedKdTree::<[f32; 3]>::read_from(&devices[0], &*found).unwrap().verify().unwrap();
    }
}

#[test]
fn invalid_lists_of_devices_are_refused() {
    let points = [[1.0f32, 2.0]];
    let options = BalancedOptions::default();
    let refused = |devices: &[Device]| BalancedKdTree::build_over(devices, &points, &options).unwrap_err();
    assert!(matches!(refused(&[]), Error::Shape { expected: 1, got: 0, .. }));
    assert!(matches!(refused(&[Device::cpu()]), Error::NotOnGpu));
    let sim = separate(1).remove(0);
    assert!(matches!(refused(&[sim.clone(), Device::cpu()]), Error::NotOnGpu));
    assert!(matches!(refused(&vec![sim.clone(); 9]), Error::TooManyItems { count: 9, max: 8, .. }));
    let bad = [[1.0f32, 0.0], [f32::NAN, 1.0]];
    let error = BalancedKdTree::build_over(&[sim], &bad, &options).unwrap_err();
    assert!(matches!(error, Error::NonFinite { index: 1, axis: 0, .. }), "{error}");
}

#[test]
fn memory_is_freed() {
    let devices = separate(3);
    let points = points::<f32, 2>(100, 40, |x| x as f32);
    let gpus: Vec<Gpu> = devices.iter().map(|device| device.gpu().unwrap().clone()).collect();
    let tree = BalancedKdTree::build_over(&devices, &points, &BalancedOptions::default()).unwrap();
    assert_eq!(tree.devices().len(), 3);
    for name in ["init", "sort", "dedupe", "exchange", "partition"] {
        assert!(tree.stats().phases.iter().any(|phase| phase.name == name), "{name}");
    }
    assert!(gpus.iter().all(|gpu| gpu.memory_use().live_bytes > 0));
    drop(tree);
    assert!(gpus.iter().all(|gpu| gpu.memory_use().live_bytes == 0));
}

#[test]
fn memory_is_planned() {
    if std::env::var_os("KAURI_ALLOC").is_some() {
        return; // every region by itself takes less than the plan
    }
    let points = points::<f32, 2>(2000, 1 << 20, |x| x as f32);
    for algorithm in [BuildAlgorithm::Paths, BuildAlgorithm::Robinson] {
        let options = BalancedOptions::default().algorithm(algorithm);
        for count in [2, 3, 4] {
            let plan = BalancedKdTree::<[f32; 2]>::plan_over(count, points.len(), &options);
            let devices = separate(count);
            let tree = BalancedKdTree::build_over(&devices, &points, &options).unwrap();
            let temp_bytes = tree.stats().temp_bytes;
            assert!(temp_bytes > 0 && temp_bytes <= plan.temp_bytes, "{temp_bytes} bytes, {plan:?}");
            for device in &devices {
                let used = device.gpu().unwrap().memory_use();
                assert!(used.live_bytes <= plan.tree_bytes, "{used:?}, {plan:?}");
                // Plus a few words beyond the plan.
                assert!(used.peak_bytes <= plan.tree_bytes + plan.temp_bytes + 64, "{used:?}, {plan:?}");
            }
        }
    }
}

/// The kernel finds the first point of a part that is on the wrong side of an ancestor: of the root, or of the root's child.
#[test]
fn points_on_the_wrong_side_are_found() {
    let root = [5.0f32, 3.0];
    let child = [4.0, 1.0];
    let found = |stream: &Stream, address: u32, coords: &[f32]| {
        let (coords, ancestors) = (upload(stream, coords), upload(stream, &[root, child].concat()));
        let mut finding = upload(stream, &[u64::MAX]);
        // The part is on level 2 of a tree of two dimensions, so its columns are those of level 0: the root splits on the first column, its
        // child on the second.
        let args = (coords.slice(), 2, ancestors.slice(), 2, address, finding.slice_mut());
        // SAFETY: the buffers live until the finding has been copied.
        unsafe { stream.launch_items::<balanced_verify_sides<f32>>(coords.len() as u64 / 2, args) }.unwrap();
        let finding = finding.to_vec(stream).unwrap()[0];
        (finding != u64::MAX).then_some(finding)
    };
    on_each_schedule(|_, stream| {
        // Less than the root on the first column, and less than the child on the second.
        assert_eq!(found(stream, 0, &[4.0, 0.0, 5.0, 0.5, 3.0, 1.0]), None);
        assert_eq!(found(stream, 0, &[4.0, 0.0, 6.0, 0.0]), Some(1));
        assert_eq!(found(stream, 0, &[4.0, 0.0, 5.0, 3.0]), Some(1));
        // Equal to the child, and, with equal second columns, after it.
        assert_eq!(found(stream, 0, &[4.0, 1.0]), Some(0));
        assert_eq!(found(stream, 0, &[4.5, 1.0]), Some(0));
        assert_eq!(found(stream, 1, &[4.5, 1.0, 4.0, 1.0]), Some(1));
        assert_eq!(found(stream, 1, &[3.0, 2.0, 5.0, 2.0]), None);
        // Greater than the root.
        assert_eq!(found(stream, 3, &[5.0, 4.0, 6.0, 2.0]), None);
        assert_eq!(found(stream, 3, &[5.0, 4.0, 5.0, 2.0]), Some(1));
    });
}
