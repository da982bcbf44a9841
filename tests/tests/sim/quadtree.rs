//! Quadtrees and octrees in the simulator equal the trees that the CPU builds.

use crate::on_each_schedule_in_turn;
use kauri::device::Gpu;
use kauri::quadtree::{CartesianPoint, CellTree, OutOfCore, QuadtreeOptions};
use kauri::research::quadtree::{BuildAlgorithm, LevelsOptions};
use kauri::{Coordinate, Device, SpatialIndex};
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
