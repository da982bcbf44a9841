//! Builds and checks of balanced k-d trees on simulated devices, by every partitioner, against the CPU.

use crate::{noise, on_each_schedule, on_each_schedule_in_turn, uninitialized, upload};
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::device::{Device, Stream};
use kauri::query::{Norm, Queries, QueryOptions, Traversal};
use kauri::research::balanced::BuildAlgorithm;
use kauri::{Point, SpatialIndex};
use kauri_kernels::balanced::Tree;
use kauri_kernels::balanced::distinct::{Pieces, balanced_distinct_pieces};
use kauri_kernels::balanced::verify::{balanced_verify, wrong};
use kauri_kernels::balanced::widen::balanced_widen;
use kauri_kernels::thread::carried::Source;
use kauri_kernels::thread::order::Lookup;

fn points<C, const D: usize>(n: usize, values: u64, coord: impl Fn(u64) -> C) -> Vec<[C; D]> {
    let numbers = noise(n * D, n as u64);
    numbers.chunks(D).map(|c| std::array::from_fn(|axis| coord(c[axis] % values))).collect()
}

fn same_as_on_the_cpu<P: Point>(device: &Device, points: &[P], warps: u32) {
    let options = BalancedOptions::default().warps(warps);
    let expected = BalancedKdTree::build(&Device::cpu(), points, &options).unwrap();
    let robinson = options.clone().algorithm(BuildAlgorithm::Robinson);
    for options in [
        robinson.clone().direct_stores(true),
        robinson.clone().sequential_compactions(true),
        robinson.clone().direct_stores(true).sequential_compactions(true),
        robinson,
        options.clone().renumber(true),
        options,
    ] {
        let what = format!("{} points, {options:?}", points.len());
        let tree = BalancedKdTree::build(device, points, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(tree.medians().unwrap(), expected.medians().unwrap(), "{what}");
        assert_eq!(tree.nodes().unwrap(), expected.nodes().unwrap(), "{what}");
        assert_eq!(tree.removed().unwrap(), expected.removed().unwrap(), "{what}");
        tree.verify().unwrap_or_else(|e| panic!("{what}: {e}"));
    }
}

#[test]
fn trees_by_every_partitioner() {
    on_each_schedule_in_turn(4, |gpu, _, turn| {
        let device = Device::from_gpu(gpu.clone());
        match turn {
            0 => {
                for n in [0, 1, 2, 3, 4, 33] {
                    same_as_on_the_cpu(&device, &points::<f32, 1>(n, 100, |x| x as f32), 1);
                }
            }
            1 => {
                // Two warps per run, then one warp per run, then many runs per warp, of 16, 8 and 4 positions.
                same_as_on_the_cpu(&device, &points::<f32, 2>(159, 1 << 20, |x| x as f32), 2);
                // Many equal points, and many equal coordinates.
                same_as_on_the_cpu(&device, &points::<f32, 3>(150, 4, |x| x as f32 - 1.0), 4);
                // The most warps per run.
                same_as_on_the_cpu(&device, &points::<f64, 2>(130, 1 << 20, |x| x as f64), 16);
            }
            // Subtrees in shared memory below a level, with few and with many equal coordinates.
            2 => same_as_on_the_cpu(&device, &points::<f32, 3>(4100, 1 << 20, |x| x as f32), 64),
            _ => same_as_on_the_cpu(&device, &points::<f32, 6>(4096, 4, |x| x as f32), 64),
        }
    });
}

#[test]
fn integers_are_widened() {
    on_each_schedule(|_, stream| {
        let integers: Vec<_> = [0, -1, i32::MIN, i32::MAX].into_iter().chain(-150..150).collect();
        let (from, mut to) = (upload(stream, &integers), uninitialized::<f64>(stream, integers.len()));
        let args = (from.slice(), to.slice_mut());
        // SAFETY: the buffers live until the result has been copied.
        unsafe { stream.launch_items::<balanced_widen<f64>>(integers.len() as u64, args) }.unwrap();
        assert!(to.to_vec(stream).unwrap().into_iter().eq(integers.into_iter().map(f64::from)));
    });
}

/// Queries to trees with empty slots in some buckets.
#[test]
fn balanced_trees_answer() {
    on_each_schedule(|gpu, _| {
        let points = points::<f32, 2>(170, 40, |x| x as f32);
        let [tree, expected] = [Device::from_gpu(gpu.clone()), Device::cpu()]
            .map(|device| BalancedKdTree::build(&device, &points, &BalancedOptions::default()).unwrap());
        assert!(tree.len() < points.len(), "some are equal");
        let norm = QueryOptions::default().norm(Norm::Chebyshev);
        for options in [QueryOptions::default(), norm] {
            let options = options.traversal(Traversal::Buckets);
            for k in [1, 6, 40] {
                let near = |tree: &BalancedKdTree<_>| tree.nearest_with(&points[..40], k, &options).unwrap();
                let (found, near) = (near(&tree), near(&expected));
                assert!(found.ids() == near.ids() && found.dist2() == near.dist2(), "k = {k}, {options:?}");
            }
            let own = |tree: &BalancedKdTree<_>| {
                tree.within(Queries::SelfQuery { include_self: false }, 3.0, &options).unwrap().into_parts()
            };
            assert!(own(&tree) == own(&expected), "{options:?}");
        }
        let boxes: Vec<_> = points[..40].iter().map(|&low| [low, low.map(|x| x + 9.0)]).collect();
        let inside = |tree: &BalancedKdTree<_>| tree.in_boxes(&boxes, None).unwrap().into_parts().1;
        assert_eq!(inside(&tree), inside(&expected));
    });
}

#[test]
fn a_wrong_sort_is_noticed() {
    on_each_schedule(|_, stream| {
        let coords = [0.0f32, 1.0, 2.0, 3.0];
        let failed_at = |ids: [u32; 4]| {
            let keys = upload(stream, &ids.map(|id| coords[id as usize]));
            let (ids, coords) = (upload(stream, &ids), upload(stream, &coords));
            let (mut compacted, mut counts) =
                (uninitialized::<u32>(stream, 4), uninitialized::<u64>(stream, 1));
            let mut failed = upload(stream, &[u64::MAX]);
            let outputs = (compacted.slice_mut(), counts.slice_mut(), failed.slice_mut());
            let sorted = Source { keys: keys.slice(), values: ids.slice() };
            let points = Lookup { coords: coords.slice(), dims: 1, axis: 0 };
            let (compacted, counts, failed_out) = outputs;
            let pieces = Pieces { sorted, points, compacted, counts, failed: failed_out, piece: 32 };
            // SAFETY: the buffers live until the result has been copied.
            unsafe { stream.launch_items::<balanced_distinct_pieces<f32>>(32, (pieces,)) }.unwrap();
            failed.to_vec(stream).unwrap()[0]
        };
        assert_eq!(failed_at([0, 1, 2, 3]), u64::MAX);
        assert_eq!(failed_at([0, 2, 1, 3]), 2);
    });
}

/// A tree over three points: the root and its two children.
#[test]
fn wrong_nodes_are_found() {
    const NONE: u32 = u32::MAX;
    let right = [1, 0, 2];
    let children = [NONE, NONE, 0, 2, NONE, NONE];
    on_each_schedule(|_, stream| {
        assert_eq!(verify(stream, &[0.0, 1.0, 2.0], right, children), None);
        assert_eq!(verify(stream, &[0.0, 1.0, 0.5], right, children), Some((2, wrong::SIDE)));
        assert_eq!(verify(stream, &[0.0, 1.0, 1.0], right, children), Some((2, wrong::SIDE)));
        assert_eq!(verify(stream, &[0.0, 1.0, 2.0], [1, 0, NONE], children), Some((0, wrong::CHILD)));
        assert_eq!(verify(stream, &[0.0, 1.0, 2.0], [1, 0, 3], children), Some((0, wrong::CHILD)));
        let mut other = children;
        other[3] = NONE;
        assert_eq!(verify(stream, &[0.0, 1.0, 2.0], [1, 0, NONE], other), Some((2, wrong::SHAPE)));
        other[3] = 7;
        assert_eq!(verify(stream, &[0.0, 1.0, 2.0], [1, 0, 7], other), Some((2, wrong::ID_RANGE)));
        other[3] = 0;
        let found = verify(stream, &[0.0, 1.0, 2.0], [1, 0, 0], other).unwrap();
        assert_eq!(found.1, wrong::DUPLICATE_ID);
    });
}

/// A node on the wrong side of an ancestor that another block checks: the launch checks only the last level.
#[test]
fn wrong_sides_across_blocks_are_found() {
    on_each_schedule(|_, stream| {
        let found = |coords: &[f32]| {
            let (coords, medians) = (upload(stream, coords), upload(stream, &[1_u32, 0, 2]));
            let children = uninitialized::<u64>(stream, 0);
            let (mut seen, mut finding) = (upload(stream, &[0_u32]), upload(stream, &[u64::MAX]));
            let mut count = upload(stream, &[0_u64]);
            let outputs = (seen.slice_mut(), finding.slice_mut(), count.slice_mut());
            let tree = Tree { coords: coords.slice(), dims: 1, medians: medians.slice(), num_nodes: 3 };
            let args = (tree, 3, children.slice(), 1, 2, outputs.0, outputs.1, outputs.2);
            // SAFETY: the buffers live until the results have been copied.
            unsafe { stream.launch::<balanced_verify<f32>>(2, args) }.unwrap();
            assert_eq!(count.to_vec(stream).unwrap(), [2]);
            finding.to_vec(stream).unwrap()[0]
        };
        assert_eq!(found(&[0.0, 1.0, 2.0]), u64::MAX);
        assert_eq!(found(&[0.0, 1.0, 1.0]), 2 << 32 | u64::from(wrong::SIDE));
    });
}

/// Returns the index and the kind of error of the first wrong node.
fn verify(stream: &Stream, coords: &[f32], medians: [u32; 3], children: [u32; 6]) -> Option<(u64, u32)> {
    let children = [0, 2, 4].map(|i| u64::from(children[i + 1]) << 32 | u64::from(children[i]));
    let (coords, medians, children) =
        (upload(stream, coords), upload(stream, &medians), upload(stream, &children));
    let (mut seen, mut finding) = (upload(stream, &[0_u32]), upload(stream, &[u64::MAX]));
    let mut count = upload(stream, &[0_u64]);
    let outputs = (seen.slice_mut(), finding.slice_mut(), count.slice_mut());
    let tree = Tree { coords: coords.slice(), dims: 1, medians: medians.slice(), num_nodes: 3 };
    let args = (tree, 3, children.slice(), 0, 2, outputs.0, outputs.1, outputs.2);
    // SAFETY: the buffers live until the finding has been copied.
    unsafe { stream.launch::<balanced_verify<f32>>(1, args) }.unwrap();
    let finding = finding.to_vec(stream).unwrap()[0];
    (finding != u64::MAX).then_some((finding >> 32, finding as u32))
}
