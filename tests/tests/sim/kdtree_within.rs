//! Range queries on device buffers, against the calls on slices, up to the capacity of the buffers.

use crate::query::{
    points, {self},
};
use crate::{on_each_schedule, on_each_schedule_in_turn};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::query::{DeviceIndex, DeviceQueries, DeviceWithin, PointMask, Queries, QueryOptions, num_found};
use kauri::{
    BalancedKdTree, BalancedOptions, Device, Error, KdTree, KdTreeOptions, Octree, QuadtreeOptions, Result,
    SpatialIndex,
};

type Tree = KdTree<[f32; 3]>;

/// The rows that the CPU finds: offsets, ids and distances, no distances in boxes.
type Expected = (Vec<u64>, Vec<u32>, Vec<f32>);

/// The contents after the last result, which no call changes.
const UNTOUCHED: u8 = 0xA5;
const UNTOUCHED_ID: u32 = 0xA5A5_A5A5;

/// Compares results in buffers of the exact size.
fn same(stream: &Stream, found: &DeviceWithin<f32>, (offsets, ids, dist2): &Expected) -> Result<()> {
    assert!(found.offsets.to_vec(stream)? == *offsets);
    assert!(found.ids.to_vec(stream)? == *ids);
    assert!(found.dist2.to_vec(stream)? == *dist2);
    Ok(())
}

/// Returns capacities: none, half, exact, and more.
fn capacities(num_points: usize) -> [usize; 4] {
    [0, num_points / 2, num_points, num_points + 9]
}

/// Compares the offsets, and the ids up to the capacity.
fn same_front(stream: &Stream, offsets: &Buffer<u64>, ids: &Buffer<u32>, expected: &Expected) {
    assert!(offsets.to_vec(stream).unwrap() == expected.0);
    assert_eq!(num_found(stream, offsets).unwrap(), expected.1.len() as u64);
    let ids = ids.to_vec(stream).unwrap();
    let (found, rest) = ids.split_at(ids.len().min(expected.1.len()));
    assert!(found == &expected.1[..found.len()]);
    assert!(rest.iter().all(|&id| id == UNTOUCHED_ID));
}

fn untouched<T: cust_core::DeviceCopy>(stream: &Stream, len: usize) -> Buffer<T> {
    let mut buffer = Buffer::uninitialized(stream.gpu(), len, "capacity").unwrap();
    buffer.fill_bytes(stream, UNTOUCHED).unwrap();
    buffer
}

/// An index on a GPU, and an index on the CPU with the same order of points.
struct Case<'a, T> {
    stream: &'a Stream,
    workspace: Workspace,
    tree: T,
    expected: T,
}

impl<T: DeviceIndex<Point = [f32; 3], StoredCoord = f32>> Case<'_, T> {
    fn within(&mut self, query_set: Queries<'_, [f32; 3]>, options: &QueryOptions<[f32; 3]>) -> Result<()> {
        let Self { stream, workspace, tree, expected } = self;
        let radius = options.radius.unwrap();
        let expected_counts = expected.count_within(query_set, radius, options)?;
        let (expected_offsets, (expected_ids, expected_dist2)) =
            expected.within(query_set, radius, options)?.into_parts();
        let expected = (expected_offsets, expected_ids, expected_dist2);
        let coords = match query_set {
            Queries::Points(points) => Buffer::from_slice(stream, points.as_flattened(), "queries")?,
            Queries::SelfQuery { .. } => Buffer::from_slice(stream, &[], "queries")?,
        };
        let query_set = match query_set {
            Queries::Points(_) => DeviceQueries::Coordinates(&coords),
            Queries::SelfQuery { include_self } => DeviceQueries::SelfQuery { include_self },
        };
        let prepared = tree.prepare(stream, options)?;

        let mut counts = untouched(stream, expected_counts.len());
        tree.count_within_on(stream, workspace, query_set, &prepared, &mut counts)?;
        assert!(counts.to_vec(stream)? == expected_counts);
        same(stream, &tree.all_within_on(stream, workspace, query_set, &prepared)?, &expected)?;
        let mut offsets = untouched(stream, expected.0.len());
        for capacity in capacities(expected.1.len()) {
            let (mut ids, mut dist2) = (untouched(stream, capacity), untouched::<f32>(stream, capacity));
            let allocated = stream.gpu().memory_use().allocations;
            let (output, distances) = (&mut ids, Some(&mut dist2));
            tree.within_on(stream, workspace, query_set, &prepared, &mut offsets, output, distances)?;
            assert_eq!(stream.gpu().memory_use().allocations, allocated, "allocates nothing");
            same_front(stream, &offsets, &ids, &expected);
            let found = capacity.min(expected.1.len());
            assert!(dist2.front_to_vec(stream, found)? == expected.2[..found]);
        }
        // Without distances.
        let mut ids = untouched(stream, expected.1.len());
        tree.within_on(stream, workspace, query_set, &prepared, &mut offsets, &mut ids, None)?;
        same_front(stream, &offsets, &ids, &expected);
        Ok(())
    }

    fn in_boxes(&mut self, boxes: &[[[f32; 3]; 2]], mask: Option<PointMask>) -> Result<()> {
        let Self { stream, workspace, tree, expected } = self;
        let expected_counts = expected.count_in_boxes(boxes, mask.as_ref())?;
        let (expected_offsets, expected_ids) = expected.in_boxes(boxes, mask.as_ref())?.into_parts();
        let expected = (expected_offsets, expected_ids, Vec::new());
        // No radius is needed.
        let mut options = QueryOptions::default();
        options.mask = mask;
        let prepared = tree.prepare(stream, &options)?;
        let boxes = Buffer::from_slice(stream, boxes.as_flattened().as_flattened(), "boxes")?;

        let mut counts = untouched(stream, expected_counts.len());
        tree.count_in_boxes_on(stream, workspace, &boxes, &prepared, &mut counts)?;
        assert!(counts.to_vec(stream)? == expected_counts);
        same(stream, &tree.all_in_boxes_on(stream, workspace, &boxes, &prepared)?, &expected)?;
        let mut offsets = untouched(stream, expected.0.len());
        for capacity in capacities(expected.1.len()) {
            let mut ids = untouched(stream, capacity);
            tree.in_boxes_on(stream, workspace, &boxes, &prepared, &mut offsets, &mut ids)?;
            same_front(stream, &offsets, &ids, &expected);
        }
        Ok(())
    }
}

/// Each schedule runs one kind of call.
#[test]
fn points_found_on_buffers() {
    on_each_schedule_in_turn(20, |gpu, stream, turn| {
        run(gpu, stream, turn).unwrap_or_else(|e| panic!("{e}"));
    });
}

fn run(gpu: &Gpu, stream: &Stream, turn: usize) -> Result<()> {
    let points = points::<f32, 3>(400, 21, |x| x as f32);
    let mut workspace = Workspace::new(gpu);
    let coords = Buffer::from_slice(stream, points.as_flattened(), "points")?;
    if turn < 10 {
        let tree = Tree::build_on(stream, &mut workspace, &coords, &KdTreeOptions::default())?;
        let expected = Tree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
        run_case(Case { stream, workspace, tree, expected }, turn)
    } else if turn < 15 {
        // Many points are equal.
        let points: Vec<_> = points.iter().map(|point| point.map(|x| x % 6.0)).collect();
        let coords = Buffer::from_slice(stream, points.as_flattened(), "points")?;
        let options = BalancedOptions::default();
        let tree = BalancedKdTree::build_on(stream, &mut workspace, &coords, &options)?;
        let expected = BalancedKdTree::build(&Device::cpu(), &points, &options)?;
        run_case(Case { stream, workspace, tree, expected }, turn)
    } else {
        let tree = Octree::build_on(stream, &mut workspace, &coords, &QuadtreeOptions::default())?;
        let expected = Octree::build(&Device::cpu(), &points, &QuadtreeOptions::default())?;
        run_case(Case { stream, workspace, tree, expected }, turn)
    }
}

fn run_case<T>(mut case: Case<'_, T>, turn: usize) -> Result<()>
where
    T: DeviceIndex<Point = [f32; 3], StoredCoord = f32>,
{
    // Enough to be sorted.
    let queries = query::points::<f32, 3>(1030, 22, |x| x as f32);
    let mask = PointMask::from_fn(case.tree.num_points(), |id| id % 3 != 1)?;
    let options = QueryOptions::default().radius(1.0);
    let boxes: Vec<_> = queries[..70].chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    match turn % 5 {
        0 => case.within(Queries::Points(&queries), &options),
        1 => case.within(Queries::SelfQuery { include_self: turn.is_multiple_of(2) }, &options.mask(mask)),
        2 => case.within(Queries::Points(&queries[..40]), &options.mask(mask).coherent()),
        3 => case.in_boxes(&boxes, None),
        _ => case.in_boxes(&boxes, Some(mask)),
    }
}

#[test]
fn no_rows_and_no_points() {
    on_each_schedule(|gpu, stream| {
        for num_points in [0, 5] {
            let points = points::<f32, 3>(num_points, 23, |x| x as f32);
            let device = Device::from_gpu(gpu.clone());
            let build = |device| Tree::build(device, &points, &KdTreeOptions::default()).unwrap();
            let (tree, expected) = (build(&device), build(&Device::cpu()));
            let mut case = Case { stream, workspace: Workspace::new(gpu), tree, expected };
            let options = QueryOptions::default().radius(1.0);
            case.within(Queries::Points(&[]), &options).unwrap();
            case.within(Queries::Points(&[[1.0; 3]]), &options).unwrap();
            case.within(Queries::SelfQuery { include_self: true }, &options).unwrap();
            case.in_boxes(&[], None).unwrap();
            case.in_boxes(&[[[0.0; 3], [9.0; 3]]], None).unwrap();
        }
    });
}

#[test]
fn invalid_calls_are_refused() {
    on_each_schedule(|gpu, stream| refused(gpu, stream).unwrap());
}

fn refused(gpu: &Gpu, stream: &Stream) -> Result<()> {
    let points = points::<f32, 3>(20, 24, |x| x as f32);
    let device = Device::from_gpu(gpu.clone());
    let tree = Tree::build(&device, &points, &KdTreeOptions::default())?;
    let mut workspace = Workspace::new(gpu);
    let queries = Buffer::from_slice(stream, points[..4].as_flattened(), "queries")?;
    let query_set = DeviceQueries::Coordinates(&queries);
    let options = QueryOptions::default().radius(1.0);
    let prepared = tree.prepare(stream, &options)?;
    let unlimited = tree.prepare(stream, &QueryOptions::default())?;
    let (mut offsets, mut ids) = (untouched(stream, 5), untouched::<u32>(stream, 40));
    let mut dist2 = untouched::<f32>(stream, 40);

    let error = tree.count_within_on(stream, &mut workspace, query_set, &unlimited, &mut ids).unwrap_err();
    assert!(matches!(error, Error::NoRadius), "{error}");
    let error = tree.all_within_on(stream, &mut workspace, query_set, &unlimited).unwrap_err();
    assert!(matches!(error, Error::NoRadius), "{error}");
    // Infinity is a valid radius.
    let infinite = tree.prepare(stream, &QueryOptions::default().radius(f32::INFINITY))?;
    assert_eq!(tree.all_within_on(stream, &mut workspace, query_set, &infinite)?.ids.len(), 4 * 20);

    let shape = |result: Result<()>, expected_len: u64, got_len: u64| {
        let error = result.unwrap_err();
        let is_shape =
            matches!(error, Error::Shape { expected, got, .. } if (expected, got) == (expected_len, got_len));
        assert!(is_shape, "{error}");
    };
    let mut few = untouched::<u32>(stream, 3);
    shape(tree.count_within_on(stream, &mut workspace, query_set, &prepared, &mut few), 4, 3);
    let mut wrong = untouched::<u64>(stream, 4);
    shape(tree.within_on(stream, &mut workspace, query_set, &prepared, &mut wrong, &mut ids, None), 5, 4);
    let mut short = untouched::<f32>(stream, 39);
    let distances = Some(&mut short);
    shape(
        tree.within_on(stream, &mut workspace, query_set, &prepared, &mut offsets, &mut ids, distances),
        40,
        39,
    );
    let uneven = Buffer::from_slice(stream, &[0.0f32; 10], "uneven")?;
    let uneven_set = DeviceQueries::Coordinates(&uneven);
    shape(tree.count_within_on(stream, &mut workspace, uneven_set, &prepared, &mut few), 9, 10);
    // 4 queries are 2 boxes; 10 coordinates are not a whole number of boxes.
    shape(tree.count_in_boxes_on(stream, &mut workspace, &queries, &prepared, &mut few), 2, 3);
    shape(tree.in_boxes_on(stream, &mut workspace, &uneven, &prepared, &mut offsets, &mut ids), 6, 10);
    shape(tree.in_boxes_on(stream, &mut workspace, &queries, &prepared, &mut offsets, &mut ids), 3, 5);
    let mask = PointMask::from_fn(21, |_| true)?;
    let more = Tree::build(&device, &[[0.0; 3]; 21], &KdTreeOptions::default())?;
    let of_more = more.prepare(stream, &options.clone().mask(mask))?;
    let result = tree.within_on(stream, &mut workspace, query_set, &of_more, &mut offsets, &mut ids, None);
    assert!(matches!(result, Err(Error::OtherTree)), "{result:?}");

    let other = kauri_tests::simulated().next().unwrap();
    let other_stream = Stream::new(other.gpu().unwrap())?;
    let mut elsewhere = untouched::<u32>(&other_stream, 40);
    let result =
        tree.within_on(stream, &mut workspace, query_set, &prepared, &mut offsets, &mut elsewhere, None);
    assert!(matches!(result, Err(Error::WrongDevice { .. })), "{result:?}");
    let result =
        tree.within_on(&other_stream, &mut workspace, query_set, &prepared, &mut offsets, &mut ids, None);
    assert!(matches!(result, Err(Error::WrongDevice { .. })), "{result:?}");

    let host = Tree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
    let result = host.all_within_on(stream, &mut workspace, query_set, &prepared);
    assert!(matches!(result, Err(Error::NotOnGpu)));
    let result = host.all_in_boxes_on(stream, &mut workspace, &queries, &prepared);
    assert!(matches!(result, Err(Error::NotOnGpu)));
    // The tree is unchanged.
    let distances = Some(&mut dist2);
    tree.within_on(stream, &mut workspace, query_set, &prepared, &mut offsets, &mut ids, distances)?;
    let (expected_offsets, (expected_ids, expected_dist2)) =
        host.within(&points[..4], 1.0, &options)?.into_parts();
    same_front(stream, &offsets, &ids, &(expected_offsets, expected_ids, expected_dist2));
    Ok(())
}
