//! Joins of device buffers return the result of the CPU, with every strategy.

use crate::{on_each_schedule_in_turn, upload};
use cuda_std::prelude::*;
use kauri::device::{Stream, Workspace};
use kauri::join::{
    Curve, DeviceScored, DistanceJoin, KnnIndex, KnnJoin, Norm, Score, ScoreFunction, Scored, SelfPairs,
    Strategy, TopKDistanceJoin,
};
use kauri::research::join::Lookup;
use kauri::{Batches, Device, Error, Point};
use kauri_kernels::join::threshold::{CustomScoreLaunch, offer_pairs};
use kauri_kernels::policy::JOIN_THREADS;
use kauri_tests::generate::{Random, Scalar, Shape};
use std::ops::ControlFlow;

/// Two sets with scores.
struct Sets<C, S, const D: usize> {
    points: [Vec<[C; D]>; 2],
    scores: [Vec<S>; 2],
}

impl<C: Scalar, S: Score, const D: usize> Sets<C, S, D>
where
    [C; D]: Point<Coord = C>,
{
    fn new(shape: Shape, lens: [usize; 2], score: impl Fn(u64) -> S) -> Self {
        let mut random = Random::new(3);
        let mut scores = |len| (0..len).map(|_| score(random.bits())).collect();
        Self {
            points: [0, 1].map(|i| shape.points(lens[i], i as u64)),
            scores: [scores(lens[0]), scores(lens[1])],
        }
    }

    /// Compares the results of strategies with the result of the CPU.
    fn check(&self, stream: &Stream, join: &TopKDistanceJoin<C>, strategies: &[Strategy]) {
        let Self { points, scores } = self;
        let [left, right] = [0, 1].map(|i| Scored::new(&points[i], &scores[i]).unwrap());
        let expected = join.run(&Device::cpu(), left, right).unwrap().into_pairs();
        let coords = points.each_ref().map(|points| upload(stream, points.as_flattened()));
        let scores = scores.each_ref().map(|scores| upload(stream, scores));
        let [left, right] = [0, 1].map(|i| DeviceScored { coords: &coords[i], scores: &scores[i] });
        let mut workspace = Workspace::new(stream.gpu());
        for &strategy in strategies {
            let join = join.clone().strategy(strategy).lookup(LOOKUPS[points[0].len() / 10 % 2]);
            let found = join.run_on::<[C; D], S>(stream, &mut workspace, left, right);
            let found = found.unwrap_or_else(|error| panic!("{strategy:?}: {error}"));
            assert!(found == expected, "{join:?}: {} pairs, not {}", found.len(), expected.len());
        }
    }
}

const LOOKUPS: [Lookup; 2] = [Lookup::Points, Lookup::Cells];
const HEAPS: [Strategy; 2] = [Strategy::RegisterHeap, Strategy::SharedHeap];
const OTHERS: [Strategy; 5] =
    [Strategy::NestedLoop, Strategy::Threshold, Strategy::Cells, Strategy::AppendSort, Strategy::Filter];

#[test]
fn best_pairs() {
    on_each_schedule_in_turn(20, |_, stream, turn| {
        let curve = [Curve::Linear, Curve::ZOrder, Curve::Hilbert][turn / 2 % 3];
        // Two or three schedules for each strategy.
        let some =
            &[[HEAPS, [OTHERS[0], OTHERS[1]], [OTHERS[2], OTHERS[3]], [OTHERS[4]; 2]].concat()[turn % 7]];
        match turn % 5 {
            0 => {
                let sets = Sets::<f32, u32, 2>::new(Shape::Uniform, [70, 135], |bits| (bits >> 40) as u32);
                let join = TopKDistanceJoin::new(0.1, 20).curve(curve).best_points(40);
                sets.check(stream, &join, some);
            }
            1 => {
                // Few distinct scores, and many points in few cells.
                let sets = Sets::<f64, i64, 3>::new(Shape::Lattice, [60, 140], |bits| (bits % 5) as i64 - 2);
                let join = TopKDistanceJoin::new(1.0, 15).curve(curve).score(ScoreFunction::Product);
                sets.check(stream, &join, some);
            }
            2 => {
                let sets = Sets::<f32, f32, 3>::new(Shape::Flat, [70, 130], |bits| (bits >> 40) as f32);
                let join = TopKDistanceJoin::new(0.1, 40).curve(curve).norm(Norm::Manhattan);
                sets.check(stream, &join.score(ScoreFunction::Min).best_points(30), some);
            }
            3 => {
                let sets = Sets::<f32, f64, 4>::new(Shape::Uniform, [60, 60], |bits| bits as f64);
                let join = TopKDistanceJoin::new(0.4, 64).curve(curve).weighted(-1.0, 2.0).best_points(20);
                sets.check(stream, &join, some);
            }
            _ => {
                let sets = Sets::<f64, u32, 2>::new(Shape::AllEqual, [40, 129], |bits| bits as u32);
                let join = TopKDistanceJoin::new(0.0, 10).curve(curve).score(ScoreFunction::Max);
                sets.check(stream, &join.best_points(20), some);
            }
        }
    });
}

#[test]
fn more_pairs_than_the_candidate_list_holds() {
    on_each_schedule_in_turn(20, |_, stream, turn| {
        let sets = Sets::<f32, u32, 2>::new(Shape::Uniform, [260, 250], |bits| bits as u32);
        // Few pairs are selected by counting, many by a sort.
        match turn {
            0 => sets.check(stream, &TopKDistanceJoin::new(f32::INFINITY, 7), &OTHERS[2..]),
            1 => sets.check(stream, &TopKDistanceJoin::new(0.2, 1500), &OTHERS[1..]),
            2 => sets.check(
                stream,
                &TopKDistanceJoin::new(0.2, usize::MAX),
                &[Strategy::Auto, Strategy::AppendSort, Strategy::Filter],
            ),
            3 => sets.check(stream, &TopKDistanceJoin::new(0.2, 9).heap_bytes(20_000), &HEAPS),
            4 => sets.check(stream, &TopKDistanceJoin::new(0.2, 9).heap_bytes(3000), &[Strategy::AppendSort]),
            _ => {}
        }
    });
}

/// Every length of heaps, full and with a free entry.
#[test]
fn heaps_of_every_length() {
    on_each_schedule_in_turn(16, |_, stream, turn| {
        let most = 1 << (turn % 8);
        let k = if turn < 8 { most } else { most / 2 + 1 };
        let sets = Sets::<f32, u32, 2>::new(Shape::Uniform, [150, 70], |bits| (bits >> 56) as u32);
        sets.check(stream, &TopKDistanceJoin::new(0.9, k), &HEAPS);
    });
}

/// A list of all pairs: sorted by the bits in which scores differ, and ties by the ids.
#[test]
fn appended_pairs() {
    on_each_schedule_in_turn(10, |_, stream, turn| {
        let (k, distinct) = ([1, 40, 5000][turn % 3], [1, 3, u64::MAX][turn % 3]);
        let lens = [[90, 70], [1, 150], [150, 1]][turn / 3 % 3];
        let epsilon = [0.0, 0.3, f32::INFINITY][turn % 3];
        let score = |bits: u64| (bits % distinct) as i64;
        let sets = Sets::<f32, i64, 2>::new([Shape::Uniform, Shape::Lattice][turn % 2], lens, score);
        let function = [ScoreFunction::Product, ScoreFunction::Sum, ScoreFunction::Max][turn % 3];
        let join = TopKDistanceJoin::new(epsilon, k).score(function);
        sets.check(stream, &join, &[Strategy::AppendSort]);
        sets.check(stream, &join.heap_bytes(0), &[Strategy::AppendSort]);
    });
}

#[test]
fn appended_pairs_that_memory_cannot_hold() {
    on_each_schedule_in_turn(1, |gpu, _, _| {
        let points = [0, 1].map(|i| Shape::AllEqual.points::<f32, 2>(200 - 50 * i, i as u64));
        let gpu = gpu.with_memory_limit(800 << 10);
        let (stream, mut workspace) = (Stream::new(&gpu).unwrap(), Workspace::new(&gpu));
        let coords = points.each_ref().map(|points| upload(&stream, points.as_flattened()));
        let scores = points.each_ref().map(|points| upload(&stream, &vec![0_u32; points.len()]));
        let [left, right] = [0, 1].map(|i| DeviceScored { coords: &coords[i], scores: &scores[i] });
        let join = TopKDistanceJoin::new(0.0, 5).strategy(Strategy::AppendSort).heap_bytes(1000);
        let error = join.run_on::<[f32; 2], u32>(&stream, &mut workspace, left, right).unwrap_err();
        assert!(matches!(error, Error::ResultTooLarge { count: 30_000, bytes: 960_000, .. }), "{error}");
        // The objects stay usable.
        let [left, right] = coords.each_ref();
        let count = DistanceJoin::new(0.0).count_on::<[f32; 2]>(&stream, &mut workspace, left, Some(right));
        assert_eq!(count.unwrap(), 30_000);
    });
}

/// Scores a pair by its ids.
fn custom_score(left: u32, right: u32) -> u64 {
    u64::from((left ^ right).count_ones())
}

#[kernel(block = JOIN_THREADS)]
unsafe fn join_by_custom_score(launch: CustomScoreLaunch<'_, f32>) {
    // SAFETY: the host passes these arguments for such a launch.
    unsafe { offer_pairs::<f32, 2>(launch, custom_score) }
}

#[test]
fn custom_scores() {
    on_each_schedule_in_turn(4, |_, stream, turn| {
        let points = [0, 1].map(|i| Shape::Uniform.points::<f32, 2>(140 - 10 * i, i as u64));
        let coords = points.each_ref().map(|points| upload(stream, points.as_flattened()));
        let join = TopKDistanceJoin::new([0.0, 0.1, 0.3, 2.0][turn], [1, 20, 200, 100_000][turn]);
        let expected = join.run_custom(&points[0], &points[1], custom_score).unwrap();
        let mut workspace = Workspace::new(stream.gpu());
        let found =
            join.run_custom_on::<[f32; 2]>(stream, &mut workspace, coords.each_ref(), |blocks, args| {
                // SAFETY: the kernel takes only what the join passes.
                unsafe { stream.launch::<join_by_custom_score>(blocks, (args,)) }
            });
        assert!(found.unwrap() == expected, "{join:?}");
    });
}

#[test]
fn sets_of_very_different_sizes() {
    on_each_schedule_in_turn(2, |_, stream, turn| {
        let lens = [[40, 400], [400, 40]][turn];
        let sets = Sets::<f32, i64, 2>::new(Shape::Uniform, lens, |bits| (bits % 90) as i64 - 20);
        let join = TopKDistanceJoin::new(0.2, 30).weighted(-1.0, 2.0);
        sets.check(stream, &join, &[Strategy::Cells]);
    });
}

/// Many build points in the neighbor cells, few of them near.
#[test]
fn long_searches() {
    let few = |len: u32, every: u32, far: [f32; 2]| -> Vec<[f32; 2]> {
        (0..len).map(|i| [far[usize::from(i % every == 0)], (i % 97) as f32 * 1e-4]).collect()
    };
    let points = [few(2100, 16, [0.0, 0.004]), few(270, 8, [1.008, 1.003])];
    let scores = points.each_ref().map(|set| (0..set.len() as u32).map(|i| i * 7 % 50).collect());
    let sets = Sets { points, scores };
    on_each_schedule_in_turn(20, |_, stream, turn| {
        if turn % 5 == 0 {
            sets.check(stream, &TopKDistanceJoin::new(1.0, 30), &[Strategy::Cells]);
        }
    });
}

#[test]
fn sets_larger_than_device_memory() {
    on_each_schedule_in_turn(4, |gpu, _, turn| {
        let device = Device::from_gpu(gpu.clone());
        let shape = [Shape::Uniform, Shape::Lattice][turn % 2];
        let sets = Sets::<f32, i64, 2>::new(shape, [700, 600], |bits| (bits % 50) as i64 - 20);
        let Sets { points, scores } = &sets;
        let [left, right] = [0, 1].map(|i| Scored::new(&points[i], &scores[i]).unwrap());
        let join = TopKDistanceJoin::new([0.02, 1.0][turn % 2], 30).score(ScoreFunction::Product);
        let join = if turn < 2 { join } else { join.score(ScoreFunction::Min).best_points(20) };
        let expected = join.run(&Device::cpu(), left, right).unwrap();
        let strategy = [Strategy::Cells, Strategy::Filter, Strategy::Threshold, Strategy::Threshold][turn];
        let found = join.strategy(strategy).device_bytes(0).run(&device, left, right).unwrap();
        assert!(found.pairs() == expected.pairs(), "{strategy:?}");
    });
}

#[test]
fn pairs_within_a_distance() {
    fn check<C: Scalar, const D: usize>(
        stream: &Stream,
        shape: Shape,
        epsilon: f64,
        curve: Curve,
        lookup: Lookup,
    ) where
        [C; D]: Point<Coord = C>,
    {
        let points = [0, 1].map(|i| shape.points::<C, D>(130 + 10 * i, i as u64));
        let join = DistanceJoin::new(C::from_f64(epsilon)).curve(curve).lookup(lookup);
        let buffers = points.each_ref().map(|points| upload(stream, points.as_flattened()));
        let mut workspace = Workspace::new(stream.gpu());
        let expected = [
            join.rows(&Device::cpu(), &points[0], &points[1]).unwrap(),
            join.self_rows(&Device::cpu(), &points[0], SelfPairs::Both).unwrap(),
        ];
        for (expected, right) in expected.iter().zip([Some(&buffers[1]), None]) {
            let (offsets, ids) = join.rows_on::<[C; D]>(stream, &mut workspace, &buffers[0], right).unwrap();
            assert!(offsets.to_vec(stream).unwrap() == expected.offsets(), "{join:?}");
            assert!(ids.to_vec(stream).unwrap() == expected.ids(), "{join:?}");
            let count = join.count_on::<[C; D]>(stream, &mut workspace, &buffers[0], right).unwrap();
            assert_eq!(count, expected.ids().len() as u64, "{join:?}");
        }
    }
    on_each_schedule_in_turn(5, |_, stream, turn| match turn {
        0 => check::<f32, 2>(stream, Shape::Uniform, 0.1, Curve::Linear, LOOKUPS[0]),
        1 => check::<f64, 3>(stream, Shape::Clustered, 1e-3, Curve::Hilbert, LOOKUPS[1]),
        2 => check::<f32, 3>(stream, Shape::Lattice, 1.0, Curve::ZOrder, LOOKUPS[1]),
        3 => check::<f64, 2>(stream, Shape::Largest, 1e150, Curve::Linear, LOOKUPS[0]),
        _ => check::<f32, 6>(stream, Shape::Uniform, 0.3, Curve::Hilbert, LOOKUPS[1]),
    });
}

#[test]
fn pairs_in_batches_and_nearest_points() {
    on_each_schedule_in_turn(4, |gpu, _, turn| {
        let device = Device::from_gpu(gpu.clone());
        let points = [0, 1].map(|i| Shape::Uniform.points::<f32, 2>(150, i));
        let epsilon = 0.1;
        match turn {
            0 | 1 => {
                let join = DistanceJoin::new(epsilon).curve([Curve::Linear, Curve::Hilbert][turn]);
                let whole = join.rows(&Device::cpu(), &points[0], &points[1]).unwrap();
                let (mut batches, mut ids) = (Batches::new().bytes(600).rows(60), Vec::new());
                let visit = |batch: kauri::RowsBatch<'_>| {
                    ids.extend_from_slice(batch.ids());
                    ControlFlow::Continue(())
                };
                let delivered =
                    join.rows_batches(&device, &points[0], &points[1], &mut batches, visit).unwrap();
                assert!(delivered.is_complete && delivered.batches > 2);
                assert!(ids == whole.ids());
            }
            _ => {
                let join = KnnJoin::new([3, 20][turn % 2]).within(epsilon);
                let expected = join.run(&Device::cpu(), &points[0], &points[1]).unwrap();
                let found = join.index(KnnIndex::Grid).run(&device, &points[0], &points[1]).unwrap();
                assert!(found.ids() == expected.ids() && found.dist2() == expected.dist2());
            }
        }
    });
}
