//! Quadtrees and octrees in the simulator equal the trees that the CPU builds.

use crate::{on_each_schedule, on_each_schedule_in_turn};
use kauri::device::{Buffer, Gpu, Stream};
use kauri::quadtree::{CartesianPoint, CellTree, Node, OutOfCore, Quadtree, QuadtreeOptions};
use kauri::research::quadtree::{BuildAlgorithm, LevelsOptions};
use kauri::{Coordinate, Device, SpatialIndex};
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::verify::{CheckedTree, quadtree_verify};
use kauri_tests::generate::Shape;
use std::ops::ControlFlow;

fn check<C: Coordinate, const D: usize>(gpu: &Gpu, points: &[[C; D]], options: &QuadtreeOptions)
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    check_with(gpu, points, options, LevelsOptions::default());
}

/// Builds by codes, and level by level with these launch parameters.
fn check_with<C: Coordinate, const D: usize>(
    gpu: &Gpu,
    points: &[[C; D]],
    options: &QuadtreeOptions,
    levels: LevelsOptions,
) where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    let cpu = CellTree::build(&Device::cpu(), points, options).unwrap();
    for algorithm in [BuildAlgorithm::Codes, BuildAlgorithm::Levels(levels)] {
        let options = options.clone().algorithm(algorithm);
        let sim = CellTree::build(&Device::from_gpu(gpu.clone()), points, &options).unwrap();
        sim.verify().unwrap();
        assert_eq!(sim.nodes().unwrap(), cpu.nodes().unwrap(), "{algorithm:?}");
        assert_eq!(sim.ids().unwrap(), cpu.ids().unwrap(), "{algorithm:?}");
        assert_eq!(sim.coords().unwrap(), cpu.coords().unwrap(), "{algorithm:?}");
        assert_eq!(sim.level_begins(), cpu.level_begins(), "{algorithm:?}");
        if algorithm == BuildAlgorithm::Codes {
            let nodes: Vec<u32> = (0..cpu.num_nodes() as u32).step_by(1 + cpu.num_nodes() / 40).collect();
            assert_eq!(sim.adjacent_leaves(&nodes).unwrap(), cpu.adjacent_leaves(&nodes).unwrap());
            let few = &points[..points.len().min(40)];
            assert_eq!(sim.leaf_of(few).unwrap(), cpu.leaf_of(few).unwrap());
            let [found, expected] = [&sim, &cpu].map(|tree| tree.nearest(few, 3).unwrap().into_parts());
            assert!(found == expected);
            let boxes: Vec<_> = few.windows(2).map(|pair| [pair[0], pair[1]]).collect();
            assert_eq!(sim.count_in_boxes(&boxes, None).unwrap(), cpu.count_in_boxes(&boxes, None).unwrap());
            assert_eq!(sim.level_of_detail(2).unwrap(), cpu.level_of_detail(2).unwrap());
        }
    }
}

/// Generates points of a shape with integer coordinates.
fn integers<const D: usize>(shape: Shape, n: usize) -> Vec<[i32; D]> {
    shape.points::<f64, D>(n, 11).into_iter().map(|point| point.map(|x| (x * 1e6) as i32)).collect()
}

#[test]
fn trees_of_every_shape() {
    let options = QuadtreeOptions::default();
    let by_blocks = LevelsOptions { threads: Some(32), block_points: u32::MAX, ..LevelsOptions::default() };
    on_each_schedule_in_turn(14, |gpu, _, turn| match turn {
        12 => check(gpu, &integers::<2>(Shape::Clustered, 300), &options.clone().leaf_points(3)),
        13 => check(gpu, &integers::<3>(Shape::Uniform, 200), &options.clone().leaf_points(1)),
        0 => check(gpu, &Shape::Uniform.points::<f32, 2>(1500, 1), &options),
        1 => check(gpu, &Shape::Clustered.points::<f32, 3>(400, 2), &options.clone().leaf_points(1)),
        2 => check(gpu, &Shape::FewDistinct.points::<f64, 2>(300, 3), &options.clone().leaf_points(5)),
        3 => check(gpu, &Shape::Scales.points::<f64, 3>(300, 4), &options.clone().leaf_points(2)),
        4 => check(gpu, &Shape::AllEqual.points::<f32, 2>(100, 5), &options),
        5 => check(gpu, &Shape::Collinear.points::<f32, 3>(1100, 6), &options.clone().leaf_points(100)),
        6 => check(gpu, &Shape::Lattice.points::<f64, 2>(200, 7), &options.clone().max_depth(2)),
        7 => check(gpu, &Shape::Subnormal.points::<f64, 3>(100, 8), &options.clone().leaf_points(1)),
        10 => check(gpu, &Shape::Uniform.points::<f32, 2>(3000, 10), &options.clone().leaf_points(700)),
        11 => check_with(gpu, &Shape::Clustered.points::<f32, 2>(900, 11), &options, by_blocks),
        8 => check(gpu, &Shape::Largest.points::<f64, 2>(70, 9), &options.clone().leaf_points(33)),
        _ => check(gpu, &Shape::Uniform.points::<f32, 2>(21, 10), &options.clone().max_depth(0)),
    });
}

/// The device has less memory than the tree takes: there are several batches, and the nodes of some do not fit.
#[test]
fn trees_out_of_core() {
    on_each_schedule_in_turn(6, |gpu, _, turn| {
        let (shape, n, limit) = [
            (Shape::Uniform, 700, 1 << 30),
            (Shape::Clustered, 1500, 250_000),
            (Shape::AllEqual, 1100, 200_000),
            (Shape::Scales, 1200, 200_000),
        ][turn % 4];
        let algorithm = [BuildAlgorithm::Codes, BuildAlgorithm::LEVELS][turn % 2];
        let out_of_core = if turn % 3 == 0 { OutOfCore::CpuTop } else { OutOfCore::Streamed };
        let options = QuadtreeOptions::default().algorithm(algorithm).out_of_core(out_of_core);
        check_out_of_core(gpu, &shape.points::<f32, 2>(n, 1), &options, limit);
        check_out_of_core(gpu, &shape.points::<f64, 3>(n / 4, 2), &options.clone().leaf_points(3), limit);
        check_out_of_core(gpu, &integers::<2>(shape, n / 4), &options.clone().leaf_points(3), limit);
        check_out_of_core(gpu, &integers::<3>(shape, n / 8), &options.clone().leaf_points(3), limit);
        check_file(gpu, &shape.points::<f32, 2>(n / 2, 3), &options, limit);
    });
}

/// Batches of several roots are halved. This takes many launches of the kernels that the other tests check.
#[test]
fn batches_whose_nodes_do_not_fit() {
    let options = QuadtreeOptions::default().algorithm(BuildAlgorithm::LEVELS).leaf_points(3);
    let options = options.out_of_core(OutOfCore::Streamed);
    let points = Shape::Lattice.points::<f64, 3>(2500, 2);
    on_each_schedule_in_turn(4, |gpu, _, turn| {
        if turn == 1 {
            check_out_of_core(gpu, &points, &options, 400_000);
        }
    });
}

fn check_out_of_core<C: Coordinate, const D: usize>(
    gpu: &Gpu,
    points: &[[C; D]],
    options: &QuadtreeOptions,
    limit: u64,
) where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    let cpu = CellTree::build(&Device::cpu(), points, options).unwrap();
    let device = Device::from_gpu(gpu.with_memory_limit(limit));
    let sim = CellTree::build(&device, points, options).unwrap();
    sim.verify().unwrap();
    assert_eq!(sim.nodes().unwrap(), cpu.nodes().unwrap(), "{options:?}");
    assert_eq!(sim.ids().unwrap(), cpu.ids().unwrap(), "{options:?}");
    assert_eq!(sim.coords().unwrap(), cpu.coords().unwrap(), "{options:?}");
    assert_eq!(sim.level_begins(), cpu.level_begins(), "{options:?}");
}

/// Builds the tree into a file, in chunks and with an empty one.
fn check_file<C: Coordinate + kauri::Scalar, const D: usize>(
    gpu: &Gpu,
    points: &[[C; D]],
    options: &QuadtreeOptions,
    limit: u64,
) where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    let device = Device::from_gpu(gpu.with_memory_limit(limit));
    let folder = tempfile::tempdir().unwrap();
    let [saved, built] = ["saved", "built"].map(|name| folder.path().join(name));
    CellTree::build(&Device::cpu(), points, options).unwrap().save(&saved).unwrap();
    let chunks = points.chunks(170).chain([&[][..]]).map(|chunk| Ok(chunk.to_vec()));
    let mut progress = |_| ControlFlow::Continue(());
    CellTree::build_to_file(&device, chunks, &built, options, &mut progress).unwrap();
    assert!(std::fs::read(saved).unwrap() == std::fs::read(built).unwrap(), "{options:?}");
}

/// The arrays of a tree.
#[derive(Clone)]
struct Arrays {
    nodes: Vec<Node>,
    cells: Vec<[u32; 2]>,
    coords: Vec<f64>,
    ids: Vec<u32>,
}

/// A change of a tree, and the node that is wrong then.
type Change<'a> = (&'a dyn Fn(&mut Arrays), Option<u32>);

#[test]
fn every_kind_of_fault_is_found() {
    let points: Vec<[f64; 2]> = (0..64).map(|i| [f64::from(i / 8), f64::from(i % 8)]).collect();
    let tree = Quadtree::build(&Device::cpu(), &points, &QuadtreeOptions::default().leaf_points(4)).unwrap();
    let frame = Frame::<2>::new([0.0; 2], [7.0; 2], 32);
    let cells = (0..tree.num_nodes() as u32).map(|node| frame.unit(tree.bounds(node).unwrap()[0])).collect();
    let right = Arrays {
        nodes: tree.nodes().unwrap().into_owned(),
        cells,
        coords: tree.coords().unwrap().into_owned(),
        ids: tree.ids().unwrap().into_owned(),
    };
    let nodes = &right.nodes;
    // Nodes 0 to 4 split; all others are leaves with 4 points.
    assert!(nodes.len() == 21 && nodes[1..5].iter().all(|node| node.len() == 16 && !node.is_leaf()));
    let changes: [Change<'_>; 14] = [
        (&|_| (), None),
        (&|tree| tree.ids[9] = 64, Some(0)),
        (&|tree| tree.ids[9] = tree.ids[8], Some(0)),
        (&|tree| tree.ids.swap(8, 9), Some(7)),
        (&|tree| tree.coords[63] = -1.0, Some(12)),
        (&|tree| tree.coords[63] = f64::NAN, Some(12)),
        (&|tree| tree.nodes[3].end -= 1, Some(0)),
        (&|tree| tree.nodes[3].level = 2, Some(0)),
        (&|tree| tree.nodes[3].first_child = 0, Some(3)),
        (&|tree| tree.nodes[3].first_child += 1, Some(3)),
        (&|tree| tree.nodes[4].first_child = u32::MAX, Some(4)),
        (&|tree| tree.nodes[20].first_child = 1, Some(20)),
        (&|tree| tree.cells[20][1] += 1, Some(4)),
        // Either of the two claims the children, and the other is wrong.
        (&|tree| tree.nodes[4].first_child = tree.nodes[3].first_child, Some(4)),
    ];
    on_each_schedule(|_, stream| {
        for (i, (change, expected)) in changes.iter().enumerate() {
            let mut tree = right.clone();
            change(&mut tree);
            let found = least_fault(stream, &frame, &tree);
            let is_expected = found == *expected || i == 13 && found == Some(3);
            assert!(is_expected, "change {i}: {found:?}, not {expected:?}");
        }
    });
}

/// Returns the least wrong node that the kernel finds.
fn least_fault(stream: &Stream, frame: &Frame<2>, tree: &Arrays) -> Option<u32> {
    let words: Vec<u64> = frame.to_words().collect();
    let words = Buffer::from_slice(stream, &words, "frame").unwrap();
    let nodes: Vec<_> = tree.nodes.iter().map(|node| node.to_bits()).collect();
    let nodes = Buffer::from_slice(stream, &nodes, "nodes").unwrap();
    let cells = Buffer::from_slice(stream, tree.cells.as_flattened(), "cells").unwrap();
    let level_begins = Buffer::from_slice(stream, &[0, 1, 5, 21], "levels").unwrap();
    let coords = Buffer::from_slice(stream, &tree.coords, "coords").unwrap();
    let ids = Buffer::from_slice(stream, &tree.ids, "ids").unwrap();
    let mut claimed = Buffer::from_slice(stream, &[0; 5], "claimed").unwrap();
    let mut seen = Buffer::from_slice(stream, &[0; 64], "seen").unwrap();
    let mut finding = Buffer::from_slice(stream, &[u32::MAX], "finding").unwrap();
    let checked = CheckedTree {
        frame: words.slice(),
        nodes: nodes.slice(),
        cells: cells.slice(),
        level_begins: level_begins.slice(),
        coords: coords.slice(),
        ids: ids.slice(),
        leaf_points: 4,
        depth: 32,
    };
    let args = (checked, claimed.slice_mut(), seen.slice_mut(), finding.slice_mut());
    // SAFETY: the buffers have the sizes that the kernel requires.
    unsafe { stream.launch_items::<quadtree_verify<f64, 2>>(64, args) }.unwrap();
    let (found, claimed) = (finding.to_vec(stream).unwrap()[0], claimed.to_vec(stream).unwrap());
    if found != u32::MAX { Some(found) } else { claimed.contains(&0).then_some(0) }
}
