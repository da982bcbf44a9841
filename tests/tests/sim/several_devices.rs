//! Joins and quadtrees whose parts several simulated devices take in turn, against one device.

use kauri::device::{Device, FaultCall, FaultPlan, SimOptions};
use kauri::join::{Scored, SelfPairs, Strategy, TopKDistanceJoin};
use kauri::{DistanceJoin, Error, LonLat, Point, Quadtree, QuadtreeOptions, Result};
use kauri_tests::generate::Shape;

/// Returns `count` separate devices, each under a different standard schedule, the first one with a limit of memory.
fn separate(count: usize, limit: u64) -> Vec<Device> {
    let open = |i: usize| Device::sim(SimOptions::nth_order(i, 3)).unwrap();
    let limit = |i: usize| if i == 0 { limit } else { u64::MAX };
    (0..count).map(|i| Device::from_gpu(open(i).gpu().unwrap().with_memory_limit(limit(i)))).collect()
}

/// Joins two sets of points with scores.
fn best<P: Point<Coord = f32>>(
    sets: [&[P]; 2],
    strategy: Strategy,
    run: impl Fn(&TopKDistanceJoin<f32>, [Scored<'_, P, i64>; 2]) -> Result<kauri::join::TopPairs>,
) -> Result<Vec<kauri::join::ScoredPair>> {
    let scores = sets.map(|set| (0..set.len()).map(|i| (i * 7919 % 97) as i64 - 40).collect::<Vec<_>>());
    let sets = [0, 1].map(|i| Scored::new(sets[i], &scores[i]).unwrap());
    let join = TopKDistanceJoin::new(0.05, 30).strategy(strategy);
    run(&join, sets).map(kauri::join::TopPairs::into_pairs)
}

#[test]
fn best_pairs_of_parts() {
    for (count, lens) in [(2, [120, 90]), (3, [2, 200]), (4, [80, 80]), (2, [0, 5])] {
        let devices = separate(count, 600_000);
        for (i, shape) in [Shape::Uniform, Shape::AllEqual].into_iter().enumerate() {
            let sets = [0, 1].map(|set| shape.points::<f32, 2>(lens[set], (i + set) as u64));
            let sets = sets.each_ref().map(|set| &set[..]);
            for strategy in [Strategy::Threshold, Strategy::Cells] {
                let expected = best(sets, strategy, |join, [a, b]| join.run(&Device::cpu(), a, b)).unwrap();
                // Sets that fit in the memory of each device, and sets that are cut into slabs.
                let in_slabs = best(sets, strategy, |join, [a, b]| {
                    join.clone().device_bytes(0).run_over(&devices, a, b)
                });
                assert!(in_slabs.unwrap() == expected, "slabs, {shape:?}, {strategy:?}, {count} devices");
                let found = best(sets, strategy, |join, [a, b]| join.run_over(&devices, a, b)).unwrap();
                assert!(found == expected, "{shape:?}, {strategy:?}, {count} devices");
            }
        }
    }
}

fn same_counts<P: Point<Coord = C>, C>(devices: &[Device], join: &DistanceJoin<C>, sets: [&[P]; 2])
where
    C: kauri_kernels::thread::coord::Float,
{
    let [left, right] = sets;
    let cpu = Device::cpu();
    let what = format!("{} and {} points, {} devices", left.len(), right.len(), devices.len());
    assert_eq!(
        join.count_over(devices, left, right).unwrap(),
        join.count(&cpu, left, right).unwrap(),
        "{what}"
    );
    for pairs in [SelfPairs::Once, SelfPairs::Both] {
        let expected = join.self_count(&cpu, left, pairs).unwrap();
        assert_eq!(join.self_count_over(devices, left, pairs).unwrap(), expected, "{what}");
    }
}

#[test]
fn counts_of_parts() {
    for (count, shape) in
        [(1, Shape::Uniform), (2, Shape::Clustered), (3, Shape::AllEqual), (4, Shape::Lattice)]
    {
        let devices = separate(count, 600_000);
        for lens in [[150, 70], [1, 90], [70, 0]] {
            let sets = [0, 1].map(|set| shape.points::<f32, 2>(lens[set], set as u64));
            for epsilon in [0.0, 0.04] {
                same_counts(&devices, &DistanceJoin::new(epsilon), sets.each_ref().map(|set| &set[..]));
            }
        }
    }
    let places: Vec<_> = (0..90).map(|i| LonLat::new(f64::from(i % 40) - 20.0, f64::from(i / 7))).collect();
    same_counts(&separate(3, u64::MAX), &DistanceJoin::new(150_000.0), [&places, &places[30..60]]);
}

/// The first device has too little memory for all points, so there are many parts.
const LITTLE: u64 = 250_000;

#[test]
fn quadtrees_of_parts() {
    for (count, shape, n) in [
        (1, Shape::Uniform, 700),
        (2, Shape::Clustered, 1500),
        (3, Shape::Lattice, 1900),
        (4, Shape::AllEqual, 1),
    ] {
        let devices = separate(count, LITTLE);
        let points = shape.points::<f32, 2>(n, 4);
        let options = QuadtreeOptions::default().leaf_points(5);
        let expected = Quadtree::build(&Device::cpu(), &points, &options).unwrap();
        let tree = Quadtree::build_over(&devices, &points, &options).unwrap();
        assert_eq!(tree.nodes().unwrap(), expected.nodes().unwrap(), "{shape:?}, {count} devices");
        assert_eq!(tree.ids().unwrap(), expected.ids().unwrap(), "{shape:?}, {count} devices");
        tree.verify().unwrap();
    }
}

#[test]
fn invalid_lists_of_devices_are_refused() {
    let (points, join) = ([[1.0f32, 2.0]], DistanceJoin::new(1.0));
    let refused = |devices: &[Device]| join.count_over(devices, &points, &points).unwrap_err();
    assert!(matches!(refused(&[]), Error::Shape { expected: 1, got: 0, .. }));
    assert!(matches!(refused(&[Device::cpu()]), Error::NotOnGpu));
    let quadtree = Quadtree::build_over(&[], &points, &QuadtreeOptions::default());
    assert!(matches!(quadtree.unwrap_err(), Error::Shape { .. }));
    assert!(matches!(
        best([&points; 2], Strategy::Cells, |join, [a, b]| join.run_over(&[], a, b)),
        Err(Error::Shape { .. })
    ));
}

/// All calls of one of three devices fail from some call on. The error is typed, nothing leaks, and the others remain usable.
fn one_may_be_lost(limit: u64, work: impl Fn(&[Device]) -> Result<u64>) {
    let devices = separate(3, u64::MAX);
    let expected = work(&devices).unwrap();
    let mut failures = 0;
    for nth in [1, 3, 11, 40] {
        let faults = FaultPlan { call: FaultCall::Any, nth, repeat: true };
        let limited = |device: &Device| device.gpu().unwrap().with_memory_limit(limit);
        let gpus: Vec<_> = devices.iter().map(limited).collect();
        let mut with_lost: Vec<_> = gpus.iter().cloned().map(Device::from_gpu).collect();
        with_lost[1] = Device::from_gpu(gpus[1].with_faults(faults));
        match work(&with_lost) {
            Ok(found) => assert_eq!(found, expected),
            Err(Error::OutOfMemory { .. } | Error::Driver { name: "INJECTED", .. }) => failures += 1,
            Err(error) => panic!("call {nth}: {error}"),
        }
        assert!(gpus.iter().all(|gpu| gpu.memory_use().live_bytes == 0), "call {nth}");
    }
    assert!(failures > 0, "no part was on the device that was lost");
    assert_eq!(work(&devices).unwrap(), expected);
}

#[test]
fn a_device_of_a_join_is_lost() {
    let points = Shape::Uniform.points::<f32, 2>(300, 3);
    one_may_be_lost(u64::MAX, |devices| DistanceJoin::new(0.02).count_over(devices, &points, &points));
    one_may_be_lost(u64::MAX, |devices| {
        let pairs = best([&points; 2], Strategy::Cells, |join, [a, b]| join.run_over(devices, a, b))?;
        Ok(pairs.len() as u64)
    });
}

#[test]
fn a_device_of_a_quadtree_is_lost() {
    let points = Shape::Uniform.points::<f32, 2>(2500, 3);
    one_may_be_lost(LITTLE, |devices| {
        let tree = Quadtree::build_over(devices, &points, &QuadtreeOptions::default().leaf_points(9))?;
        Ok(tree.num_nodes() as u64)
    });
}
