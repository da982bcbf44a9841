//! Quadtrees and octrees: compared with a naive recursive build, with k-d trees, and across devices.

use kauri::device::{Buffer, Stream, Workspace};
use kauri::quadtree::{
    CartesianPoint, CellTree, NO_NODE, Node, Octree, OutOfCore, Quadtree, QuadtreeOptions, RootCell,
};
use kauri::query::{
    DeviceIndex, DeviceQueries, Neighbors, Norm, PointMask, Queries, QueryOptions, num_found,
};
use kauri::research::quadtree::{BuildAlgorithm, LevelsOptions};
use kauri::{Batches, Device, Error, KdTree, KdTreeOptions, SpatialIndex, Step};
use kauri_tests::devices_for_shape;
use kauri_tests::generate::{Scalar, Shape};
use std::ops::ControlFlow;

const SIZES: [usize; 9] = [0, 1, 2, 21, 33, 100, 1025, 3000, 5000];

/// The contents of a tree.
#[derive(Debug, PartialEq)]
struct Lists<const D: usize> {
    nodes: Vec<Node>,
    cells: Vec<[[f64; D]; 2]>,
    ids: Vec<u32>,
}

impl<const D: usize> Lists<D> {
    fn of<C: Scalar>(tree: &CellTree<[C; D], D>) -> Self
    where
        [C; D]: CartesianPoint<D>,
    {
        let nodes = tree.nodes().unwrap().into_owned();
        let cells = (0..nodes.len()).map(|i| tree.bounds(i as u32).unwrap()).collect();
        Self { nodes, cells, ids: tree.ids().unwrap().into_owned() }
    }
}

/// Reference build: splits cells at their exact centers and distributes ids to the children, until a cell has few points.
fn naive<C: Scalar, const D: usize>(
    points: &[[C; D]],
    root: [[f64; D]; 2],
    depth: u32,
    options: &QuadtreeOptions,
) -> Lists<D> {
    struct Cell<const D: usize> {
        corners: [[f64; D]; 2],
        ids: Vec<u32>,
        start: u32,
        level: u32,
    }
    let ids = (0..points.len() as u32).collect();
    let mut level_cells = vec![Cell { corners: root, ids, start: 0, level: 0 }];
    let (mut lists, mut leaves) = (Lists { nodes: vec![], cells: vec![], ids: vec![] }, vec![]);
    let mut next = 1;
    while !level_cells.is_empty() {
        let mut children = vec![];
        for cell in level_cells {
            let splits = cell.ids.len() > options.leaf_points as usize && cell.level < depth;
            let end = cell.start + cell.ids.len() as u32;
            let first_child = if splits { next } else { 0 };
            lists.nodes.push(Node { start: cell.start, end, first_child, level: cell.level });
            lists.cells.push(cell.corners);
            if !splits {
                leaves.push((cell.start, cell.ids));
                continue;
            }
            next += 1 << D;
            let [low, high] = cell.corners;
            let middle: [f64; D] = std::array::from_fn(|axis| low[axis] + (high[axis] - low[axis]) / 2.0);
            let mut start = cell.start;
            for child in 0..1_usize << D {
                let is_upper = |axis: usize| child >> (D - 1 - axis) & 1 == 1;
                let is_inside = |&id: &u32| {
                    (0..D).all(|axis| (points[id as usize][axis].to_f64() >= middle[axis]) == is_upper(axis))
                };
                let ids: Vec<u32> = cell.ids.iter().copied().filter(is_inside).collect();
                let corners = [
                    std::array::from_fn(|axis| if is_upper(axis) { middle[axis] } else { low[axis] }),
                    std::array::from_fn(|axis| if is_upper(axis) { high[axis] } else { middle[axis] }),
                ];
                let len = ids.len() as u32;
                children.push(Cell { corners, ids, start, level: cell.level + 1 });
                start += len;
            }
        }
        level_cells = children;
    }
    leaves.sort();
    lists.ids = leaves.into_iter().flat_map(|(_, ids)| ids).collect();
    lists
}

/// Returns the number of levels before cells are too small for an `f64`.
fn depth<C: Scalar, const D: usize>(points: &[[C; D]], side: f64, options: &QuadtreeOptions) -> u32 {
    let exponent = |x: f64| (x.to_bits() >> 52 & 0x7FF) as i32 - 1023;
    let largest = points.iter().flatten().map(|x| x.to_f64().abs()).fold(0.0, f64::max);
    let least = (exponent(largest).max(-1022) - 52).max(-1021);
    (exponent(side) - least).clamp(0, options.max_depth as i32) as u32
}

fn check<C: Scalar, const D: usize>(points: &[[C; D]], shape: Shape, options: &QuadtreeOptions)
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    let mut expected = None;
    let algorithms = [BuildAlgorithm::Codes, BuildAlgorithm::LEVELS];
    let devices = devices_for_shape(shape, points.len());
    for (device, algorithm) in
        devices.iter().flat_map(|device| algorithms.map(|algorithm| (device, algorithm)))
    {
        let options = &options.clone().algorithm(algorithm);
        let what =
            || format!("{} {shape:?} points, {D} x {}, {options:?} on {device}", points.len(), C::NAME);
        let tree =
            CellTree::build(device, points, options).unwrap_or_else(|error| panic!("{}: {error}", what()));
        tree.verify().unwrap_or_else(|error| panic!("{}: {error}", what()));
        let expected = expected.get_or_insert_with(|| {
            let root = tree.bounds(0).unwrap();
            naive(points, root, depth(points, root[1][0] - root[0][0], options), options)
        });
        let lists = Lists::of(&tree);
        assert!(lists == *expected, "{}:\n{lists:?}\n{expected:?}", what());
        let coords: Vec<C> = lists.ids.iter().flat_map(|&id| points[id as usize]).collect();
        assert!(*tree.coords().unwrap() == coords, "{}", what());
        assert_eq!(tree.depth(), lists.nodes.last().unwrap().level, "{}", what());
        let is_overfull = |node: &Node| node.is_leaf() && node.len() > options.leaf_points;
        let overfull = (0..lists.nodes.len()).filter(|&i| is_overfull(&lists.nodes[i])).map(|i| i as u32);
        assert!(tree.overfull_leaves().unwrap().into_iter().eq(overfull), "{}", what());
    }
}

fn equal_to_the_naive_build<C: Scalar, const D: usize>()
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    for (i, n) in SIZES.into_iter().enumerate() {
        for shape in Shape::ALL {
            let points = shape.points::<C, D>(n, i as u64);
            let options = QuadtreeOptions::default();
            let options = match i % 3 {
                0 => options,
                1 => options.leaf_points(1),
                _ => options.leaf_points(200).max_depth(5),
            };
            check(&points, shape, &options);
        }
    }
}

#[test]
fn quadtrees_equal_the_naive_build_f32() {
    equal_to_the_naive_build::<f32, 2>();
}

#[test]
fn quadtrees_equal_the_naive_build_f64() {
    equal_to_the_naive_build::<f64, 2>();
}

#[test]
fn octrees_equal_the_naive_build_f32() {
    equal_to_the_naive_build::<f32, 3>();
}

#[test]
fn octrees_equal_the_naive_build_f64() {
    equal_to_the_naive_build::<f64, 3>();
}

/// Degenerate input: deep trees, equal points, points on borders of cells.
#[test]
fn degenerate_points() {
    let options = QuadtreeOptions::default().leaf_points(3);
    let depths = [0, 1, 2, 3, 11, 16, 17, 31, 32].map(|depth| options.clone().max_depth(depth));
    // Two adjacent coordinates, and one far away.
    let near = [1.0_f32, 1.0_f32.next_up(), -7.5];
    let points: Vec<[f32; 2]> = (0..40).map(|i| [near[i * i % 3], near[i % 2]]).collect();
    depths.iter().for_each(|options| check(&points, Shape::FewDistinct, options));
    // Points on borders of cells, and just below.
    let borders: Vec<[f64; 3]> = (0..200)
        .map(|i| {
            [i % 8, i / 8 % 8, i % 5]
                .map(|x| if i % 3 == 0 { f64::from(x) } else { f64::from(x).next_down() })
        })
        .collect();
    depths.iter().for_each(|options| check(&borders, Shape::Lattice, options));
    // Powers of two: one point per level.
    let powers: Vec<[f64; 2]> = (0..60).map(|i| [0.5_f64.powi(i), -0.5_f64.powi(2 * i)]).collect();
    depths.iter().for_each(|options| check(&powers, Shape::Scales, options));
}

/// Level-by-level builds with blocks of every size, and with nodes that threads split.
#[test]
fn launch_parameters_of_level_by_level_builds() {
    let points = Shape::Clustered.points::<f32, 2>(3000, 1);
    let in_space = Shape::Clustered.points::<f64, 3>(3000, 1);
    let expected = Quadtree::build(&Device::cpu(), &points, &QuadtreeOptions::default()).unwrap();
    for device in devices_for_shape(Shape::Clustered, 1000) {
        let options = BuildAlgorithm::Levels(LevelsOptions::BY_THREADS);
        let options = QuadtreeOptions::default().algorithm(options);
        let tree = Quadtree::build(&device, &points, &options).unwrap();
        assert!(Lists::of(&tree) == Lists::of(&expected), "by threads on {device}");
        for (i, threads) in [4, 8, 16, 32, 64, 128, 256, 512].into_iter().enumerate() {
            let levels = LevelsOptions {
                threads: Some(threads),
                block_points: [u32::MAX, 200][i % 2],
                thread_points: [0, 30, 100, u32::MAX][i % 4],
                thread_level: [u32::MAX, 3, 1][i % 3],
                prunes: true,
            };
            let options = QuadtreeOptions::default().algorithm(BuildAlgorithm::Levels(levels));
            let tree = Quadtree::build(&device, &points, &options).unwrap();
            assert_eq!(tree.nodes().unwrap(), expected.nodes().unwrap(), "{levels:?} on {device}");
            assert_eq!(tree.ids().unwrap(), expected.ids().unwrap(), "{levels:?} on {device}");
            assert_eq!(tree.coords().unwrap(), expected.coords().unwrap(), "{levels:?} on {device}");
            let in_space = Octree::build(&device, &in_space, &options);
            assert_eq!(in_space.is_ok(), (32..=128).contains(&threads) || device.is_cpu());
        }
    }
}

/// Builds with null nodes, which are removed at the end.
#[test]
fn null_nodes_are_removed() {
    fn check_nulls<const D: usize>(n: usize, options: &QuadtreeOptions)
    where
        [f32; D]: CartesianPoint<D, Coord = f32>,
    {
        for shape in [Shape::Uniform, Shape::Clustered, Shape::Lattice] {
            let points = shape.points::<f32, D>(n, 1);
            let expected = Lists::of(&CellTree::build(&Device::cpu(), &points, options).unwrap());
            for device in kauri_tests::devices_for(n) {
                for (block_points, thread_points) in [(2048, 0), (2048, 8), (100, 8), (u32::MAX, u32::MAX)] {
                    let levels = LevelsOptions {
                        block_points,
                        thread_points,
                        prunes: false,
                        ..LevelsOptions::default()
                    };
                    let options = options.clone().algorithm(BuildAlgorithm::Levels(levels));
                    let tree = CellTree::build(&device, &points, &options).unwrap();
                    tree.verify()
                        .unwrap_or_else(|error| panic!("{n} {shape:?} points, {options:?}: {error}"));
                    assert!(Lists::of(&tree) == expected, "{n} {shape:?} points, {options:?}, {device}");
                }
            }
        }
    }
    let options = QuadtreeOptions::default().max_depth(5);
    check_nulls::<2>(500, &options);
    check_nulls::<3>(300, &options.clone().leaf_points(3).max_depth(3));
    check_nulls::<2>(30, &options);
    check_nulls::<2>(3, &options);
}

/// Leaves whose points are ranked by counting, sorted in one tile, or sorted in several.
#[test]
fn leaves_of_many_points() {
    for (n, most) in [(3000, 256), (3000, 257), (9000, 700), (9000, 2049), (30_000, 5000)] {
        for shape in [Shape::Uniform, Shape::Clustered, Shape::FewDistinct] {
            let options = QuadtreeOptions::default().leaf_points(most);
            check(&shape.points::<f32, 2>(n, 1), shape, &options);
            check(&shape.points::<f64, 3>(n, 2), shape, &options);
        }
    }
}

fn check_cell_queries<C: Scalar, const D: usize>(points: &[[C; D]], shape: Shape, options: &QuadtreeOptions)
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    for device in devices_for_shape(shape, points.len()) {
        let what = format!("{} {shape:?} points, {D} x {}, {options:?} on {device}", points.len(), C::NAME);
        let tree = CellTree::build(&device, points, options).unwrap();
        let Lists { nodes, cells, ids } = Lists::of(&tree);
        let leaves = (0..nodes.len() as u32).filter(|&i| nodes[i as usize].is_leaf()).collect::<Vec<_>>();
        // Points of the tree, and other points.
        let mut queries = kauri_tests::generate::queries(points, 50, 3);
        queries.extend(&points[..points.len().min(50)]);
        queries.push([C::LIMIT; D]);
        for (query, found) in queries.iter().zip(tree.leaf_of(&queries).unwrap()) {
            let has = |&&leaf: &&u32| {
                let [low, high] = cells[leaf as usize];
                (0..D).all(|axis| (low[axis]..high[axis]).contains(&query[axis].to_f64()))
            };
            assert_eq!(leaves.iter().find(has).copied().unwrap_or(NO_NODE), found, "{query:?}, {what}");
        }
        let targets: Vec<u32> = (0..nodes.len() as u32).step_by(1 + nodes.len() / 60).collect();
        let adjacent = tree.adjacent_leaves(&targets).unwrap();
        assert_eq!(adjacent.len(), targets.len());
        for (row, &target) in targets.iter().enumerate() {
            let cell = cells[target as usize];
            let overlaps = |leaf: u32, with_border: bool| {
                let other = cells[leaf as usize];
                (0..D).all(|axis| {
                    let (begin, end) = (cell[0][axis].max(other[0][axis]), cell[1][axis].min(other[1][axis]));
                    if with_border { begin <= end } else { begin < end }
                })
            };
            let touch = leaves.iter().copied().filter(|&leaf| overlaps(leaf, true) && !overlaps(leaf, false));
            let mut found = adjacent.row(row).to_vec();
            found.sort_unstable();
            assert_eq!(found, touch.collect::<Vec<_>>(), "adjacent to {target}, {what}");
        }
        let mut above: Vec<u32> = Vec::new();
        for level in 0..=tree.depth() + 1 {
            let mut sample = tree.level_of_detail(level).unwrap();
            let ends = |node: &Node| node.level == level || node.is_leaf() && node.level < level;
            let with_points = nodes.iter().filter(|node| ends(node) && !node.is_empty());
            let mut represented =
                with_points.map(|node| &ids[node.start as usize..node.end as usize]).collect::<Vec<_>>();
            assert_eq!(sample.len(), represented.len(), "level {level}, {what}");
            sample.sort_unstable();
            // Each represented node has exactly one sample, and the samples of the level above are among them.
            represented.retain(|ids| ids.iter().filter(|id| sample.binary_search(id).is_ok()).count() != 1);
            assert!(
                represented.is_empty() && above.iter().all(|id| sample.binary_search(id).is_ok()),
                "{what}"
            );
            above = sample;
        }
        let first = devices_for_shape(Shape::Uniform, points.len())[0].clone();
        let other = CellTree::build(&first, points, options).unwrap();
        assert_eq!(tree.level_of_detail(3).unwrap(), other.level_of_detail(3).unwrap(), "{what}");
        assert_eq!(adjacent, other.adjacent_leaves(&targets).unwrap(), "{what}");
    }
}

#[test]
fn leaves_and_samples() {
    let options = QuadtreeOptions::default();
    for shape in Shape::ALL {
        check_cell_queries(&shape.points::<f32, 2>(900, 1), shape, &options);
        check_cell_queries(&shape.points::<f64, 3>(500, 2), shape, &options.clone().leaf_points(3));
        check_cell_queries(
            &shape.points::<f64, 2>(33, 3),
            shape,
            &options.clone().leaf_points(1).max_depth(9),
        );
        check_cell_queries(&shape.points::<f32, 3>(33, 4), shape, &options.clone().leaf_points(2));
        check_cell_queries(&shape.points::<f32, 2>(0, 5), shape, &options);
    }
}

fn check_answers<C: Scalar, const D: usize>(points: &[[C; D]], shape: Shape, options: &QuadtreeOptions)
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    let index = KdTree::build(&Device::cpu(), points, &KdTreeOptions::default()).unwrap();
    let rows = |rows: kauri::Result<Neighbors<[C; D]>>| match rows {
        Ok(rows) => Ok((rows.ids().to_vec(), rows.dist2().to_vec())),
        Err(error) => Err(error.to_string()),
    };
    let mut queries = kauri_tests::generate::queries(points, 60, 3);
    queries.extend(&points[..points.len().min(20)]);
    let mask = PointMask::from_fn(points.len(), |id| id % 3 > 0).unwrap();
    let extent = |axis: usize| {
        let of_axis = points.iter().map(|point| point[axis].to_f64());
        of_axis.clone().fold(0.0, f64::max) - of_axis.fold(0.0, f64::min)
    };
    let radius = C::from_f64(0.1 * extent(0));
    let plain = QueryOptions::<[C; D]>::default();
    let all_rules =
        plain.clone().norm(Norm::Manhattan).mask(mask.clone()).radius(C::from_f64(0.6 * extent(0)));
    let periods: Vec<C> = (0..D).map(|axis| C::from_f64(1.25 * extent(axis))).collect();
    let periodic = plain.clone().periods(periods);
    let boxes: Vec<[[C; D]; 2]> = queries
        .windows(2)
        .map(|pair| {
            [
                std::array::from_fn(|i| pair[0][i].min(pair[1][i])),
                std::array::from_fn(|i| pair[0][i].max(pair[1][i])),
            ]
        })
        .collect();
    for device in devices_for_shape(shape, points.len()) {
        let what =
            || format!("{} {shape:?} points, {D} x {}, {options:?} on {device}", points.len(), C::NAME);
        let tree = CellTree::build(&device, points, options).unwrap();
        for (k, options) in [(1, &plain), (7, &plain), (40, &all_rules), (100, &plain)] {
            let [found, expected] =
                [tree.nearest_with(&queries, k, options), index.nearest_with(&queries, k, options)];
            let [found, expected] = [found, expected].map(rows);
            assert!(found == expected, "{k} nearest, {}", what());
        }
        for options in [&plain, &periodic] {
            let own = Queries::SelfQuery { include_self: false };
            let [found, expected] = [tree.nearest_with(own, 3, options), index.nearest_with(own, 3, options)];
            // Both refuse periods shorter than the points reach.
            let [found, expected] = [found, expected].map(rows);
            assert!(found == expected, "nearest of their own, {}", what());
        }
        for options in [&plain, &all_rules] {
            let counts = tree.count_within(&queries, radius, options).unwrap();
            assert_eq!(counts, index.count_within(&queries, radius, options).unwrap(), "{}", what());
            let sorted = options.clone().sorted();
            let [found, expected] =
                [tree.within(&queries, radius, &sorted), index.within(&queries, radius, &sorted)];
            let [found, expected] = [found, expected].map(|found| {
                let found = found.unwrap();
                (found.offsets().to_vec(), found.ids().to_vec(), found.dist2().to_vec())
            });
            assert!(found == expected, "within, {}", what());
        }
        for mask in [None, Some(&mask)] {
            let counts = tree.count_in_boxes(&boxes, mask).unwrap();
            assert_eq!(counts, index.count_in_boxes(&boxes, mask).unwrap(), "{}", what());
            let [found, expected] =
                [tree.in_boxes(&boxes, mask), index.in_boxes(&boxes, mask)].map(Result::unwrap);
            let in_tree_order = tree.ids().unwrap();
            for row in 0..boxes.len() {
                let (mut ids, mut others) = (found.row(row).to_vec(), expected.row(row).to_vec());
                let tree_index = |id: &u32| in_tree_order.iter().position(|other| other == id);
                assert!(ids.is_sorted_by_key(tree_index), "not in tree order, {}", what());
                ids.sort_unstable();
                others.sort_unstable();
                assert_eq!(ids, others, "box {row}, {}", what());
            }
        }
    }
}

#[test]
fn answers_equal_those_of_a_kd_tree() {
    let options = QuadtreeOptions::default();
    for shape in Shape::ALL {
        check_answers(&shape.points::<f32, 2>(900, 1), shape, &options);
        check_answers(&shape.points::<f64, 3>(500, 2), shape, &options.clone().leaf_points(3));
        check_answers(&shape.points::<f64, 2>(33, 3), shape, &options.clone().leaf_points(1).max_depth(9));
        check_answers(&shape.points::<f32, 3>(70, 4), shape, &options.clone().leaf_points(2));
        check_answers(&shape.points::<f32, 2>(0, 5), shape, &options);
    }
    // Enough queries for a GPU to sort them.
    check_answers(&Shape::Clustered.points::<f32, 2>(6000, 6), Shape::Clustered, &options);
}

/// Compares queries on device buffers with the calls on slices to a tree on the CPU.
fn check_on_buffers<C: Scalar, const D: usize>(points: &[[C; D]], shape: Shape, options: &QuadtreeOptions)
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    let mut queries = kauri_tests::generate::queries(points, 60, 3);
    queries.extend(&points[..points.len().min(20)]);
    let others = kauri_tests::generate::queries(points, 40, 9);
    for device in devices_for_shape(shape, points.len()) {
        let Some(gpu) = device.gpu() else { continue };
        let (stream, mut workspace) = (Stream::new(gpu).unwrap(), Workspace::new(gpu));
        let [coords, other_coords, query_coords] = [points, &others, &queries]
            .map(|points| Buffer::from_slice(&stream, points.as_flattened(), "points").unwrap());
        let mut tree = CellTree::<[C; D], D>::build_on(&stream, &mut workspace, &coords, options).unwrap();
        for (points, coords) in [(points, None), (&others[..], Some(&other_coords))] {
            let what =
                format!("{} {shape:?} points, {D} x {}, {options:?} on {device}", points.len(), C::NAME);
            if let Some(coords) = coords {
                tree.rebuild_on(&stream, &mut workspace, coords, options).unwrap();
            }
            let cpu = CellTree::build(&Device::cpu(), points, options).unwrap();
            for (k, self_query) in [(1, false), (8, true), (40, false)] {
                let own = Queries::SelfQuery { include_self: false };
                let (on_device, on_host) = match self_query {
                    true => (DeviceQueries::SelfQuery { include_self: false }, own),
                    false => (DeviceQueries::Coordinates(&query_coords), Queries::Points(&queries)),
                };
                let mask = PointMask::from_fn(points.len(), |id| id % 3 > 0).unwrap();
                let options = QueryOptions::default().mask(mask);
                let prepared = tree.prepare(&stream, &options).unwrap();
                let near = cpu.nearest_with(on_host, k, &options).unwrap();
                let mut ids = Buffer::uninitialized(gpu, near.ids().len(), "ids").unwrap();
                let mut dist2 = Buffer::uninitialized(gpu, near.ids().len(), "distances").unwrap();
                tree.nearest_on(&stream, &mut workspace, on_device, k, &prepared, &mut ids, &mut dist2)
                    .unwrap();
                assert!(ids.to_vec(&stream).unwrap() == near.ids(), "{k} nearest, {what}");
                assert!(dist2.to_vec(&stream).unwrap() == near.dist2(), "{k} nearest, {what}");
            }
            let mut leaves = Buffer::uninitialized(gpu, queries.len(), "leaves").unwrap();
            tree.leaf_of_on(&stream, &query_coords, &mut leaves).unwrap();
            assert_eq!(leaves.to_vec(&stream).unwrap(), cpu.leaf_of(&queries).unwrap(), "{what}");

            let targets: Vec<u32> = (0..cpu.num_nodes() as u32).step_by(1 + cpu.num_nodes() / 60).collect();
            let adjacent = cpu.adjacent_leaves(&targets).unwrap();
            let nodes = Buffer::from_slice(&stream, &targets, "nodes").unwrap();
            let all = tree.all_adjacent_leaves_on(&stream, &mut workspace, &nodes).unwrap();
            assert_eq!(all.offsets.to_vec(&stream).unwrap(), adjacent.offsets(), "{what}");
            assert_eq!(all.leaves.to_vec(&stream).unwrap(), adjacent.values(), "{what}");
            let mut offsets = Buffer::uninitialized(gpu, targets.len() + 1, "offsets").unwrap();
            for capacity in [0, adjacent.values().len() / 2, adjacent.values().len() + 3] {
                let mut leaves = Buffer::<u32>::uninitialized(gpu, capacity, "leaves").unwrap();
                leaves.fill_bytes(&stream, 0xA5).unwrap();
                tree.adjacent_leaves_on(&stream, &mut workspace, &nodes, &mut offsets, &mut leaves).unwrap();
                assert_eq!(num_found(&stream, &offsets).unwrap(), adjacent.values().len() as u64);
                let leaves = leaves.to_vec(&stream).unwrap();
                let (found, rest) = leaves.split_at(capacity.min(adjacent.values().len()));
                assert_eq!(found, &adjacent.values()[..found.len()], "{what}");
                assert!(rest.iter().all(|&leaf| leaf == 0xA5A5_A5A5), "{what}");
            }
        }
    }
}

/// Compares trees in cells with the proportions of the points across devices and algorithms.
fn check_in_bounding_box<C: Scalar, const D: usize>(
    points: &[[C; D]],
    shape: Shape,
    options: &QuadtreeOptions,
) where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    let options = &options.clone().root(RootCell::BoundingBox);
    let expected = CellTree::build(&Device::cpu(), points, options).unwrap();
    let lists = Lists::of(&expected);
    let [low, high] = expected.bounds(0).unwrap();
    for (axis, low) in low.into_iter().enumerate() {
        let coords = || points.iter().map(|point| point[axis].to_f64());
        assert!(points.is_empty() || low == coords().fold(f64::INFINITY, f64::min));
        assert!(coords().all(|x| x < high[axis]), "{shape:?}");
    }
    for device in devices_for_shape(shape, points.len()) {
        for algorithm in [BuildAlgorithm::Codes, BuildAlgorithm::LEVELS] {
            let options = options.clone().algorithm(algorithm);
            let what =
                format!("{} {shape:?} points, {D} x {}, {options:?} on {device}", points.len(), C::NAME);
            let tree = CellTree::build(&device, points, &options).unwrap();
            tree.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(Lists::of(&tree) == lists, "{what}");
            let (leaves, nodes, ids) = (tree.leaf_of(points).unwrap(), &lists.nodes, &lists.ids);
            for (id, &leaf) in leaves.iter().enumerate() {
                let node = nodes[leaf as usize];
                assert!(ids[node.start as usize..node.end as usize].contains(&(id as u32)), "{what}");
            }
        }
    }
    check_cell_queries(points, shape, options);
    check_answers(points, shape, options);
    check_on_buffers(points, shape, options);
}

#[test]
fn the_root_may_be_the_bounding_box() {
    let options = QuadtreeOptions::default().leaf_points(4);
    for shape in Shape::ALL {
        check_in_bounding_box(&shape.points::<f32, 2>(400, 1), shape, &options);
        check_in_bounding_box(&shape.points::<f64, 3>(200, 2), shape, &options);
        check_in_bounding_box(&shape.points::<f32, 3>(0, 3), shape, &options);
    }
    // Cells have the proportions of the points.
    let points: Vec<[f64; 2]> = (0..64).map(|i| [f64::from(i % 8) * 100.0, f64::from(i / 8)]).collect();
    let options = options.root(RootCell::BoundingBox);
    let tree = Quadtree::build(&Device::cpu(), &points, &options).unwrap();
    assert_eq!((tree.depth(), tree.num_nodes()), (2, 21));
    for (number, node) in (0..).zip(tree.nodes().unwrap().iter()) {
        let [low, high] = tree.bounds(number).unwrap();
        let side = f64::from(1 << node.level).recip();
        let [width, height] = [high[0] - low[0], high[1] - low[1]];
        assert!((width - 700.0 * side).abs() < 1e-6 && (height - 7.0 * side).abs() < 1e-6, "{number}");
    }
}

#[test]
fn queries_on_buffers() {
    let options = QuadtreeOptions::default();
    for shape in Shape::ALL {
        check_on_buffers(&shape.points::<f32, 2>(900, 1), shape, &options);
        check_on_buffers(&shape.points::<f64, 3>(400, 2), shape, &options.clone().leaf_points(3));
        check_on_buffers(&shape.points::<f64, 2>(33, 3), shape, &options.clone().leaf_points(1).max_depth(9));
        check_on_buffers(&shape.points::<f32, 3>(0, 4), shape, &options);
    }
}

#[test]
fn calls_on_buffers_that_are_refused() {
    let points = Shape::Uniform.points::<f32, 2>(300, 1);
    let host = Quadtree::build(&Device::cpu(), &points, &QuadtreeOptions::default()).unwrap();
    for device in kauri_tests::devices_for(points.len()) {
        let Some(gpu) = device.gpu() else { continue };
        let (stream, mut workspace) = (Stream::new(gpu).unwrap(), Workspace::new(gpu));
        let coords = Buffer::from_slice(&stream, points.as_flattened(), "points").unwrap();
        let options = QuadtreeOptions::default();
        let mut tree = Quadtree::<[f32; 2]>::build_on(&stream, &mut workspace, &coords, &options).unwrap();
        let prepared = tree.prepare(&stream, &QueryOptions::default()).unwrap();
        let of_host = host.prepare(&stream, &QueryOptions::default());
        assert!(matches!(of_host, Err(Error::NotOnGpu)), "{of_host:?}");
        let mut leaves = Buffer::<u32>::uninitialized(gpu, 300, "leaves").unwrap();
        let mut dist2 = Buffer::<f32>::uninitialized(gpu, 300, "distances").unwrap();
        assert!(matches!(host.leaf_of_on(&stream, &coords, &mut leaves), Err(Error::NotOnGpu)));
        let mut other = Quadtree::build(&Device::cpu(), &points, &options).unwrap();
        let refused = other.rebuild_on(&stream, &mut workspace, &coords, &options);
        assert!(matches!(refused, Err(Error::NotOnGpu)), "{refused:?}");

        let few = Buffer::from_slice(&stream, &[0.0_f32; 4], "few").unwrap();
        let uneven = Buffer::from_slice(&stream, &[0.0_f32; 5], "uneven").unwrap();
        for (queries, expected, got) in [(&few, 2, 300), (&uneven, 4, 5)] {
            let error = tree.leaf_of_on(&stream, queries, &mut leaves).unwrap_err();
            let is_shape =
                matches!(error, Error::Shape { expected: e, got: g, .. } if (e, g) == (expected, got));
            assert!(is_shape, "{error}");
        }
        // Numbers of no node have empty rows.
        let nodes = Buffer::from_slice(&stream, &[u32::MAX, tree.num_nodes() as u32, 0], "nodes").unwrap();
        let found = tree.all_adjacent_leaves_on(&stream, &mut workspace, &nodes).unwrap();
        assert_eq!(found.offsets.to_vec(&stream).unwrap(), [0; 4]);
        let mut offsets = Buffer::<u64>::uninitialized(gpu, 3, "offsets").unwrap();
        let refused = tree.adjacent_leaves_on(&stream, &mut workspace, &nodes, &mut offsets, &mut leaves);
        assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");

        // Options of the tree before a rebuild, also if the rebuild failed.
        let refused = tree.rebuild_on(&stream, &mut workspace, &uneven, &options);
        assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
        let own = DeviceQueries::SelfQuery { include_self: true };
        tree.nearest_on(&stream, &mut workspace, own, 1, &prepared, &mut leaves, &mut dist2).unwrap();
        tree.rebuild_on(&stream, &mut workspace, &coords, &options).unwrap();
        let refused = tree.nearest_on(&stream, &mut workspace, own, 1, &prepared, &mut leaves, &mut dist2);
        assert!(matches!(refused, Err(Error::OtherTree)), "{refused:?}");

        let Some(elsewhere) = kauri_tests::simulated().next() else { continue };
        let stream = Stream::new(elsewhere.gpu().unwrap()).unwrap();
        let refused = tree.leaf_of_on(&stream, &coords, &mut leaves);
        assert!(matches!(refused, Err(Error::WrongDevice { .. })), "{refused:?}");
        let refused = tree.rebuild_on(&stream, &mut workspace, &coords, &options);
        assert!(matches!(refused, Err(Error::WrongDevice { .. })), "{refused:?}");
    }
}

/// Compares rows of results, which have the same order in equal trees.
fn check_rows<C: Scalar, const D: usize>(
    tree: &CellTree<[C; D], D>,
    expected: &CellTree<[C; D], D>,
    points: &[[C; D]],
    what: &dyn Fn() -> String,
) where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    let queries = kauri_tests::generate::queries(points, 40, 3);
    let mask = PointMask::from_fn(points.len(), |id| id % 3 > 0).unwrap();
    let options = QueryOptions::default().mask(mask.clone());
    let radius = queries
        .first()
        .map_or(C::ZERO, |query| C::from_f64((query[0].to_f64() - queries[1][0].to_f64()).abs()));
    let boxes: Vec<_> = queries.windows(2).map(|pair| [pair[0], pair[1]]).collect();
    for query_set in [Queries::Points(&queries), Queries::SelfQuery { include_self: false }] {
        let [found, rows] = [tree, expected].map(|tree| tree.nearest_with(query_set, 5, &options).unwrap());
        assert!(found.ids() == rows.ids() && found.dist2() == rows.dist2(), "nearest, {}", what());
        let [found, rows] = [tree, expected].map(|tree| tree.within(query_set, radius, &options).unwrap());
        assert!(found.offsets() == rows.offsets() && found.ids() == rows.ids(), "within, {}", what());
        assert!(found.dist2() == rows.dist2(), "within, {}", what());
        let [found, counts] =
            [tree, expected].map(|tree| tree.count_within(query_set, radius, &options).unwrap());
        assert_eq!(found, counts, "{}", what());
    }
    let [found, rows] = [tree, expected].map(|tree| tree.in_boxes(&boxes, Some(&mask)).unwrap());
    assert_eq!(found, rows, "{}", what());
    let mut ids = Vec::new();
    let delivered = tree.nearest_batches(&queries, 3, &options, &mut Batches::new().rows(7), |batch| {
        ids.extend_from_slice(batch.ids());
        ControlFlow::Continue(())
    });
    delivered.unwrap();
    assert!(ids == expected.nearest_with(&queries, 3, &options).unwrap().ids(), "{}", what());
}

fn check_out_of_core<C: Scalar, const D: usize>(points: &[[C; D]], shape: Shape, options: &QuadtreeOptions)
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    let cpu = CellTree::build(&Device::cpu(), points, options).unwrap();
    let expected = Lists::of(&cpu);
    for gpu in devices_for_shape(shape, points.len()).iter().filter_map(Device::gpu) {
        for (limit, algorithm) in [
            (300_000, BuildAlgorithm::Codes),
            (400_000, BuildAlgorithm::LEVELS),
            (1 << 30, BuildAlgorithm::Codes),
        ] {
            for out_of_core in [OutOfCore::Streamed, OutOfCore::CpuTop] {
                let what = || {
                    format!(
                        "{} {shape:?} points, {out_of_core:?}, {limit} bytes, {algorithm:?}",
                        points.len()
                    )
                };
                let options = &options.clone().algorithm(algorithm).out_of_core(out_of_core);
                let device = Device::from_gpu(gpu.with_memory_limit(limit));
                let mut phases: Vec<&str> = Vec::new();
                let mut progress = |step: Step| {
                    assert!(step.total.is_some_and(|total| step.done <= total));
                    if phases.last() != Some(&step.phase) {
                        phases.push(step.phase);
                    }
                    ControlFlow::Continue(())
                };
                let tree = CellTree::build_with(&device, points, options, &mut progress)
                    .unwrap_or_else(|error| panic!("{}: {error}", what()));
                assert!(
                    out_of_core == OutOfCore::CpuTop
                        || phases.starts_with(&["counts", "batches", "subtrees"])
                );
                tree.verify().unwrap_or_else(|error| panic!("{}: {error}", what()));
                assert!(Lists::of(&tree) == expected, "{}", what());
                let coords: Vec<C> = expected.ids.iter().flat_map(|&id| points[id as usize]).collect();
                assert!(*tree.coords().unwrap() == coords, "{}", what());
                check_rows(&tree, &cpu, points, &what);
                assert!(device.gpu().unwrap().memory_use().peak_bytes <= limit);
            }
        }
    }
}

#[test]
fn trees_out_of_core() {
    let options = QuadtreeOptions::default();
    for (i, shape) in Shape::ALL.into_iter().enumerate() {
        let n = [0, 1, 100, 3000, 4001][i % 5];
        check_out_of_core(&shape.points::<f32, 2>(n, 1), shape, &options);
        check_out_of_core(&shape.points::<f64, 3>(2500, 2), shape, &options.clone().leaf_points(3));
    }
    check_out_of_core(&Shape::Clustered.points::<f32, 2>(9000, 6), Shape::Clustered, &options.max_depth(6));
}

#[test]
fn bad_input_is_named() {
    let options = QuadtreeOptions::default();
    for device in devices_for_shape(Shape::Uniform, 10) {
        let build = |points: &[[f32; 2]], options: &QuadtreeOptions| {
            Quadtree::build(&device, points, options).unwrap_err().to_string()
        };
        let points = [[0.0, 1.0], [0.0, f32::NAN]];
        let error = Quadtree::build(&device, &points, &options).unwrap_err();
        assert!(matches!(error, Error::NonFinite { index: 1, axis: 1, .. }), "{error}");
        assert_eq!(
            build(&[], &options.clone().leaf_points(0)),
            "points of a leaf 0: expected 1 to 4294967294"
        );
        assert_eq!(build(&[], &options.clone().max_depth(33)), "levels of a quadtree 33: expected 0 to 32");
        let tree = Quadtree::build(&device, &[[1.0_f32, 2.0]], &options).unwrap();
        assert_eq!(tree.bounds(1).unwrap_err().to_string(), "node 1: expected 0 to 0");
        assert_eq!(tree.adjacent_leaves(&[0, 1]).unwrap_err().to_string(), "node 1: expected 0 to 0");
        let error = tree.leaf_of(&[[0.0, f32::INFINITY]]).unwrap_err();
        assert!(matches!(error, Error::NonFinite { what: "query", index: 0, axis: 1, .. }), "{error}");
        assert!(matches!(tree.payloads_in_order(&[1, 2]), Err(Error::Shape { .. })));
        assert_eq!(tree.payloads_in_order(&["a"]).unwrap(), ["a"]);
    }
}

/// Cells over integers have integer corners.
#[test]
fn integers() {
    let points: Vec<[i32; 2]> = (0..500).map(|i| [i % 23 - 11, i32::MAX - i / 23]).collect();
    for device in devices_for_shape(Shape::Uniform, 500) {
        let tree = Quadtree::build(&device, &points, &QuadtreeOptions::default().leaf_points(4)).unwrap();
        tree.verify().unwrap();
        let [low, high] = tree.bounds(0).unwrap();
        assert_eq!(low, [-11.0, f64::from(i32::MAX) - 21.0]);
        assert_eq!([high[0] - low[0], high[1] - low[1]], [32.0, 32.0]);
    }
}

/// The root begins a fraction of a unit below the least point, so the cell of the points below 0 overlaps its image one period away.
#[test]
fn cells_that_reach_beyond_the_period() {
    const FAR: f64 = 1e150;
    let mut points: Vec<_> = (0..100).map(|i| [f64::from(i) / 100.0, -1.0]).collect();
    points.extend([[0.0, -FAR], [0.0, FAR]]);
    let options = QueryOptions::default().periods([0.0, 2.0 * FAR]);
    let queries = [[0.0, FAR], [0.0, -FAR]];
    for device in kauri_tests::devices_for(points.len()) {
        for algorithm in [BuildAlgorithm::Codes, BuildAlgorithm::LEVELS] {
            let tree =
                Quadtree::build(&device, &points, &QuadtreeOptions::default().algorithm(algorithm)).unwrap();
            let counts = tree.count_within(Queries::Points(&queries), 0.5, &options).unwrap();
            assert_eq!(counts, [2, 2], "on {device}, {algorithm:?}");
            let near = tree.nearest_with(Queries::Points(&queries), 2, &options).unwrap();
            assert_eq!(near.padded_row(0), (&[100, 101][..], &[0.0, 0.0][..]), "on {device}, {algorithm:?}");
        }
    }
}

/// Coordinates that are tiny compared with the cells: queries and `verify` agree that they are on their side of 0.
#[test]
fn tiny_coordinates_are_on_their_side_of_zero() {
    fn check<C: Scalar, const D: usize>(tiny: f64, far: f64)
    where
        [C; D]: CartesianPoint<D, Coord = C>,
    {
        let at = |x: f64, y: f64| std::array::from_fn(|axis| C::from_f64([x, y, 0.0][axis]));
        let mut points: Vec<[C; D]> = (0..25).map(|i| at(-tiny, f64::from(i))).collect();
        points.extend([at(far, 0.0), at(-far, 0.0), at(tiny, 1.0), at(0.0, 2.0), at(-0.0, 3.0)]);
        let boxes = [
            [at(-2.0 * tiny, -1.0), at(-tiny, 1000.0)],
            [at(-2.0 * tiny, -1.0), at(0.0, 1000.0)],
            [at(0.0, -1.0), at(2.0 * tiny, 1000.0)],
            [at(-tiny, 5.0), at(-tiny, 5.0)],
        ]
        .map(|[mut low, high]| {
            low.iter_mut().skip(2).for_each(|x| *x = C::from_f64(-1.0));
            [low, high]
        });
        for device in kauri_tests::devices_for(points.len()) {
            for algorithm in [BuildAlgorithm::Codes, BuildAlgorithm::LEVELS] {
                for leaf_points in [1, 4] {
                    let what = format!("{tiny:e} and {far:e}, {D}-D {} on {device}, {algorithm:?}", C::NAME);
                    let options = QuadtreeOptions::default().leaf_points(leaf_points).algorithm(algorithm);
                    let tree = CellTree::build(&device, &points, &options).unwrap();
                    tree.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert_eq!(tree.count_in_boxes(&boxes, None).unwrap(), [25, 27, 3, 1], "{what}");
                    let near = tree.nearest(&points, 1).unwrap();
                    assert!(near.dist2().iter().all(|&distance| distance == C::ZERO), "{what}");
                    // `leaf_of` returns the leaf that lists the point.
                    let (leaves, nodes, ids) =
                        (tree.leaf_of(&points).unwrap(), tree.nodes().unwrap(), tree.ids().unwrap());
                    for (id, &leaf) in leaves.iter().enumerate() {
                        let node = nodes[leaf as usize];
                        let of_leaf = &ids[node.start as usize..node.end as usize];
                        assert!(of_leaf.contains(&(id as u32)), "{what}, point {id}");
                    }
                }
            }
        }
    }
    for (tiny, far) in [(1e-200, 1e150), (5e-324, 1e150), (1e-300, 1.0), (1e-160, 1e153), (1e-20, 1e20)] {
        check::<f64, 2>(tiny, far);
        check::<f64, 3>(tiny, far);
    }
    for (tiny, far) in [(1e-45, 1e18), (1e-30, 1.0)] {
        check::<f32, 2>(tiny, far);
    }
}
