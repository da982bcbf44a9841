//! Queries with options on simulated devices: every kernel against the CPU, which the conformance tests compare with brute force.

use crate::{noise, on_each_schedule, on_each_schedule_in_turn};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::query::{DeviceIndex, DeviceQueries, Norm, PointMask, Queries, QueryOptions, Traversal};
use kauri::{Device, KdTree, KdTreeOptions, Point, Scalar, SpatialIndex};
use kauri_tests::oracle::DistanceOf;

/// Generates points in a cube of side 8, some of them equal.
pub(crate) fn points<C, const D: usize>(n: usize, seed: u64, coord: impl Fn(f64) -> C) -> Vec<[C; D]> {
    let numbers = noise(n * D, seed);
    numbers.chunks(D).map(|c| std::array::from_fn(|axis| coord((c[axis] % 250) as f64 / 31.25))).collect()
}

/// Compares nearest neighbors, points within a distance and their counts.
fn same<P: Point>(
    gpu: &Gpu,
    points: &[P],
    queries: &[P],
    ks: &[usize],
    options: &QueryOptions<P>,
    radius: DistanceOf<P>,
) {
    let expected = KdTree::build(&Device::cpu(), points, &KdTreeOptions::default()).unwrap();
    let tree = KdTree::build(&Device::from_gpu(gpu.clone()), points, &KdTreeOptions::default());
    let tree = tree.unwrap_or_else(|e| panic!("{e}"));
    for (query_set, name) in [
        (Queries::Points(queries), "points"),
        (Queries::SelfQuery { include_self: true }, "own"),
        (Queries::SelfQuery { include_self: false }, "others"),
    ] {
        for &k in ks {
            let near = expected.nearest_with(query_set, k, options).unwrap();
            let found = tree.nearest_with(query_set, k, options).unwrap_or_else(|e| panic!("{e}"));
            assert!(found.ids() == near.ids() && found.dist2() == near.dist2(), "k = {k}, {name}");
        }
        let counts = expected.count_within(query_set, radius, options).unwrap();
        assert!(
            tree.count_within(query_set, radius, options).unwrap_or_else(|e| panic!("{e}")) == counts,
            "{name}"
        );
        let rows = expected.within(query_set, radius, options).unwrap();
        let found = tree.within(query_set, radius, options).unwrap_or_else(|e| panic!("{e}"));
        assert!(found.offsets() == rows.offsets() && found.ids() == rows.ids(), "{name}");
        assert!(found.dist2() == rows.dist2(), "{name}");
    }
}

/// Each schedule runs one kernel; together the schedules run all of them.
#[test]
fn queries_with_options() {
    on_each_schedule_in_turn(13, |gpu, _, turn| {
        let (f32s, f64s, i32s) = (|x| x as f32, |x| x, |x| (x * 31.25) as i32);
        let (p2, q2) = (points::<f32, 2>(170, 1, f32s), points::<f32, 2>(40, 2, f32s));
        let (p3, q3) = (points::<f32, 3>(170, 3, f32s), points::<f32, 3>(40, 4, f32s));
        let (d3, e3) = (points::<f64, 3>(120, 5, f64s), points::<f64, 3>(40, 6, f64s));
        let (i3, j3) = (points::<i32, 3>(120, 5, i32s), points::<i32, 3>(40, 6, i32s));
        let (i2, j2) = (points::<i32, 2>(350, 7, i32s), points::<i32, 2>(30, 8, i32s));
        match turn {
            10 => same(gpu, &i3, &j3, &[1, 8, 20, 100], &QueryOptions::default(), 70.0),
            11 => same(gpu, &i2, &j2, &[1, 5, 32, 200, 300], &QueryOptions::default(), 40.0),
            12 => {
                let general = QueryOptions::default().norm(Norm::Chebyshev).periods([250.0; 3]);
                same(gpu, &i3, &j3, &[1, 20, 40, 150, 300], &general, 30.0);
            }
            0 => same(gpu, &p3, &q3, &[1, 8], &QueryOptions::default(), 1.0),
            1 => same(gpu, &p2, &q2, &[3, 16], &QueryOptions::default().coherent(), 0.5),
            2 => same(gpu, &p3, &q3, &[30], &QueryOptions::default().radius(3.0), 2.0),
            3 => same(gpu, &p2, &q2, &[100], &QueryOptions::default(), 0.0),
            4 => same(gpu, &d3, &e3, &[1, 7], &QueryOptions::default(), 2.5),
            5 => same(gpu, &d3, &e3, &[31, 200], &QueryOptions::default(), 20.0),
            6 => same(
                gpu,
                &p2,
                &q2,
                &[1, 9],
                &QueryOptions::default().norm(Norm::Manhattan).periods([8.0, 0.0]),
                1.0,
            ),
            7 => {
                let mask = PointMask::from_fn(170, |id| id % 5 == 2).unwrap();
                same(gpu, &p3, &q3, &[5, 300], &QueryOptions::default().mask(mask), 2.0);
            }
            8 => same(
                gpu,
                &d3,
                &e3,
                &[4],
                &QueryOptions::default().periods([8.0; 3]).norm(Norm::Chebyshev),
                1.0,
            ),
            _ => same(gpu, &p3, &q3, &[6], &QueryOptions::default().traversal(Traversal::StackFree), 1.0),
        }
    });
}

/// Enough queries on device buffers to be sorted by start bucket.
#[test]
fn ordered_queries_on_buffers() {
    on_each_schedule_in_turn(4, |gpu, stream, turn| {
        let k = [1, 8, 30, 100][turn];
        let (points, queries) =
            (points::<f32, 3>(1500, 7, |x| x as f32), points::<f32, 3>(1030, 8, |x| x as f32));
        let near = {
            let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default()).unwrap();
            tree.nearest(&queries, k).unwrap()
        };
        ordered(gpu, stream, &points, &queries, k, near.ids()).unwrap_or_else(|e| panic!("{e}"));
    });
}

fn ordered(
    gpu: &Gpu,
    stream: &Stream,
    points: &[[f32; 3]],
    queries: &[[f32; 3]],
    k: usize,
    expected: &[u32],
) -> kauri::Result<()> {
    let coords = Buffer::from_slice(stream, points.as_flattened(), "points")?;
    let queries_on = Buffer::from_slice(stream, queries.as_flattened(), "queries")?;
    let mut workspace = Workspace::new(gpu);
    let tree = KdTree::<[f32; 3]>::build_on(stream, &mut workspace, &coords, &KdTreeOptions::default())?;
    let prepared = tree.prepare(stream, &QueryOptions::default())?;
    let mut ids = Buffer::uninitialized(gpu, queries.len() * k, "ids")?;
    let mut dist2 = Buffer::uninitialized(gpu, queries.len() * k, "distances")?;
    let query_set = DeviceQueries::Coordinates(&queries_on);
    tree.nearest_on(stream, &mut workspace, query_set, k, &prepared, &mut ids, &mut dist2)?;
    assert!(ids.to_vec(stream)? == expected, "k = {k}");
    Ok(())
}

/// Boxes with and without points, by every kernel.
#[test]
fn points_in_boxes() {
    on_each_schedule(|gpu, _| {
        fn same<C: Scalar, const D: usize>(gpu: &Gpu, points: &[[C; D]], corners: &[[C; D]]) {
            let boxes: Vec<[[C; D]; 2]> = corners.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
            let expected = KdTree::build(&Device::cpu(), points, &KdTreeOptions::default()).unwrap();
            let tree =
                KdTree::build(&Device::from_gpu(gpu.clone()), points, &KdTreeOptions::default()).unwrap();
            let counts = tree.count_in_boxes(&boxes, None).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(counts, expected.count_in_boxes(&boxes, None).unwrap());
            let found = tree.in_boxes(&boxes, None).unwrap_or_else(|e| panic!("{e}"));
            let rows = expected.in_boxes(&boxes, None).unwrap();
            assert!(found.offsets() == rows.offsets() && found.ids() == rows.ids());
        }
        let (f32s, f64s, i32s) = (|x| x as f32, |x| x, |x| (x * 31.25) as i32);
        same(gpu, &points::<i32, 2>(100, 11, i32s), &points::<i32, 2>(40, 12, i32s));
        same(gpu, &points::<i32, 3>(100, 11, i32s), &points::<i32, 3>(40, 12, i32s));
        same(gpu, &points::<i32, 5>(100, 11, i32s), &points::<i32, 5>(40, 12, i32s));
        same(gpu, &points::<f32, 2>(200, 9, f32s), &points::<f32, 2>(80, 10, f32s));
        same(gpu, &points::<f32, 3>(100, 11, f32s), &points::<f32, 3>(40, 12, f32s));
        same(gpu, &points::<f32, 1>(100, 11, f32s), &points::<f32, 1>(40, 12, f32s));
        same(gpu, &points::<f64, 2>(100, 11, f64s), &points::<f64, 2>(40, 12, f64s));
        same(gpu, &points::<f64, 3>(100, 11, f64s), &points::<f64, 3>(40, 12, f64s));
        same(gpu, &points::<f64, 5>(100, 11, f64s), &points::<f64, 5>(40, 12, f64s));
    });
}

/// Many equal points, so that least ids decide which nodes a traversal visits; by the kernels of every number of neighbors.
#[test]
fn queries_among_equal_points() {
    on_each_schedule_in_turn(8, |gpu, _, turn| {
        let (all, three) = (|_| [1.5, 1.5], |i: usize| [[-9.0, 4.0], [1.5, 1.5], [30.0, -2.0]][i % 3]);
        let points: Vec<[f32; 2]> =
            if turn % 2 == 0 { (0..300).map(all).collect() } else { (0..300).map(three).collect() };
        let queries = [[1.5, 1.5], [-9.0, 4.0], [0.0, 7.0], [3e6, 1e6], [10.0, 10.0]];
        let exact: Vec<_> = points.iter().map(|point| point.map(f64::from)).collect();
        let exact_queries = queries.map(|query| query.map(f64::from));
        let (default, buckets) =
            (QueryOptions::default(), QueryOptions::default().traversal(Traversal::Buckets));
        match turn / 2 {
            0 => same(gpu, &points, &queries, &[1, 8], &default, 12.0),
            1 => same(gpu, &points, &queries, &[16, 30, 100], &buckets, 0.0),
            2 => same(
                gpu,
                &exact,
                &exact_queries,
                &[1, 3, 20, 130],
                &QueryOptions::default().traversal(Traversal::Buckets),
                35.0,
            ),
            _ => same(gpu, &points, &queries, &[5, 300], &default.norm(Norm::Chebyshev), 30.0),
        }
    });
}
