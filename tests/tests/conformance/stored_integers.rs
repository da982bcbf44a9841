//! Trees store `i32` as they are: every operation returns the bits that a tree over the same numbers in `f64` returns, in less memory.

use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::join::{DistanceJoin, KnnJoin};
use kauri::kdtree::{BuildAlgorithm, SplitRule};
use kauri::quadtree::{CartesianPoint, CellTree, Octree, OutOfCore, QuadtreeOptions};
use kauri::query::{DeviceIndex, DeviceQueries, Norm, PointMask, Queries, QueryOptions};
use kauri::{Batches, Device, KdTree, KdTreeOptions, Neighbor, Point, Result, Rows, SpatialIndex};
use kauri_kernels::thread::coord::Coord;
use kauri_tests::generate::Random;
use kauri_tests::{devices, devices_for};
use std::ops::ControlFlow::Continue;

/// Generates points; some coordinates are on a coarse lattice, and some are the least and the greatest `i32`.
fn points<const D: usize>(n: usize, seed: u64) -> Vec<[i32; D]> {
    let mut random = Random::new(seed);
    let mut number = |i: usize| match i % 5 {
        0 => [i32::MIN, i32::MAX, i32::MIN + 1, 0][random.below(4) as usize],
        1 | 2 => random.below(7) as i32 - 3,
        _ => random.below(1 << 32) as u32 as i32,
    };
    (0..n).map(|i| std::array::from_fn(|axis| number(i + axis))).collect()
}

fn widened<const D: usize>(points: &[[i32; D]]) -> Vec<[f64; D]> {
    points.iter().map(|point| point.map(f64::from)).collect()
}

/// Options that the kernels of few dimensions answer, and options for the general kernels.
fn options<P: Point<Coord: Coord<Distance = f64>>>(n: usize, i: usize) -> QueryOptions<P> {
    let default = QueryOptions::default();
    match i {
        0 => default,
        1 => default.radius(2e9),
        2 => default.mask(PointMask::from_fn(n, |id| id % 3 != 1).unwrap()),
        3 => default.norm(Norm::Manhattan),
        _ => default.norm(Norm::Chebyshev).periods(vec![(1_u64 << 33) as f64; P::DIMS]),
    }
}

fn same_rows(found: &Rows<Neighbor<f64>>, expected: &Rows<Neighbor<f64>>, what: &str) {
    assert_eq!(found.offsets(), expected.offsets(), "{what}");
    assert_eq!((found.ids(), found.dist2()), (expected.ids(), expected.dist2()), "{what}");
}

/// Compares the queries to an index with those to one over `f64`, whose rows are in the same order.
fn same_queries<const D: usize>(
    index: &impl SpatialIndex<Point = [i32; D]>,
    wide: &impl SpatialIndex<Point = [f64; D]>,
    queries: &[[i32; D]],
    what: &str,
) {
    let (n, wide_queries) = (index.num_points(), widened(queries));
    // The simulator runs the tests of few points.
    let is_thorough = n > 33;
    for i in 0..5 {
        let (options, wide_options) = (options(n, i), options(n, i));
        let what = format!("{what}, options {i}");
        let sources = if is_thorough { 0..3 } else { i % 3..i % 3 + 1 };
        for source in sources {
            let (queries, wide_queries) = (source_of(queries, source), source_of(&wide_queries, source));
            let (all_ks, all_radii) = ([1, 8, 32, 100, 300], [0.0, 5.0, 3e9, 1e11]);
            let (ks, radii) = match (is_thorough, source) {
                (true, 0) => (&all_ks[..], &all_radii[..]),
                (true, _) => (&all_ks[..2], &all_radii[..2]),
                (false, _) => (&all_ks[i..i + 1], &all_radii[i % 4..i % 4 + 1]),
            };
            for &k in ks {
                let found = index.nearest_with(queries, k, &options).unwrap();
                let expected = wide.nearest_with(wide_queries, k, &wide_options).unwrap();
                assert_eq!(found.ids(), expected.ids(), "{k} nearest, {what}, {source}");
                assert_eq!(found.dist2(), expected.dist2(), "{k} nearest, {what}, {source}");
            }
            for &radius in radii {
                let found = index.within(queries, radius, &options).unwrap();
                let expected = wide.within(wide_queries, radius, &wide_options).unwrap();
                same_rows(&found, &expected, &format!("{what}, {source}, within {radius}"));
                let counts = index.count_within(queries, radius, &options).unwrap();
                assert_eq!(counts, wide.count_within(wide_queries, radius, &wide_options).unwrap(), "{what}");
            }
        }
    }
    let mut batches = Batches::new().rows(3);
    let (mut ids, mut dist2) = (Vec::new(), Vec::new());
    let all = QueryOptions::default();
    index
        .nearest_batches(queries, 5, &all, &mut batches, |batch| {
            ids.extend_from_slice(batch.ids());
            dist2.extend_from_slice(batch.dist2());
            Continue(())
        })
        .unwrap();
    let expected = wide.nearest(&wide_queries, 5).unwrap();
    assert_eq!((&ids[..], &dist2[..]), (expected.ids(), expected.dist2()), "{what}");
    let (mut ids, mut dist2) = (Vec::new(), Vec::new());
    index
        .within_batches(queries, 3e9, &all, &mut batches, |batch| {
            ids.extend_from_slice(batch.ids());
            dist2.extend_from_slice(batch.dist2());
            Continue(())
        })
        .unwrap();
    let expected = wide.within(&wide_queries, 3e9, &QueryOptions::default()).unwrap();
    assert_eq!((&ids[..], &dist2[..]), (expected.ids(), expected.dist2()), "{what}");

    let mut boxes: Vec<[[i32; D]; 2]> = queries.windows(2).map(|pair| [pair[0], pair[1]]).collect();
    boxes.push([[i32::MIN; D], [i32::MAX; D]]);
    boxes.extend(queries.windows(2).map(|pair| {
        let side = |of: fn(i32, i32) -> i32| std::array::from_fn(|axis| of(pair[0][axis], pair[1][axis]));
        [side(std::cmp::min), side(std::cmp::max)]
    }));
    let wide_boxes: Vec<_> =
        boxes.iter().map(|corners| corners.map(|corner| corner.map(f64::from))).collect();
    let mask = PointMask::from_fn(n, |id| id % 4 > 0).unwrap();
    for mask in [None, Some(&mask)] {
        let (found, expected) =
            (index.in_boxes(&boxes, mask).unwrap(), wide.in_boxes(&wide_boxes, mask).unwrap());
        assert_eq!((found.offsets(), found.values()), (expected.offsets(), expected.values()), "{what}");
        let counts = index.count_in_boxes(&boxes, mask).unwrap();
        assert_eq!(counts, wide.count_in_boxes(&wide_boxes, mask).unwrap(), "{what}");
    }
}

/// Source 0 are these queries, the others are self-queries.
fn source_of<P>(queries: &[P], source: usize) -> Queries<'_, P> {
    if source == 0 { Queries::Points(queries) } else { Queries::SelfQuery { include_self: source == 1 } }
}

fn kdtrees<const D: usize>(n: usize, devices: Vec<Device>) {
    let (points, queries) = (points::<D>(n, n as u64), points::<D>(20, 1));
    let wide_points = widened(&points);
    for (device, split) in devices
        .iter()
        .flat_map(|device| [SplitRule::RoundRobin, SplitRule::Widest].map(|split| (device, split)))
    {
        let what = format!("{n} points of {D} dimensions by {split:?} on {device}");
        let options = KdTreeOptions::default().split(split);
        let wide = KdTree::build(&Device::cpu(), &wide_points, &options).unwrap();
        let by = |algorithm| KdTree::build(device, &points, &options.clone().algorithm(algorithm)).unwrap();
        let (tree, in_place) = (by(BuildAlgorithm::Selection), by(BuildAlgorithm::SelectionInPlace));
        for tree in [&tree, &in_place] {
            tree.verify().unwrap();
            assert_eq!(tree.node_ids().unwrap(), wide.node_ids().unwrap(), "{what}");
        }
        same_queries(&tree, &wide, &queries, &what);

        // The file of one device is the file of every other.
        let mut file = Vec::new();
        tree.write_to(&mut file).unwrap();
        let mut of_cpu = Vec::new();
        KdTree::build(&Device::cpu(), &points, &options).unwrap().write_to(&mut of_cpu).unwrap();
        assert!(file == of_cpu, "{what}");
        let loaded = KdTree::<[i32; D]>::read_from(device, &file[..]).unwrap();
        assert_eq!(loaded.nearest(&queries, 9).unwrap(), tree.nearest(&queries, 9).unwrap(), "{what}");
        assert!(KdTree::<[f64; D]>::read_from(device, &file[..]).is_err(), "{what}");
    }
}

#[test]
fn k_d_trees_equal_trees_of_floats() {
    for n in [0, 1, 2, 33, 700] {
        kdtrees::<1>(n, devices_for(n));
        kdtrees::<2>(n, devices_for(n));
        kdtrees::<3>(n, devices_for(n));
        kdtrees::<5>(n, devices_for(n));
    }
    kdtrees::<3>(5000, devices());
}

fn cell_trees<const D: usize>(n: usize, devices: Vec<Device>)
where
    [i32; D]: CartesianPoint<D, Coord = i32>,
    [f64; D]: CartesianPoint<D, Coord = f64>,
{
    let (points, queries) = (points::<D>(n, n as u64), points::<D>(20, 1));
    let wide_points = widened(&points);
    for (device, leaf_points) in devices.iter().flat_map(|device| [1, 20].map(|leaf| (device, leaf))) {
        let what = format!("{n} points of {D} dimensions, {leaf_points} a leaf, on {device}");
        let options = QuadtreeOptions::default().leaf_points(leaf_points);
        let wide = CellTree::build(&Device::cpu(), &wide_points, &options).unwrap();
        for out_of_core in [OutOfCore::WhereNeeded, OutOfCore::Streamed] {
            let tree = CellTree::build(device, &points, &options.clone().out_of_core(out_of_core)).unwrap();
            tree.verify().unwrap();
            assert_eq!(tree.nodes().unwrap(), wide.nodes().unwrap(), "{what}");
            assert_eq!(tree.ids().unwrap(), wide.ids().unwrap(), "{what}");
            let coords: Vec<f64> = tree.coords().unwrap().iter().map(|&x| x.into()).collect();
            assert_eq!(coords, *wide.coords().unwrap(), "{what}");
            let nodes: Vec<u32> = (0..tree.num_nodes() as u32).collect();
            for &node in &nodes {
                assert_eq!(tree.bounds(node).unwrap(), wide.bounds(node).unwrap(), "{what}");
            }
            let leaves = tree.leaf_of(&queries).unwrap();
            assert_eq!(leaves, wide.leaf_of(&widened(&queries)).unwrap(), "{what}");
            let some = &nodes[..nodes.len().min(100)];
            let (adjacent, expected) =
                (tree.adjacent_leaves(some).unwrap(), wide.adjacent_leaves(some).unwrap());
            assert_eq!(adjacent.offsets(), expected.offsets(), "{what}");
            assert_eq!(adjacent.values(), expected.values(), "{what}");
            for level in 0..=tree.depth() {
                let (found, expected) = (tree.level_of_detail(level), wide.level_of_detail(level));
                assert_eq!(found.unwrap(), expected.unwrap(), "level {level}, {what}");
            }
            same_queries(&tree, &wide, &queries, &what);

            let mut file = Vec::new();
            tree.write_to(&mut file).unwrap();
            let loaded = CellTree::<[i32; D], D>::read_from(device, &file[..]).unwrap();
            assert_eq!(loaded.coords().unwrap(), tree.coords().unwrap(), "{what}");
            assert!(CellTree::<[f64; D], D>::read_from(device, &file[..]).is_err(), "{what}");
        }
    }
}

#[test]
fn quadtrees_and_octrees_equal_trees_of_floats() {
    for n in [0, 1, 33, 1500] {
        cell_trees::<2>(n, devices_for(n));
        cell_trees::<3>(n, devices_for(n));
    }
}

/// Queries to an index in device memory equal those in host memory.
fn same_on_buffers(
    index: &impl DeviceIndex<Point = [i32; 3], StoredCoord = i32>,
    stream: &Stream,
    queries: &[[i32; 3]],
) -> Result<()> {
    let mut workspace = Workspace::new(stream.gpu());
    let coords = Buffer::from_slice(stream, queries.as_flattened(), "queries")?;
    let radius = 2e9;
    let prepared = index.prepare(stream, &QueryOptions::default().radius(radius))?;
    let on_buffer = DeviceQueries::Coordinates(&coords);
    let mut ids = Buffer::uninitialized(stream.gpu(), 3 * queries.len(), "ids")?;
    let mut dist2: Buffer<f64> = Buffer::uninitialized(stream.gpu(), 3 * queries.len(), "distances")?;
    index.nearest_on(stream, &mut workspace, on_buffer, 3, &prepared, &mut ids, &mut dist2)?;
    let expected = index.nearest_with(queries, 3, &QueryOptions::default().radius(radius))?;
    assert_eq!(ids.to_vec(stream)?, expected.ids());
    assert_eq!(dist2.to_vec(stream)?, expected.dist2());
    let found = index.all_within_on(stream, &mut workspace, on_buffer, &prepared)?;
    let expected = index.within(queries, radius, &QueryOptions::default())?;
    assert_eq!(found.ids.to_vec(stream)?, expected.ids());
    assert_eq!(found.dist2.to_vec(stream)?, expected.dist2());
    let found = index.all_in_boxes_on(stream, &mut workspace, &coords, &prepared)?;
    let boxes: Vec<[[i32; 3]; 2]> = queries.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    assert_eq!(found.ids.to_vec(stream)?, *index.in_boxes(&boxes, None)?.values());
    Ok(())
}

#[test]
fn integers_in_device_memory() -> Result<()> {
    let (points, queries) = (points::<3>(33, 6), points::<3>(10, 7));
    for device in devices_for(33) {
        let Some(gpu) = device.gpu() else { continue };
        let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
        let coords = Buffer::from_slice(&stream, points.as_flattened(), "points")?;
        let tree = KdTree::<[i32; 3]>::build_on(&stream, &mut workspace, &coords, &KdTreeOptions::default())?;
        same_on_buffers(&tree, &stream, &queries)?;
        let options = QuadtreeOptions::default().leaf_points(4);
        let octree = Octree::<[i32; 3]>::build_on(&stream, &mut workspace, &coords, &options)?;
        same_on_buffers(&octree, &stream, &queries)?;
    }
    Ok(())
}

#[test]
fn plans_of_integers_take_half_the_coordinates() {
    let n = 1_000_000;
    for device in devices_for(0) {
        let options = KdTreeOptions::default();
        let (plan, wide) =
            (KdTree::<[i32; 3]>::plan(&device, n, &options), KdTree::<[f64; 3]>::plan(&device, n, &options));
        let floats = KdTree::<[f32; 3]>::plan(&device, n, &options);
        assert_eq!(plan, floats, "{device}");
        assert!(wide.tree_bytes - plan.tree_bytes >= 12 * n as u64, "{device}");
        assert!(wide.temp_bytes >= plan.temp_bytes, "{device}");
        let options = QuadtreeOptions::default();
        let plan = CellTree::<[i32; 3], 3>::plan(&device, n, &options);
        let wide = CellTree::<[f64; 3], 3>::plan(&device, n, &options);
        assert_eq!(plan, CellTree::<[f32; 3], 3>::plan(&device, n, &options), "{device}");
        assert!(wide.tree_bytes - plan.tree_bytes >= 12 * n as u64, "{device}");
        // Balanced trees compute with `f64`, and convert the points: `i64` and the CPU in host memory, a GPU in its memory.
        let options = BalancedOptions::default();
        let mut plan = BalancedKdTree::<[i32; 3]>::plan(&device, n, &options);
        if !device.is_cpu() {
            plan.temp_bytes += 24 * n as u64;
        }
        assert_eq!(plan, BalancedKdTree::<[i64; 3]>::plan(&device, n, &options), "{device}");
    }
}

/// Joins and balanced trees convert integers to `f64`.
#[test]
fn joins_and_balanced_trees_of_integers() {
    let (points, others) = (points::<2>(33, 4), points::<2>(20, 5));
    let (wide_points, wide_others) = (widened(&points), widened(&others));
    for device in devices_for(33) {
        let rows = DistanceJoin::new(3e9).rows(&device, &points, &others).unwrap();
        let expected = DistanceJoin::new(3e9).rows(&device, &wide_points, &wide_others).unwrap();
        assert_eq!((rows.offsets(), rows.ids()), (expected.offsets(), expected.ids()), "{device}");
        let near = KnnJoin::new(3).within(3e9).run(&device, &points, &others).unwrap();
        let expected = KnnJoin::new(3).within(3e9).run(&device, &wide_points, &wide_others).unwrap();
        assert_eq!((near.ids(), near.dist2()), (expected.ids(), expected.dist2()), "{device}");
        let tree = BalancedKdTree::build(&device, &points, &BalancedOptions::default()).unwrap();
        let wide = BalancedKdTree::build(&device, &wide_points, &BalancedOptions::default()).unwrap();
        assert_eq!(tree.medians().unwrap(), wide.medians().unwrap(), "{device}");
        same_queries(&tree, &wide, &others, &format!("balanced tree on {device}"));
    }
}
