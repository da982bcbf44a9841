//! Builds, queries and checks of k-d trees on simulated devices, against the CPU.

use crate::{noise, on_each_schedule, on_each_schedule_in_turn};
use kauri::device::{Buffer, Device, Gpu, Workspace};
use kauri::kdtree::{BuildAlgorithm, SplitRule};
use kauri::query::{QueryOptions, Traversal};
use kauri::{KdTree, KdTreeOptions, Point, SpatialIndex};
use kauri_kernels::kdtree::verify::{CheckedTree, kdtree_verify, wrong};
use kauri_kernels::query::axes::Axes;

/// Generates points on a small lattice, which has ties.
fn points<C, const D: usize>(n: usize, seed: u64, coord: impl Fn(u64) -> C) -> Vec<[C; D]> {
    let numbers = noise(n * D, seed);
    numbers.chunks(D).map(|c| std::array::from_fn(|axis| coord(c[axis] % 17))).collect()
}

fn same_as_on_the_cpu<P: Point>(gpu: &Gpu, points: &[P], queries: &[P], k: usize)
where
    P::Coord: std::fmt::Debug,
{
    // A few points already exercise most of the code for widest axes.
    let rule = if points.len().is_multiple_of(20) { SplitRule::Widest } else { SplitRule::RoundRobin };
    let options = KdTreeOptions::default().split(rule);
    let expected = KdTree::build(&Device::cpu(), points, &options).unwrap();
    let by = |algorithm| {
        let options = options.clone().algorithm(algorithm);
        let tree = KdTree::build(&Device::from_gpu(gpu.clone()), points, &options);
        let tree = tree.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(tree.node_ids().unwrap(), expected.node_ids().unwrap(), "{algorithm:?} {rule:?}");
        tree.verify().unwrap_or_else(|e| panic!("{e}"));
        tree
    };
    by(BuildAlgorithm::Tags);
    by(BuildAlgorithm::TagsOfUnfinished);
    by(BuildAlgorithm::TagsAboveCoordinates);
    if points.len() <= 40 {
        by(BuildAlgorithm::TagsInPlace);
    }
    by(BuildAlgorithm::SelectionInPlace);
    let tree = by(BuildAlgorithm::Selection);
    let found = tree.nearest(queries, k).unwrap_or_else(|e| panic!("{e}"));
    let near = expected.nearest(queries, k).unwrap();
    assert_eq!(found.ids(), near.ids());
    assert_eq!(found.dist2(), near.dist2());
    use Traversal::{BruteForce, Buckets, ClosestCorner, Stack, StackFree};
    for traversal in [StackFree, Stack, ClosestCorner, Buckets, BruteForce] {
        let found = tree.nearest_with(queries, k, &QueryOptions::default().traversal(traversal));
        assert_eq!(found.unwrap_or_else(|e| panic!("{e}")).ids(), near.ids(), "{traversal:?}");
    }
}

#[test]
fn trees_of_every_type_and_dimension() {
    on_each_schedule_in_turn(6, |gpu, _, turn| {
        let i32s = |x| x as i32 - 8;
        let f32s = |x| x as f32 - 8.0;
        let f64s = |x| x as f64 / 3.0;
        match turn {
            0 => {
                for n in [0, 1, 2, 3, 33, 100] {
                    same_as_on_the_cpu(gpu, &points::<f32, 1>(n, 1, |x| x as f32), &[[3.0], [8.5]], 3);
                }
                same_as_on_the_cpu(gpu, &points::<f32, 4>(40, 6, f32s), &points::<f32, 4>(10, 7, f32s), 8);
            }
            5 => {
                same_as_on_the_cpu(gpu, &points::<i32, 3>(40, 8, i32s), &points::<i32, 3>(10, 9, i32s), 5);
                same_as_on_the_cpu(gpu, &points::<i32, 6>(60, 10, i32s), &points::<i32, 6>(5, 11, i32s), 9);
                same_as_on_the_cpu(gpu, &points::<i32, 5>(33, 12, i32s), &points::<i32, 5>(5, 13, i32s), 40);
            }
            1 => same_as_on_the_cpu(gpu, &points::<f32, 2>(130, 2, f32s), &points::<f32, 2>(40, 3, f32s), 5),
            2 => same_as_on_the_cpu(gpu, &points::<f32, 3>(90, 4, f32s), &points::<f32, 3>(20, 5, f32s), 1),
            3 => same_as_on_the_cpu(gpu, &points::<f64, 3>(60, 10, f64s), &points::<f64, 3>(10, 11, f64s), 7),
            _ => {
                same_as_on_the_cpu(gpu, &points::<f64, 2>(40, 8, f64s), &points::<f64, 2>(10, 9, f64s), 50);
                same_as_on_the_cpu(gpu, &points::<f64, 4>(20, 12, f64s), &points::<f64, 4>(5, 13, f64s), 4);
                same_as_on_the_cpu(gpu, &points::<f64, 7>(20, 14, f64s), &points::<f64, 7>(5, 15, f64s), 4);
            }
        }
    });
}

/// More points than a block finishes, so that runs are split first: in two stages, in one and in none.
#[test]
fn trees_of_more_points_than_a_block_finishes() {
    on_each_schedule_in_turn(2, |gpu, _, turn| {
        fn same<C: std::fmt::Debug, const D: usize>(gpu: &Gpu, points: &[[C; D]], options: KdTreeOptions)
        where
            [C; D]: Point,
        {
            let expected = KdTree::build(&Device::cpu(), points, &options).unwrap();
            let tree = KdTree::build(&Device::from_gpu(gpu.clone()), points, &options);
            let tree = tree.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(tree.node_ids().unwrap(), expected.node_ids().unwrap());
        }
        let options = KdTreeOptions::default;
        if turn == 0 {
            same(gpu, &points::<f32, 2>(8000, 16, |x| x as f32), options());
            return;
        }
        same(gpu, &points::<f64, 2>(2600, 17, |x| x as f64), options());
        same(gpu, &points::<i32, 3>(2300, 17, |x| x as i32), options());
        let (widest, in_place) = (SplitRule::Widest, BuildAlgorithm::SelectionInPlace);
        same(
            gpu,
            &points::<f32, 3>(2300, 18, |x| (x * x) as f32),
            options().split(widest).algorithm(in_place),
        );
        same(gpu, &points::<f64, 2>(1300, 19, |x| (x * x) as f64), options().split(widest));
        // One full tile and a part of one.
        let swaps = BuildAlgorithm::TagsInPlace;
        same(gpu, &points::<f32, 2>(1100, 20, |x| (x * x) as f32), options().split(widest).algorithm(swaps));
    });
}

/// Levels leave out the axes on which all points are equal.
#[test]
fn trees_of_planes_and_lines() {
    on_each_schedule_in_turn(4, |gpu, stream, turn| {
        let flat = |n, varying: usize| {
            let mut points = points::<f32, 3>(n, varying as u64, |x| x as f32);
            points.iter_mut().for_each(|point| {
                (0..3).filter(|axis| varying >> axis & 1 == 0).for_each(|axis| point[axis] = -0.5);
            });
            points
        };
        if turn < 3 {
            let queries = points::<f32, 3>(10, 9, |x| x as f32);
            same_as_on_the_cpu(gpu, &flat(37, 1 << turn), &queries, 4);
            same_as_on_the_cpu(gpu, &flat(37, 7 - (1 << turn)), &queries, 4);
            return;
        }
        // The first tree has levels whose runs are split in device memory.
        for masks in [&[(2300, 5)][..], &[(50, 2), (50, 5), (50, 0), (50, 7)]] {
            let mut tree: Option<KdTree<[f32; 3]>> = None;
            let (mut workspace, options) = (Workspace::new(gpu), KdTreeOptions::default());
            for &(n, varying) in masks {
                let points = flat(n, varying);
                let coords = Buffer::from_slice(stream, points.as_flattened(), "points").unwrap();
                match &mut tree {
                    Some(tree) => tree.rebuild_on(stream, &mut workspace, &coords, &options).unwrap(),
                    None => {
                        tree = Some(KdTree::build_on(stream, &mut workspace, &coords, &options).unwrap());
                    }
                }
                let tree = tree.as_ref().unwrap();
                let expected = KdTree::build(&Device::cpu(), &points, &options).unwrap();
                assert_eq!(tree.node_ids().unwrap(), expected.node_ids().unwrap(), "axes {varying:b}");
                tree.verify().unwrap_or_else(|e| panic!("axes {varying:b}: {e}"));
            }
        }
    });
}

#[test]
fn every_kind_of_error_is_found() {
    on_each_schedule(|_, stream| {
        // A correct tree over 0..7 in one dimension, in in-order sequence (nodes 3 1 4 0 5 2 6), and three wrong trees.
        let right = ([0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [0u32, 1, 2, 3, 4, 5, 6]);
        let mut side = right;
        side.0[0] = 3.5;
        let mut duplicate = right;
        duplicate.1[6] = 4;
        let mut range = right;
        range.1[5] = 7;
        let cases = [(right, None), (side, Some((3, wrong::SIDE))), (range, Some((2, wrong::ID_RANGE)))];
        for ((coords, ids), expected) in cases {
            assert_eq!(verify(stream, 1, &coords, &ids, &[]), expected);
        }
        // Either of the two nodes may be reported.
        let found = verify(stream, 1, &duplicate.0, &duplicate.1, &[]).unwrap();
        assert!(found.1 == wrong::DUPLICATE_ID && (found.0 == 5 || found.0 == 6), "{found:?}");
        // The bounding box is wider along the first axis, the cell of the left child along the second. The in-order sequence is 3 1 0 2.
        let (coords, ids) = ([0.5, 0.0, 0.0, 1.5, 1.0, 0.0, 2.0, 0.0], [3, 1, 0, 2]);
        let cases = [([0, 1], None), ([1, 1], Some((0, wrong::AXIS)))];
        for (axes, expected) in cases {
            assert_eq!(verify(stream, 2, &coords, &ids, &axes), expected, "{axes:?}");
        }
        assert_eq!(verify(stream, 2, &coords, &ids, &[0, 200]), Some((1, wrong::AXIS)));
    });
}

/// Returns the first wrong node and the kind of error that the kernel finds.
fn verify(
    stream: &kauri::device::Stream,
    dims: usize,
    coords: &[f32],
    ids: &[u32],
    axes: &[u8],
) -> Option<(u32, u32)> {
    let side = |axis: usize, fold: fn(f32, f32) -> f32| {
        coords.iter().skip(axis).step_by(dims).copied().reduce(fold).unwrap()
    };
    let sides = [f32::min, f32::max].map(|fold| (0..dims).map(move |axis| side(axis, fold)).collect());
    let corners: Vec<f32> = sides.into_iter().flat_map(|side: Vec<f32>| side).collect();
    let corners = Buffer::from_slice(stream, &corners, "corners").unwrap();
    let axes = Buffer::from_slice(stream, axes, "axes").unwrap();
    let coords = Buffer::from_slice(stream, coords, "coords").unwrap();
    let ids = Buffer::from_slice(stream, ids, "ids").unwrap();
    let mut seen = Buffer::from_slice(stream, &vec![0u32; ids.len()], "seen").unwrap();
    let mut finding = Buffer::from_slice(stream, &[u64::MAX], "finding").unwrap();
    let (coords, num_ids) = (coords.slice(), ids.len() as u64);
    let (ids, axes, corners) = (ids.slice(), axes.slice(), corners.slice());
    let varying = Buffer::<u32>::uninitialized(stream.gpu(), 0, "axes in turn").unwrap();
    let axes = Axes { axes, varying: varying.slice(), dims: dims as u32 };
    let tree = CheckedTree { coords, ids, axes, corners };
    let args = (tree, seen.slice_mut(), finding.slice_mut());
    // SAFETY: the buffers have the sizes that the kernel requires.
    unsafe { stream.launch_items::<kdtree_verify<f32>>(num_ids, args) }.unwrap();
    match finding.to_vec(stream).unwrap()[0] {
        u64::MAX => None,
        found => Some(((found >> 32) as u32, found as u32)),
    }
}
