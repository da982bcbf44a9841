//! Every driver call fails once, alone and together with all later calls. The error is typed, no memory leaks, and every
//! object remains usable.

use crate::{noise, on_cuda};
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::device::{Buffer, Device, FaultCall, FaultPlan, Gpu, SimOptions, Stream, Workspace};
use kauri::join::{DistanceJoin, KnnIndex, KnnJoin, Scored, Strategy, TopKDistanceJoin};
use kauri::kdtree::BuildAlgorithm;
use kauri::mesh::{Mesh, Motion, shapes};
use kauri::primitives::radix_sort::{
    RadixSortOptions, {self},
};
use kauri::primitives::segmented_sort;
use kauri::quadtree::{OutOfCore, Quadtree, QuadtreeOptions};
use kauri::query::{DeviceIndex, DeviceQueries, Norm, PointMask, Queries, QueryOptions};
use kauri::rays::{Ray, RayIndex, RayOptions};
use kauri::render::{Camera, Frames, RenderOptions};
use kauri::research::balanced;
use kauri::sah::{Quality, SahOptions, SahTree};
use kauri::{Batches, Bvh, Error, KdTree, KdTreeOptions, Point, RTree, Result, SpatialIndex, research};
use kauri_test::Share;
use kauri_tests::rays::Resident;
use std::cell::Cell;
use std::ops::ControlFlow;

const CALLS: [FaultCall; 6] = [
    FaultCall::Alloc,
    FaultCall::Copy,
    FaultCall::Launch,
    FaultCall::Synchronize,
    FaultCall::LoadModule,
    FaultCall::Any,
];

fn points(n: usize) -> Vec<[f32; 2]> {
    noise(2 * n, 51).chunks(2).map(|c| [(c[0] % 1000) as f32, (c[1] % 1000) as f32]).collect()
}

/// Returns true for an error that a fault may cause.
fn is_expected(error: &Error) -> bool {
    matches!(
        error,
        Error::OutOfMemory { .. } | Error::ResultTooLarge { .. } | Error::Driver { name: "INJECTED", .. }
    )
}

/// Builds and queries a tree on a device with faults. Returns true if no call failed.
fn survives<P: Point>(gpu: &Gpu, points: &[P], algorithm: BuildAlgorithm, plan: FaultPlan) -> bool {
    let expected = KdTree::build(&Device::cpu(), points, &KdTreeOptions::default()).unwrap();
    let near = expected.nearest(&points[..5], 4).unwrap();

    let faulty = gpu.with_faults(plan);
    let device = Device::from_gpu(faulty.clone());
    let mut no_call_failed = true;
    match KdTree::build(&device, points, &KdTreeOptions::default().algorithm(algorithm)) {
        Err(error) => {
            assert!(is_expected(&error), "{plan:?}: {error}");
            assert_eq!(faulty.memory_use().live_bytes, 0, "{plan:?}: {error}");
            no_call_failed = false;
        }
        Ok(tree) => {
            let held = faulty.memory_use().live_bytes;
            for _ in 0..2 {
                match tree.nearest(&points[..5], 4) {
                    Ok(found) => assert_eq!(found.ids(), near.ids(), "{plan:?}"),
                    Err(error) => {
                        assert!(is_expected(&error), "{plan:?}: {error}");
                        no_call_failed = false;
                    }
                }
                assert_eq!(faulty.memory_use().live_bytes, held, "{plan:?}");
            }
            match tree.verify() {
                Ok(()) => {}
                Err(error) => {
                    assert!(is_expected(&error), "{plan:?}: {error}");
                    no_call_failed = false;
                }
            }
            drop(tree);
        }
    }
    assert_eq!(faulty.memory_use().live_bytes, 0, "{plan:?}");
    no_call_failed
}

/// Builds and queries a balanced tree on a device with faults. Its first query computes the bucket index. Returns true if no
/// call failed.
fn balanced_survives<P: Point>(
    gpu: &Gpu,
    points: &[P],
    algorithm: balanced::BuildAlgorithm,
    plan: FaultPlan,
) -> bool {
    let options = BalancedOptions::default().algorithm(algorithm);
    let expected = BalancedKdTree::build(&Device::cpu(), points, &options).unwrap();
    let near = expected.nearest(&points[..5], 4).unwrap();

    let faulty = gpu.with_faults(plan);
    let mut no_call_failed = true;
    match BalancedKdTree::build(&Device::from_gpu(faulty.clone()), points, &options) {
        Err(error) => {
            assert!(is_expected(&error), "{plan:?}: {error}");
            no_call_failed = false;
        }
        Ok(tree) => {
            for _ in 0..2 {
                match tree.nearest(&points[..5], 4) {
                    Ok(found) => assert_eq!(found.ids(), near.ids(), "{plan:?}"),
                    Err(error) => {
                        assert!(is_expected(&error), "{plan:?}: {error}");
                        no_call_failed = false;
                    }
                }
            }
        }
    }
    assert_eq!(faulty.memory_use().live_bytes, 0, "{plan:?}");
    no_call_failed
}

/// Builds, queries and rebuilds a balanced tree on the caller's stream, with faults. After an error a rebuild without one makes the tree
/// usable. Returns true if no call failed.
fn balanced_on_device_survives<P: Point>(
    gpu: &Gpu,
    points: &[P],
    algorithm: balanced::BuildAlgorithm,
    plan: FaultPlan,
) -> bool {
    let options = BalancedOptions::default().algorithm(algorithm);
    let faulty = gpu.with_faults(plan);
    let run = || -> Result<Option<Error>> {
        let (stream, mut workspace) = (Stream::new(&faulty)?, Workspace::new(&faulty));
        let upload = |points: &[P]| Buffer::from_slice(&stream, &P::coordinates(points, "point")?, "points");
        let (coords, all_equal) = (upload(points)?, upload(&vec![points[0]; points.len()])?);
        let mut tree = BalancedKdTree::<P>::build_on(&stream, &mut workspace, &coords, &options)?;
        let prepared = tree.prepare(&stream, &QueryOptions::default())?;
        let mut ids = Buffer::uninitialized(&faulty, 2 * points.len(), "ids")?;
        let mut dist2 = Buffer::uninitialized(&faulty, 2 * points.len(), "distances")?;
        let own = DeviceQueries::SelfQuery { include_self: true };
        let mut first_error = None;
        for coords in [&all_equal, &coords, &coords] {
            let rebuilt = tree.rebuild_on(&stream, &mut workspace, coords, &options);
            // After an error there are no neighbors.
            let found = tree.nearest_on(&stream, &mut workspace, own, 2, &prepared, &mut ids, &mut dist2);
            first_error = first_error.or(rebuilt.and(found).err());
        }
        if !plan.repeat && first_error.is_some() {
            // The call that fails is over.
            tree.rebuild_on(&stream, &mut workspace, &coords, &options)?;
            tree.nearest_on(&stream, &mut workspace, own, 2, &prepared, &mut ids, &mut dist2)?;
        }
        if !plan.repeat || first_error.is_none() {
            let expected = BalancedKdTree::build(&Device::cpu(), points, &options)?;
            let own = Queries::SelfQuery { include_self: true };
            let near = expected.nearest_with(own, 2, &QueryOptions::default())?;
            assert_eq!(ids.to_vec(&stream)?, near.ids(), "{plan:?}");
            assert_eq!(tree.medians()?, expected.medians()?, "{plan:?}");
            tree.verify()?;
        }
        Ok(first_error)
    };
    let error = run().unwrap_or_else(Some);
    assert!(error.as_ref().is_none_or(is_expected), "{plan:?}: {error:?}");
    assert_eq!(faulty.memory_use().live_bytes, 0, "{plan:?}");
    error.is_none()
}

/// Builds a tree in the memory of its points, with faults. After an error the buffer has its memory, and the points if nothing was
/// launched. Returns true if no call failed.
fn in_place_survives(gpu: &Gpu, points: &[[f32; 2]], plan: FaultPlan) -> bool {
    type Tree = KdTree<[f32; 2]>;
    let (faulty, options) = (gpu.with_faults(plan), KdTreeOptions::default());
    let run = || -> Result<Option<Error>> {
        let (stream, mut workspace) = (Stream::new(&faulty)?, Workspace::new(&faulty));
        let mut items = points.as_flattened().to_vec();
        items.resize(Tree::padded_len(points.len()), 7.0);
        let mut coords = Buffer::from_slice(&stream, &items, "points")?;
        let address = coords.as_raw();
        match Tree::build_in_place_on(&stream, &mut workspace, &mut coords, points.len(), &options) {
            Ok(tree) => {
                assert!(coords.is_empty());
                let expected = KdTree::build(&Device::cpu(), points, &options)?;
                assert_eq!(tree.node_ids()?, expected.node_ids()?, "{plan:?}");
                Ok(None)
            }
            Err(error) => {
                assert!(coords.as_raw() == address && coords.len() == items.len(), "{plan:?}: {error}");
                if matches!(error, Error::OutOfMemory { .. }) {
                    assert_eq!(coords.to_vec(&stream)?, items, "{plan:?}");
                }
                Ok(Some(error))
            }
        }
    };
    let error = run().unwrap_or_else(Some);
    assert!(error.as_ref().is_none_or(is_expected), "{plan:?}: {error:?}");
    assert_eq!(faulty.memory_use().live_bytes, 0, "{plan:?}");
    error.is_none()
}

fn every_call_may_fail<P: Point>(gpu: &Gpu, points: &[P], algorithm: BuildAlgorithm) {
    each_call_fails(|plan| survives(gpu, points, algorithm, plan));
}

/// Lets each call of each kind fail, one plan after another, until `survives` returns true: no call is left.
fn each_call_fails(survives: impl Fn(FaultPlan) -> bool) {
    each_call_of_fails(&CALLS, survives);
}

/// Like [`each_call_fails`], without [`FaultCall::Any`]: for work that continues after a failed allocation.
fn each_call_of_one_kind_fails(survives: impl Fn(FaultPlan) -> bool) {
    each_call_of_fails(&CALLS[..5], survives);
}

/// Every second call only, in a run for one change.
fn each_call_of_fails(calls: &[FaultCall], survives: impl Fn(FaultPlan) -> bool) {
    let Share { step, first } = Share::of_this_run();
    let first = 1 + first as u64 % step as u64;
    for &call in calls {
        for repeat in [false, true] {
            let mut nth = first;
            while !survives(FaultPlan { call, nth, repeat }) {
                nth += step as u64;
                assert!(nth < 2000, "{call:?} never stops failing");
            }
            // Modules may have been loaded before; everything else is called at least once.
            assert!(nth > 1 || call == FaultCall::LoadModule, "{call:?} was never called");
        }
    }
    // The device remains usable.
    assert!(survives(FaultPlan { call: FaultCall::Any, nth: u64::MAX, repeat: false }));
}

/// Eight threads need one module. Its second load would fail.
#[test]
fn threads_load_a_module_once() {
    let load_once = FaultPlan { call: FaultCall::LoadModule, nth: 2, repeat: false };
    let gpu = Device::sim(SimOptions::default()).unwrap().gpu().unwrap().with_faults(load_once);
    let barrier = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let stream = Stream::new(&gpu).unwrap();
                let mut numbers = Buffer::<u32>::uninitialized(&gpu, 3, "numbers").unwrap();
                barrier.wait();
                kauri::primitives::generate::iota(&stream, 5, 1, &mut numbers).unwrap();
                assert_eq!(numbers.to_vec(&stream).unwrap(), [5, 6, 7]);
            });
        }
    });
}

#[test]
fn every_call_may_fail_on_a_gpu() {
    on_cuda(|gpu, _| every_call_may_fail(gpu, &points(3000), BuildAlgorithm::Selection));
    on_cuda(|gpu, _| every_call_may_fail(gpu, &points(3000), BuildAlgorithm::SelectionInPlace));
    on_cuda(|gpu, _| every_call_may_fail(gpu, &points(700), BuildAlgorithm::Tags));
}

#[test]
fn every_call_may_fail_on_a_simulated_device() {
    // The order of threads does not matter here, so one schedule suffices. Each call needs a run, so there are few points.
    let device = Device::sim(SimOptions::default()).unwrap();
    for algorithm in [
        BuildAlgorithm::Selection,
        BuildAlgorithm::SelectionInPlace,
        BuildAlgorithm::Tags,
        BuildAlgorithm::TagsInPlace,
    ] {
        every_call_may_fail(device.gpu().unwrap(), &[[3.0f32], [1.0], [4.0], [1.0], [5.0]], algorithm);
    }
}

#[test]
fn every_call_of_a_build_in_place_may_fail() {
    on_cuda(|gpu, _| each_call_fails(|plan| in_place_survives(gpu, &points(3000), plan)));
    let device = Device::sim(SimOptions::default()).unwrap();
    each_call_fails(|plan| in_place_survives(device.gpu().unwrap(), &points(5), plan));
}

#[test]
fn every_call_of_a_balanced_tree_may_fail() {
    let algorithms = [balanced::BuildAlgorithm::Paths, balanced::BuildAlgorithm::Robinson];
    on_cuda(|gpu, _| {
        for algorithm in algorithms {
            each_call_fails(|plan| balanced_survives(gpu, &points(3000), algorithm, plan));
            each_call_of_fails(&[FaultCall::Any], |plan| {
                balanced_on_device_survives(gpu, &points(3000), algorithm, plan)
            });
        }
    });
    let device = Device::sim(SimOptions::default()).unwrap();
    for algorithm in algorithms {
        let points = [[3.0f32], [1.0], [4.0], [1.0], [5.0]];
        each_call_fails(|plan| balanced_survives(device.gpu().unwrap(), &points, algorithm, plan));
        each_call_of_fails(&[FaultCall::Any], |plan| {
            balanced_on_device_survives(device.gpu().unwrap(), &points, algorithm, plan)
        });
    }
}

/// Inserts and removes points of an R-tree; a change with an error changes nothing.
fn rtree_survives(gpu: &Gpu, points: &[[f32; 2]], plan: FaultPlan) -> bool {
    let faulty = gpu.with_faults(plan);
    let run = || -> Result<Option<Error>> {
        let (first, more) = points.split_at(points.len() / 2);
        let mut tree = RTree::build(&Device::from_gpu(faulty.clone()), first)?;
        let (mut expected, mut first_error) = (RTree::build(&Device::cpu(), first)?, None);
        for is_insert in [true, false, true, false] {
            let some: Vec<u32> = expected.ids()?.into_iter().step_by(3).collect();
            let change = |tree: &mut RTree<[f32; 2]>| match is_insert {
                true => tree.insert(more).map(drop),
                false => tree.remove(&some),
            };
            match change(&mut tree) {
                Ok(()) => change(&mut expected)?,
                Err(error) => first_error = first_error.or(Some(error)),
            }
            match tree.nearest_with(OWN, 2, &QueryOptions::default()) {
                Ok(found) => {
                    let near = expected.nearest_with(OWN, 2, &QueryOptions::default())?;
                    assert_eq!(found.ids(), near.ids(), "{plan:?}");
                }
                Err(error) => first_error = first_error.or(Some(error)),
            }
            assert_eq!((tree.len(), tree.num_ids()), (expected.len(), expected.num_ids()), "{plan:?}");
        }
        Ok(first_error)
    };
    let error = run().unwrap_or_else(Some);
    assert!(error.as_ref().is_none_or(is_expected), "{plan:?}: {error:?}");
    assert_eq!(faulty.memory_use().live_bytes, 0, "{plan:?}");
    error.is_none()
}

#[test]
fn every_call_of_an_rtree_may_fail() {
    on_cuda(|gpu, _| each_call_of_fails(&[FaultCall::Any], |plan| rtree_survives(gpu, &points(3000), plan)));
    let device = Device::sim(SimOptions::default()).unwrap();
    each_call_of_fails(&[FaultCall::Any], |plan| rtree_survives(device.gpu().unwrap(), &points(50), plan));
}

/// All other points as queries.
const OWN: Queries<'static, [f32; 2]> = Queries::SelfQuery { include_self: false };

type Points = [[f32; 2]];

/// Runs a query, and returns the ids or the counts of its result.
type QueryCall = fn(&KdTree<[f32; 2]>, &Points) -> Result<Vec<u32>>;

/// The calls of every kind of query.
const QUERIES: [QueryCall; 6] = [
    |tree, queries| Ok(tree.nearest(queries, 4)?.into_parts().0),
    |tree, _| {
        let mask = PointMask::from_fn(tree.len(), |id| id % 3 != 0)?;
        let options = QueryOptions::default().norm(Norm::Manhattan).mask(mask);
        Ok(tree.nearest_with(Queries::SelfQuery { include_self: false }, 40, &options)?.into_parts().0)
    },
    |tree, queries| tree.count_within(queries, 200.0, &QueryOptions::default().periods([1000.0; 2])),
    |tree, queries| Ok(tree.within(queries, 200.0, &QueryOptions::default().sorted())?.ids().to_vec()),
    |tree, queries| tree.count_in_boxes(&boxes(queries), None),
    |tree, queries| Ok(tree.in_boxes(&boxes(queries), None)?.into_parts().1),
];

/// The calls of every kind of query in batches.
const BATCHED_QUERIES: [QueryCall; 4] = [
    |tree, queries| {
        let (mut ids, options) = (Vec::new(), QueryOptions::default());
        tree.nearest_batches(queries, 4, &options, &mut batches(tree), |batch| {
            append(&mut ids, batch.ids())
        })?;
        Ok(ids)
    },
    |tree, queries| {
        let (mut ids, options) = (Vec::new(), QueryOptions::default().sorted());
        tree.within_batches(queries, 200.0, &options, &mut batches(tree), |batch| {
            append(&mut ids, batch.ids())
        })?;
        Ok(ids)
    },
    |tree, _| {
        let (mut ids, queries) = (Vec::new(), Queries::SelfQuery { include_self: false });
        tree.within_batches(queries, 200.0, &QueryOptions::default(), &mut batches(tree), |batch| {
            append(&mut ids, batch.ids())
        })?;
        Ok(ids)
    },
    |tree, queries| {
        let mut ids = Vec::new();
        tree.in_boxes_batches(&boxes(queries), None, &mut batches(tree), |batch| {
            append(&mut ids, batch.ids())
        })?;
        Ok(ids)
    },
];

/// Returns options for at least three batches.
fn batches(tree: &KdTree<[f32; 2]>) -> Batches<'static> {
    Batches::new().rows(tree.len() / 3 + 1)
}

fn append(ids: &mut Vec<u32>, more: &[u32]) -> ControlFlow<()> {
    ids.extend_from_slice(more);
    ControlFlow::Continue(())
}

fn boxes(corners: &Points) -> Vec<[[f32; 2]; 2]> {
    corners.iter().map(|&low| [low, low.map(|x| x + 200.0)]).collect()
}

/// Runs each query twice on a device with faults. Returns true if no call failed.
fn queries_survive(gpu: &Gpu, points: &Points, calls: &[QueryCall], plan: FaultPlan) -> bool {
    let faulty = gpu.with_faults(plan);
    let Ok(tree) = KdTree::build(&Device::from_gpu(faulty.clone()), points, &KdTreeOptions::default()) else {
        return false; // tested by `survives`
    };
    let expected = KdTree::build(&Device::cpu(), points, &KdTreeOptions::default()).unwrap();
    let held = faulty.memory_use().live_bytes;
    let mut no_call_failed = true;
    for call in calls {
        let expected_result = call(&expected, points).unwrap();
        for _ in 0..2 {
            match call(&tree, points) {
                Ok(result) => assert!(result == expected_result, "{plan:?}"),
                Err(error) => {
                    assert!(is_expected(&error), "{plan:?}: {error}");
                    no_call_failed = false;
                }
            }
            assert_eq!(faulty.memory_use().live_bytes, held, "{plan:?}");
        }
    }
    no_call_failed
}

fn every_call_of_a_query_may_fail(gpu: &Gpu, points: &Points, calls: &[QueryCall]) {
    for repeat in [false, true] {
        let mut nth = 1;
        while !queries_survive(gpu, points, calls, FaultPlan { call: FaultCall::Any, nth, repeat }) {
            nth += 1;
            assert!(nth < 2000, "a call never stops failing");
        }
        assert!(nth > 16 * calls.len() as u64, "{nth} calls");
    }
}

#[test]
fn every_call_of_a_query_may_fail_on_a_gpu() {
    on_cuda(|gpu, _| every_call_of_a_query_may_fail(gpu, &points(3000), &QUERIES));
    on_cuda(|gpu, _| {
        for call in BATCHED_QUERIES {
            every_call_of_a_query_may_fail(gpu, &points(3000), &[call]);
        }
    });
}

#[test]
fn every_call_of_a_query_may_fail_on_a_simulated_device() {
    let device = Device::sim(SimOptions::default()).unwrap();
    every_call_of_a_query_may_fail(device.gpu().unwrap(), &points(20), &QUERIES);
    for call in BATCHED_QUERIES {
        every_call_of_a_query_may_fail(device.gpu().unwrap(), &points(10), &[call]);
    }
}

/// A join of a set with itself.
#[derive(Clone, Copy, Debug)]
enum Join {
    Best(Strategy),
    /// A large set is joined in parts.
    BestInParts,
    Rows,
    RowsInBatches,
    Nearest,
    Estimate,
}

/// Joins on a device with faults. Returns true if no call failed.
fn join_survives(gpu: &Gpu, points: &[[f32; 2]], join: Join, plan: FaultPlan) -> bool {
    let scores: Vec<u32> = (0..points.len() as u32).map(|i| i * 7919 % 1000).collect();
    let sets = Scored::new(points, &scores).unwrap();
    let best = TopKDistanceJoin::new(40.0, 3).best_points(points.len() / 2);
    let (all, nearest) = (DistanceJoin::new(40.0), KnnJoin::new(2).within(40.0));
    // The result of the join, as numbers.
    let found = |device: &Device| -> Result<Vec<u32>> {
        let ids = |best: &TopKDistanceJoin<f32>| {
            let found = best.run(device, sets, sets)?;
            Ok(found.pairs().iter().flat_map(|pair| [pair.left, pair.right]).collect())
        };
        match join {
            Join::Best(strategy) => ids(&best.clone().strategy(strategy)),
            Join::BestInParts => ids(&best.clone().strategy(Strategy::Cells).device_bytes(0)),
            Join::Rows => Ok(all.rows(device, points, points)?.into_parts().1),
            Join::RowsInBatches => {
                let (mut ids, mut batches) = (Vec::new(), Batches::new().rows(points.len() / 2));
                all.rows_batches(device, points, points, &mut batches, |batch| {
                    ids.extend_from_slice(batch.ids());
                    ControlFlow::Continue(())
                })?;
                Ok(ids)
            }
            Join::Nearest => {
                Ok(nearest.clone().index(KnnIndex::Grid).run(device, points, points)?.into_parts().0)
            }
            Join::Estimate => Ok(vec![all.estimate(device, points, points, 10)? as u32]),
        }
    };
    let expected = found(&Device::cpu()).unwrap();
    let faulty = gpu.with_faults(plan);
    let result = found(&Device::from_gpu(faulty.clone()));
    assert_eq!(faulty.memory_use().live_bytes, 0, "{join:?}, {plan:?}");
    match result {
        Ok(found) => {
            assert!(found == expected, "{join:?}, {plan:?}");
            true
        }
        Err(error) => {
            assert!(is_expected(&error), "{join:?}, {plan:?}: {error}");
            false
        }
    }
}

#[test]
fn every_call_of_a_join_may_fail() {
    const OTHERS: [Join; 5] =
        [Join::BestInParts, Join::Rows, Join::RowsInBatches, Join::Nearest, Join::Estimate];
    on_cuda(|gpu, _| {
        let strategies = [
            Strategy::NestedLoop,
            Strategy::Threshold,
            Strategy::Cells,
            Strategy::RegisterHeap,
            Strategy::SharedHeap,
            Strategy::AppendSort,
            Strategy::Filter,
        ];
        for join in strategies.map(Join::Best).into_iter().chain(OTHERS) {
            each_call_fails(|plan| join_survives(gpu, &points(3000), join, plan));
        }
    });
    let device = Device::sim(SimOptions::default()).unwrap();
    for join in [Join::Best(Strategy::Threshold), Join::RowsInBatches] {
        each_call_fails(|plan| join_survives(device.gpu().unwrap(), &points(6), join, plan));
    }
}

/// Builds and queries a quadtree on a device with faults. Returns true if no call had to fail. A build that lacks device memory
/// continues in parts, so a failed allocation is not always an error.
fn quadtree_survives(gpu: &Gpu, points: &Points, options: &QuadtreeOptions, plan: FaultPlan) -> bool {
    let expected = Quadtree::build(&Device::cpu(), points, options).unwrap();
    let faulty = gpu.with_faults(plan);
    let found = Quadtree::build(&Device::from_gpu(faulty.clone()), points, options).and_then(|tree| {
        assert!(
            tree.nodes()?[..] == expected.nodes()?[..] && tree.ids()?[..] == expected.ids()?[..],
            "{plan:?}"
        );
        assert!(tree.leaf_of(points)? == expected.leaf_of(points)?, "{plan:?}");
        assert!(tree.adjacent_leaves(&[1])? == expected.adjacent_leaves(&[1])?, "{plan:?}");
        assert!(tree.level_of_detail(2)? == expected.level_of_detail(2)?, "{plan:?}");
        let [found, expected] = [&tree, &expected].map(|tree| tree.nearest(&points[..5], 3));
        assert!(found?.ids() == expected?.ids(), "{plan:?}");
        Ok(())
    });
    assert_eq!(faulty.memory_use().live_bytes, 0, "{plan:?}: {found:?}");
    match found {
        Ok(()) => plan.call != FaultCall::Alloc || faulty.memory_use().allocations < plan.nth,
        Err(error) => {
            assert!(is_expected(&error), "{plan:?}: {error}");
            false
        }
    }
}

/// Builds a quadtree into a file on a device with faults. Returns true if no call had to fail.
fn quadtree_in_file_survives(gpu: &Gpu, points: &Points, options: &QuadtreeOptions, plan: FaultPlan) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("points.kauri");
    let faulty = gpu.with_faults(plan);
    let device = Device::from_gpu(faulty.clone());
    let chunks = points.chunks(4).map(|chunk| Ok(chunk.to_vec()));
    let mut progress = |_| ControlFlow::Continue(());
    let built = Quadtree::build_to_file(&device, chunks, &path, options, &mut progress);
    assert_eq!(faulty.memory_use().live_bytes, 0, "{plan:?}: {built:?}");
    // A file is complete or does not exist.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), usize::from(built.is_ok()), "{plan:?}");
    match built {
        Ok(_) => {
            let expected = Quadtree::build(&Device::cpu(), points, options).unwrap();
            let tree = Quadtree::<[f32; 2]>::load(&Device::cpu(), &path).unwrap();
            assert!(
                tree.nodes().unwrap() == expected.nodes().unwrap()
                    && tree.ids().unwrap() == expected.ids().unwrap()
            );
            plan.call != FaultCall::Alloc || faulty.memory_use().allocations < plan.nth
        }
        Err(error) => {
            assert!(is_expected(&error), "{plan:?}: {error}");
            false
        }
    }
}

#[test]
fn every_call_of_a_quadtree_in_a_file_may_fail() {
    let device = Device::sim(SimOptions::default()).unwrap();
    let options = QuadtreeOptions::default().leaf_points(2);
    each_call_of_one_kind_fails(|plan| {
        quadtree_in_file_survives(device.gpu().unwrap(), &points(9), &options, plan)
    });
    on_cuda(|gpu, _| {
        each_call_of_one_kind_fails(|plan| quadtree_in_file_survives(gpu, &points(3000), &options, plan));
    });
}

#[test]
fn every_call_of_a_quadtree_may_fail() {
    let device = Device::sim(SimOptions::default()).unwrap();
    let simulated = |options: &QuadtreeOptions| {
        each_call_of_one_kind_fails(|plan| {
            quadtree_survives(device.gpu().unwrap(), &points(9), &options.clone().leaf_points(2), plan)
        });
    };
    for out_of_core in [OutOfCore::WhereNeeded, OutOfCore::Streamed, OutOfCore::CpuTop] {
        for algorithm in
            [research::quadtree::BuildAlgorithm::Codes, research::quadtree::BuildAlgorithm::LEVELS]
        {
            let options = QuadtreeOptions::default().out_of_core(out_of_core).algorithm(algorithm);
            simulated(&options);
            on_cuda(|gpu, _| {
                each_call_of_one_kind_fails(|plan| quadtree_survives(gpu, &points(3000), &options, plan));
            });
        }
    }
}

/// The calls that make and change an index of triangles.
struct TriangleCalls<I> {
    build: fn(&Device, &Mesh) -> Result<I>,
    rebuild: fn(&mut I, &Mesh) -> Result<()>,
    refit: fn(&mut I, &Mesh) -> Result<()>,
}

/// Builds, rebuilds, refits and queries an index of triangles and draws a frame, on a device with faults. The step in which a call fails is
/// the last one, and the index answers after it. Returns true if no call failed.
fn triangles_survive<I: RayIndex>(
    gpu: &Gpu,
    [mesh, moved]: [&Mesh; 2],
    calls: &TriangleCalls<I>,
    plan: FaultPlan,
) -> bool {
    let rays: Vec<Ray> = (0..9).map(|i| Ray::new([0.1 * i as f32, 0.3, 2.0], [0.02, 0.01, -1.0])).collect();
    let expected = [mesh, moved].map(|mesh| {
        let index = (calls.build)(&Device::cpu(), mesh).unwrap();
        (index.closest_hits(&rays).unwrap(), index.all_hits(&rays).unwrap(), index.any_hits(&rays).unwrap())
    });
    let faulty = gpu.with_faults(plan);
    let no_call_failed = Cell::new(true);
    let record = |result: Result<()>| {
        let is_done = result.is_ok();
        if let Err(error) = result {
            assert!(is_expected(&error), "{plan:?}: {error}");
            no_call_failed.set(false);
        }
        is_done
    };
    match (calls.build)(&Device::from_gpu(faulty.clone()), mesh) {
        Err(error) => {
            record(Err(error));
        }
        Ok(mut index) => {
            let mut is_moved = 0;
            for step in 0..3 {
                match step {
                    1 if record((calls.rebuild)(&mut index, moved)) => is_moved = 1,
                    2 if record((calls.refit)(&mut index, mesh)) => is_moved = 0,
                    _ => (),
                }
                let (closest, all, any) = &expected[is_moved];
                let by = RayOptions::default().sorted(step == 1);
                record(
                    index.closest_hits_with(&rays, &by).map(|hits| assert_eq!(hits, *closest, "{plan:?}")),
                );
                record(index.all_hits(&rays).map(|hits| assert_eq!(hits, *all, "{plan:?}")));
                record(index.any_hits(&rays).map(|hits| assert_eq!(hits, *any, "{plan:?}")));
                if !no_call_failed.get() {
                    break;
                }
            }
            let closest = || index.closest_hits(&rays).map(|hits| assert_eq!(hits, expected[is_moved].0));
            let draw = || {
                let stream = Stream::new(&faulty)?;
                let mut frames =
                    Frames::new(&faulty, &RenderOptions::default().size(4, 3).occlusion_rays(1))?;
                let resident = Resident::new(&stream, mesh)?;
                frames.draw(&stream, &index, resident.mesh(), &Camera::new([0.0, -1.0, 1.0], [0.0; 3]))?;
                assert_eq!(frames.to_image(&stream)?.pixels.len(), 36);
                Ok(())
            };
            record(if no_call_failed.get() { draw() } else { closest() });
        }
    }
    assert_eq!(faulty.memory_use().live_bytes, 0, "{plan:?}");
    no_call_failed.get()
}

/// Every call of an index of triangles fails once: of `few` triangles in the simulator, unless there are none, and of `many` on a GPU.
fn every_call_of_triangles_may_fail<I: RayIndex>([few, many]: [u32; 2], calls: &TriangleCalls<I>) {
    let meshes = |len: u32| {
        let mesh = shapes::soup(len, 0.3, 1).unwrap();
        let mut moved = mesh.clone();
        Motion::Waves.apply(&mesh, 0.3, &mut moved).unwrap();
        [mesh, moved]
    };
    let many = meshes(many);
    if few > 0 {
        let few = meshes(few);
        let device = Device::sim(SimOptions::default()).unwrap();
        let gpu = device.gpu().unwrap();
        each_call_of_one_kind_fails(|plan| triangles_survive(gpu, few.each_ref(), calls, plan));
    }
    on_cuda(|gpu, _| {
        each_call_of_one_kind_fails(|plan| triangles_survive(gpu, many.each_ref(), calls, plan));
    });
}

#[test]
fn every_call_of_a_sah_tree_may_fail() {
    let (rebuild, refit) = (SahTree::rebuild, SahTree::refit);
    // Builds that clip make every call of builds that do not.
    let build =
        |device: &Device, mesh: &Mesh| SahTree::build(device, mesh, &SahOptions::default().clip(true));
    every_call_of_triangles_may_fail([70, 2000], &TriangleCalls { build, rebuild, refit });
    let build = |device: &Device, mesh: &Mesh| SahTree::build(device, mesh, &SahOptions::default());
    every_call_of_triangles_may_fail([0, 2000], &TriangleCalls { build, rebuild, refit });
    // Few triangles, since the best tree takes some tens of calls for each level.
    let build = |device: &Device, mesh: &Mesh| {
        SahTree::build(device, mesh, &SahOptions::default().quality(Quality::Exact))
    };
    every_call_of_triangles_may_fail([0, 150], &TriangleCalls { build, rebuild, refit });
}

#[test]
fn every_call_of_a_bvh_may_fail() {
    let calls = TriangleCalls { build: Bvh::build, rebuild: Bvh::rebuild, refit: Bvh::refit };
    every_call_of_triangles_may_fail([20, 2000], &calls);
}

/// Sorts twice with one workspace on a device with faults. Returns true if no call failed.
fn sort_survives(gpu: &Gpu, keys: &[u32], plan: FaultPlan) -> bool {
    let mut expected = keys.to_vec();
    expected.sort_unstable();
    let faulty = gpu.with_faults(plan);
    let mut no_call_failed = true;
    {
        let mut workspace = Workspace::new(&faulty);
        for _ in 0..2 {
            match sort_all(&faulty, &mut workspace, keys) {
                Ok(sorted) => assert!(sorted == [&expected[..], &expected].concat(), "{plan:?}"),
                Err(error) => {
                    assert!(is_expected(&error), "{plan:?}: {error}");
                    no_call_failed = false;
                }
            }
        }
    }
    assert_eq!(faulty.memory_use().live_bytes, 0, "{plan:?}");
    no_call_failed
}

/// Returns the sorted keys twice: sorted as a whole, and as one segment.
fn sort_all(gpu: &Gpu, workspace: &mut Workspace, keys: &[u32]) -> Result<Vec<u32>> {
    let stream = &Stream::new(gpu)?;
    let (n, options) = (keys.len(), RadixSortOptions::default());
    let keys = Buffer::from_slice(stream, keys, "keys")?;
    let offsets = Buffer::from_slice(stream, &[0, n as u64], "offsets")?;
    let mut sorted = Buffer::uninitialized(gpu, n, "sorted")?;
    radix_sort::sort_keys(stream, workspace, &keys, &mut sorted, &options)?;
    let mut all = sorted.to_vec(stream)?;
    segmented_sort::sort_keys(stream, workspace, &keys, &offsets, &mut sorted, &options)?;
    all.extend(sorted.to_vec(stream)?);
    Ok(all)
}

fn every_call_of_a_sort_may_fail(gpu: &Gpu, keys: &[u32]) {
    for call in CALLS {
        for repeat in [false, true] {
            let mut nth = 1;
            while !sort_survives(gpu, keys, FaultPlan { call, nth, repeat }) {
                nth += 1;
                assert!(nth < 200, "{call:?} never stops failing");
            }
            assert!(nth > 1 || call == FaultCall::LoadModule, "{call:?} was never called");
        }
    }
}

#[test]
fn every_call_of_a_sort_may_fail_on_a_gpu() {
    on_cuda(|gpu, _| every_call_of_a_sort_may_fail(gpu, &noise(100_000, 52)));
}

#[test]
fn every_call_of_a_sort_may_fail_on_a_simulated_device() {
    let device = Device::sim(SimOptions::default()).unwrap();
    every_call_of_a_sort_may_fail(device.gpu().unwrap(), &noise(40, 52));
}

fn check_memory_limit(gpu: &Gpu) {
    let points = points(3000);
    let plan =
        KdTree::<[f32; 2]>::plan(&Device::from_gpu(gpu.clone()), points.len(), &KdTreeOptions::default());
    let enough = gpu.with_memory_limit(plan.tree_bytes + plan.temp_bytes);
    let tree = KdTree::build(&Device::from_gpu(enough.clone()), &points, &KdTreeOptions::default()).unwrap();
    assert_eq!(enough.memory_use().peak_bytes, plan.tree_bytes + plan.temp_bytes);
    assert_eq!(enough.memory_use().live_bytes, plan.tree_bytes);
    drop(tree);

    let short = gpu.with_memory_limit(plan.tree_bytes + plan.temp_bytes - 1);
    let error =
        KdTree::build(&Device::from_gpu(short.clone()), &points, &KdTreeOptions::default()).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { memory: "device", .. }), "{error}");
    assert_eq!(short.memory_use().live_bytes, 0);
    // Fewer points still fit.
    KdTree::build(&Device::from_gpu(short), &points[..300], &KdTreeOptions::default()).unwrap();
}

#[test]
fn a_build_within_its_plan_keeps_a_memory_limit() {
    if std::env::var_os("KAURI_ALLOC").is_some() {
        return; // separate allocations take less than the plan, which aligns regions
    }
    on_cuda(|gpu, _| check_memory_limit(gpu));
    check_memory_limit(Device::sim(SimOptions::default()).unwrap().gpu().unwrap());
}
