//! Memory plans of quadtrees and octrees against the memory that builds take.

use kauri::quadtree::{CartesianPoint, CellTree, Octree, OutOfCore, Quadtree, QuadtreeOptions};
use kauri::research::quadtree::BuildAlgorithm;
use kauri::{Device, MAX_POINTS, MemoryPlan};
use kauri_tests::devices_for;
use kauri_tests::generate::{Scalar, Shape};

/// Returns the bytes of a tree without its nodes, and of a node.
fn tree_bytes<C: Scalar, const D: usize>(num_points: usize) -> (u64, u64) {
    ((num_points * (D * size_of::<C>() + 4)) as u64, 16 + 4 * D as u64)
}

/// Builds on a device limited to the planned memory, plus memory for the nodes that exceed those of the plan.
fn check<C: Scalar, const D: usize>(points: &[[C; D]], shape: Shape, options: &QuadtreeOptions)
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    let num_nodes = CellTree::build(&Device::cpu(), points, options).unwrap().num_nodes() as u64;
    let (point_bytes, node_bytes) = tree_bytes::<C, D>(points.len());
    for device in devices_for(points.len()) {
        let what = format!("{} {shape:?} points, {D} x {}, {options:?} on {device}", points.len(), C::NAME);
        let plan = CellTree::<[C; D], D>::plan(&device, points.len(), options);
        let planned_nodes = (plan.tree_bytes - point_bytes) / node_bytes;
        if shape == Shape::Uniform {
            assert!(num_nodes <= planned_nodes, "{what}: {num_nodes} nodes of {planned_nodes}");
        }
        let Some(gpu) = device.gpu() else {
            let tree = CellTree::build(&device, points, options).unwrap();
            assert!(tree.stats().temp_bytes <= plan.temp_bytes, "{what}");
            continue;
        };
        let frame_bytes = 8 * (1 + 3 * D as u64);
        // A node takes its bytes in the tree, and up to three times as much during the build.
        let more = num_nodes.saturating_sub(planned_nodes) * 4 * node_bytes;
        let limit = plan.tree_bytes + plan.temp_bytes + more;
        let limited = gpu.with_memory_limit(limit);
        let tree = CellTree::build(&Device::from_gpu(limited.clone()), points, options).unwrap();
        let is_in_core = tree.stats().phases.iter().any(|phase| phase.name == "build");
        assert!(is_in_core && tree.num_nodes() as u64 == num_nodes, "{what}: {:?}", tree.stats());
        let used = limited.memory_use();
        assert_eq!(used.live_bytes, point_bytes + num_nodes * node_bytes + frame_bytes, "{what}");
        assert!(used.peak_bytes <= limit, "{what}: {used:?}, {plan:?}");
        if shape == Shape::Uniform && points.len() >= 1000 && std::env::var_os("KAURI_ALLOC").is_none() {
            assert!(3 * used.peak_bytes >= limit, "{what}: {used:?}, {plan:?}");
        }
    }
}

#[test]
fn builds_take_what_their_plans_say() {
    for algorithm in [BuildAlgorithm::Codes, BuildAlgorithm::LEVELS] {
        let options = QuadtreeOptions::default().algorithm(algorithm);
        for n in [0, 1, 33, 300, 1000, 5000] {
            check(&Shape::Uniform.points::<f32, 2>(n, 1), Shape::Uniform, &options);
            check(&Shape::Uniform.points::<f64, 3>(n, 2), Shape::Uniform, &options);
        }
    }
}

#[test]
fn plans_cover_uneven_points() {
    for (i, shape) in Shape::ALL.into_iter().enumerate() {
        let algorithm = [BuildAlgorithm::Codes, BuildAlgorithm::LEVELS][i % 2];
        let options = QuadtreeOptions::default().algorithm(algorithm);
        for n in [33, 1000] {
            check(&shape.points::<f32, 2>(n, 3), shape, &options.clone().leaf_points(2));
            check(&shape.points::<f64, 3>(n, 4), shape, &options);
        }
    }
}

#[test]
fn plans_by_options() {
    for device in devices_for(1) {
        let plan = |options: &QuadtreeOptions| Quadtree::<[f32; 2]>::plan(&device, 100_000, options);
        let options = QuadtreeOptions::default();
        let plain = plan(&options);
        // A root alone.
        let root = plan(&options.clone().max_depth(0));
        let frame_bytes = if device.gpu().is_some() { 8 * 7 } else { 0 };
        assert_eq!(root.tree_bytes, 12 * 100_000 + 24 + frame_bytes);
        assert_eq!(plan(&options.clone().leaf_points(100_000)), root);
        // A root and its children.
        assert!(plan(&options.clone().max_depth(1)).tree_bytes >= root.tree_bytes + 4 * 24);
        assert!(plan(&options.clone().leaf_points(2)).tree_bytes > plain.tree_bytes);
        // A tree over `i32` stores them; `i64` are converted to `f64` in a copy.
        let of_f64 = Quadtree::<[f64; 2]>::plan(&device, 1000, &options);
        let of_i32 = Quadtree::<[i32; 2]>::plan(&device, 1000, &options);
        let of_i64 = Quadtree::<[i64; 2]>::plan(&device, 1000, &options);
        assert_eq!(of_i32.tree_bytes, of_f64.tree_bytes - 8000);
        assert!(of_i32.temp_bytes <= of_f64.temp_bytes);
        assert_eq!(of_i64.tree_bytes, of_f64.tree_bytes);
        assert_eq!(of_i64.temp_bytes, of_f64.temp_bytes + 16_000);
        // As many points as there may be.
        let most = |num_points| Octree::<[f32; 3]>::plan(&device, num_points, &options);
        assert_eq!(most(MAX_POINTS as usize), most(usize::MAX));
        let sum = |plan: MemoryPlan| plan.tree_bytes + plan.temp_bytes;
        assert!(sum(most(usize::MAX)) > sum(most(1 << 31)));
    }
}

#[test]
fn out_of_core_builds_keep_to_their_plans() {
    let options = QuadtreeOptions::default().leaf_points(3);
    for (n, limit) in [(33, u64::MAX), (3000, u64::MAX), (3000, 400_000)] {
        let points = Shape::Uniform.points::<f32, 2>(n, 5);
        for device in devices_for(n) {
            let Some(gpu) = device.gpu() else { continue };
            for out_of_core in [OutOfCore::Streamed, OutOfCore::CpuTop] {
                let options = options.clone().out_of_core(out_of_core);
                let limited = gpu.with_memory_limit(limit);
                let device = Device::from_gpu(limited.clone());
                let plan = Quadtree::<[f32; 2]>::plan(&device, points.len(), &options);
                assert!(plan.temp_bytes <= limit);
                Quadtree::build(&device, &points, &options).unwrap();
                let peak_bytes = limited.memory_use().peak_bytes;
                assert!(peak_bytes <= plan.temp_bytes, "{out_of_core:?}, {limit}: {peak_bytes}, {plan:?}");
            }
        }
    }
}
