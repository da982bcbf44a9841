//! Reading results: iteration, single queries, and indexes built from the caller's items agree with the flat arrays.

use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::join::{Scored, TopKDistanceJoin};
use kauri::query::{NearestBatch, Queries, QueryOptions};
use kauri::rays::{Ray, RayIndex};
use kauri::sah::{SahOptions, SahTree};
use kauri::{
    Batches, Device, DistanceJoin, KdTree, KdTreeOptions, Neighbor, Octree, Point, Quadtree, QuadtreeOptions,
    RTree, Rows, RowsBatch, SpatialIndex,
};
use kauri_tests::generate::{Shape, queries};
use kauri_tests::{devices, devices_for};
use std::ops::ControlFlow::Continue;

fn build<P: Point>(device: &Device, points: &[P]) -> KdTree<P> {
    KdTree::build(device, points, &KdTreeOptions::default()).unwrap()
}

/// Pairs ids with distances, up to the padding.
fn neighbors(ids: &[u32], dist2: &[f32]) -> Vec<Neighbor<f32>> {
    let entries = ids.iter().zip(dist2).take_while(|&(&id, _)| id != u32::MAX);
    entries.map(|(&id, &dist2)| Neighbor { id, dist2 }).collect()
}

#[test]
fn iteration_over_neighbors_ends_before_the_padding() {
    let points = Shape::Lattice.points::<f32, 2>(7, 1);
    let queries = queries(&points, 5, 2);
    for device in devices_for(7) {
        let tree = build(&device, &points);
        for k in [0, 1, 7, 9] {
            let near = tree.nearest(&queries, k).unwrap();
            let rows: Vec<(usize, Vec<Neighbor<f32>>)> =
                (&near).into_iter().map(|(query, row)| (query, row.into_iter().collect())).collect();
            let expected = |query| {
                let entries = query * k..(query + 1) * k;
                (query, neighbors(&near.ids()[entries.clone()], &near.dist2()[entries]))
            };
            assert_eq!(rows, (0..queries.len()).map(expected).collect::<Vec<_>>(), "k = {k} on {device}");
            let mut next = 0;
            let visit = |batch: NearestBatch<'_, [f32; 2]>| {
                for (query, row) in batch {
                    assert_eq!((query, row.iter().collect()), rows[next], "k = {k} on {device}");
                    assert_eq!(row, near.row(query));
                    next += 1;
                }
                Continue(())
            };
            let mut batches = Batches::new().rows(2);
            tree.nearest_batches(&queries, k, &QueryOptions::default(), &mut batches, visit).unwrap();
            assert_eq!(next, queries.len());
        }
    }
}

#[test]
fn rows_are_iterated_with_their_numbers() {
    let points = Shape::Lattice.points::<f32, 2>(20, 3);
    let queries = queries(&points, 9, 4);
    let boxes: Vec<_> = queries.iter().map(|&low| [low, low.map(|x| x + 2.0)]).collect();
    let options = QueryOptions::default();
    for device in devices_for(20) {
        let tree = build(&device, &points);
        let found = tree.within(&queries, 1.5, &options).unwrap();
        let mut rows = Vec::new();
        for (query, row) in &found {
            assert_eq!(query, rows.len());
            let range = found.offsets()[query] as usize..found.offsets()[query + 1] as usize;
            let expected = neighbors(&found.ids()[range.clone()], &found.dist2()[range]);
            assert_eq!(row.iter().collect::<Vec<_>>(), expected, "on {device}");
            assert_eq!(
                (row.len(), row.first(), row.get(row.len())),
                (expected.len(), expected.first().copied(), None)
            );
            rows.push(expected);
        }
        assert_eq!(rows.len(), queries.len());
        let mut batched = Vec::new();
        let visit = |batch: RowsBatch<'_, Neighbor<f32>>| {
            assert_eq!(batch.rows().start, batched.len());
            batched.extend(batch.iter().map(|(_, row)| row.into_iter().collect::<Vec<_>>()));
            Continue(())
        };
        tree.within_batches(&queries, 1.5, &options, &mut Batches::new().rows(4), visit).unwrap();
        assert_eq!(batched, rows, "on {device}");

        let inside = tree.in_boxes(&boxes, None).unwrap();
        let flat: Vec<u32> = inside.iter().flat_map(|(_, row)| row.to_vec()).collect();
        assert!(flat == inside.ids() && inside == inside.clone(), "on {device}");
        let (offsets, ids) = inside.into_parts();
        assert_eq!((offsets.len(), ids), (boxes.len() + 1, flat));
    }
}

#[test]
fn debug_output_has_numbers_and_the_first_rows() {
    let points: Vec<[f32; 1]> = (0..20).map(|x| [x as f32]).collect();
    let tree = build(&Device::cpu(), &points);
    let options = QueryOptions::default().sorted();
    let found = tree.within(&points, 1.0, &options).unwrap();
    assert_eq!(
        format!("{found:?}"),
        "Rows { len: 20, values: 58, first_rows: [{0: 0.0, 1: 1.0}, {1: 0.0, 0: 1.0, 2: 1.0}, \
         {2: 0.0, 1: 1.0, 3: 1.0}, {3: 0.0, 2: 1.0, 4: 1.0}] }"
    );
    let near = tree.nearest(&points[..1], 2).unwrap();
    assert_eq!(format!("{near:?}"), "Neighbors { len: 1, k: 2, first_rows: [{0: 0.0, 1: 1.0}] }");
    assert!(near.clone() == near && near != tree.nearest(&points[1..2], 2).unwrap());
    let joined = DistanceJoin::new(30.0).rows(&Device::cpu(), &points[..1], &points).unwrap();
    let text = format!("{joined:?}");
    assert!(text.starts_with("Rows { len: 1, values: 20, first_rows: [["), "{text}");
    assert_eq!(text.matches(',').count(), 2 + 7, "at most eight values of a row: {text}");
    let none = Rows::<u32>::default();
    assert!(none.is_empty() && none.iter().next().is_none() && none.offsets() == [0]);
}

#[test]
fn hits_of_rays_and_best_pairs_are_iterated() {
    let mesh = kauri::mesh::Mesh::new(
        vec![
            [0.0, 0.0, 5.0],
            [2.0, 0.0, 5.0],
            [0.0, 2.0, 5.0],
            [0.0, 0.0, 7.0],
            [2.0, 0.0, 7.0],
            [0.0, 2.0, 7.0],
        ],
        vec![[0, 1, 2], [3, 4, 5]],
    )
    .unwrap();
    let rays = [[9.0, 9.0, 0.0], [0.5, 0.5, 0.0]].map(|origin| Ray::new(origin, [0.0, 0.0, 1.0]));
    for device in devices_for(2) {
        let all = SahTree::build(&device, &mesh, &SahOptions::default()).unwrap().all_hits(&rays).unwrap();
        let rows: Vec<Vec<u32>> =
            all.iter().map(|(_, row)| row.into_iter().map(|hit| hit.triangle).collect()).collect();
        assert_eq!(rows, [vec![], vec![0, 1]], "on {device}");
        assert_eq!(all.values().iter().map(|hit| hit.t).collect::<Vec<_>>(), [5.0, 7.0], "on {device}");
        assert_eq!(all.row(1).get(1), all.values().get(1));

        let points = [[0.0f32], [1.0], [2.0]];
        let scored = Scored::new(&points, &[1u32, 2, 3]).unwrap();
        let best = TopKDistanceJoin::new(0.5, 2).run(&device, scored, scored).unwrap();
        let lefts: Vec<u32> = (&best).into_iter().map(|pair| pair.left).collect();
        assert_eq!(lefts, [2, 1], "on {device}");
        assert!(best.clone().into_iter().eq(best.iter().copied()));
    }
}

/// Compares the calls for one query with the calls for many queries.
fn single_queries(index: &impl SpatialIndex<Point = [f32; 2]>, queries: &[[f32; 2]], what: &str) {
    let mut masked = QueryOptions::default().radius(1.5);
    masked.mask = Some(kauri::query::PointMask::from_fn(index.num_points(), |id| id % 3 > 0).unwrap());
    for k in [1, 5, 64, 65, 300] {
        for options in [QueryOptions::default(), masked.clone()] {
            let near = index.nearest_with(queries, k, &options).unwrap();
            for (query, row) in &near {
                let found = index.nearest_k_with(&queries[query], k, &options).unwrap();
                assert!(row.iter().eq(found.iter().copied()), "{k} of query {query}, {what}");
                let first = index.nearest_one_with(&queries[query], &options).unwrap();
                assert_eq!(first, row.first(), "query {query}, {what}");
            }
        }
        let near = index.nearest(queries, k).unwrap();
        for (query, row) in &near {
            assert!(
                row.iter().eq(index.nearest_k(&queries[query], k).unwrap()),
                "{k} of query {query}, {what}"
            );
            assert_eq!(index.nearest_one(&queries[query]).unwrap(), row.first(), "query {query}, {what}");
        }
    }
    assert!(index.nearest_k(&queries[0], 0).unwrap().is_empty());
    assert!(index.nearest_one(&[f32::NAN, 0.0]).is_err() && index.nearest_k(&[0.0, f32::NAN], 3).is_err());
}

#[test]
fn single_queries_equal_many_queries() {
    for num_points in [0, 1, 30, 200] {
        let points = Shape::Lattice.points::<f32, 2>(num_points, 5);
        let queries = Shape::Lattice.points::<f32, 2>(4, 6);
        let devices = if num_points <= 1 { devices_for(num_points) } else { devices() };
        for device in devices {
            let what = format!("{num_points} points on {device}");
            single_queries(&build(&device, &points), &queries, &what);
            let balanced = BalancedKdTree::build(&device, &points, &BalancedOptions::default()).unwrap();
            single_queries(&balanced, &queries, &what);
            let quadtree = Quadtree::build(&device, &points, &QuadtreeOptions::default()).unwrap();
            single_queries(&quadtree, &queries, &what);
        }
    }
}

#[test]
fn trees_are_built_over_points_of_items() {
    struct Item {
        at: [f64; 3],
        _name: String,
    }
    for num in [0, 20, 5000] {
        let points = Shape::Lattice.points::<f64, 3>(num, 7);
        let items: Vec<Item> = points.iter().map(|&at| Item { at, _name: format!("{at:?}") }).collect();
        for device in devices_for(num) {
            let own = Queries::SelfQuery { include_self: true };
            let near =
                |index: &KdTree<[f64; 3]>| index.nearest_with(own, 3, &QueryOptions::default()).unwrap();
            let by = KdTree::build_by(&device, &items, |item| item.at, &KdTreeOptions::default()).unwrap();
            let tree = build(&device, &points);
            assert!(near(&by).into_parts() == near(&tree).into_parts(), "{num} items on {device}");
            assert_eq!(by.stats().temp_bytes, tree.stats().temp_bytes + 24 * num as u64);
            let options = BalancedOptions::default();
            let by = BalancedKdTree::build_by(&device, &items, |item| item.at, &options).unwrap();
            let tree = BalancedKdTree::build(&device, &points, &options).unwrap();
            assert!(by.nodes().unwrap() == tree.nodes().unwrap(), "{num} items on {device}");
            let options = QuadtreeOptions::default();
            let by = Octree::build_by(&device, &items, |item| item.at, &options).unwrap();
            let tree = Octree::build(&device, &points, &options).unwrap();
            assert!(by.nodes().unwrap() == tree.nodes().unwrap(), "{num} items on {device}");
            assert!(by.ids().unwrap() == tree.ids().unwrap(), "{num} items on {device}");
            let near =
                |index: &RTree<[f64; 3]>| index.nearest_with(own, 3, &QueryOptions::default()).unwrap();
            let by = RTree::build_by(&device, &items, |item| item.at).unwrap();
            let tree = RTree::build(&device, &points).unwrap();
            assert!(near(&by).into_parts() == near(&tree).into_parts(), "{num} items on {device}");
            assert_eq!(by.stats().temp_bytes, tree.stats().temp_bytes + 24 * num as u64);
        }
    }
    let unusable = KdTree::build_by(&Device::cpu(), &[1.0, f32::NAN], |&x| [x], &KdTreeOptions::default());
    assert!(matches!(unusable, Err(kauri::Error::NonFinite { index: 1, .. })));
}

#[test]
fn points_of_mint_are_indexed_like_arrays() {
    let points = Shape::Lattice.points::<f32, 3>(30, 8);
    let of_mint: Vec<mint::Point3<f32>> = points.iter().map(|&point| point.into()).collect();
    let vectors: Vec<mint::Vector2<i32>> =
        points.iter().map(|&[x, y, _]| [x as i32, y as i32].into()).collect();
    for device in devices_for(30) {
        let near = build(&device, &of_mint).nearest(&of_mint, 4).unwrap().into_parts();
        assert!(near == build(&device, &points).nearest(&points, 4).unwrap().into_parts(), "on {device}");
        let arrays: Vec<[i32; 2]> = vectors.iter().map(|&vector| vector.into()).collect();
        let near = build(&device, &vectors).nearest(&vectors, 4).unwrap().into_parts();
        assert!(near == build(&device, &arrays).nearest(&arrays, 4).unwrap().into_parts(), "on {device}");
    }
    let unusable = mint::Point2 { x: 0.0, y: f64::INFINITY };
    let error = KdTree::build(&Device::cpu(), &[unusable], &KdTreeOptions::default()).unwrap_err();
    assert!(matches!(error, kauri::Error::NonFinite { index: 0, axis: 1, .. }), "{error}");
    let vector = mint::Vector3 { x: 1.0, y: 2.0, z: 3.0 };
    assert!(build(&Device::cpu(), &[vector]).nearest_one(&vector).unwrap().is_some());
}
