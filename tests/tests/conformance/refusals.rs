//! Invalid input. Every index, join and device refuses it with the same error, even if there is no work to do.

use crate::build;
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::device::SimOptions;
use kauri::join::{KnnIndex, KnnJoin, Scored, SelfPairs};
use kauri::query::{DeviceIndex, PointMask, Queries, QueryOptions};
use kauri::{
    Batches, Device, DistanceJoin, Error, KdTree, KdTreeOptions, LonLat, Quadtree, QuadtreeOptions, RTree,
    Result, SpatialIndex, TopKDistanceJoin,
};
use kauri_tests::devices_for;
use std::ops::ControlFlow;

type P = [f32; 2];

/// The outcome of a call: the name of the error's variant, or "Ok".
fn outcome<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => "Ok".into(),
        Err(error) => format!("{error:?}").split([' ', '(', '{']).next().unwrap_or_default().into(),
    }
}

/// Points that are up to 4 apart on the first axis.
const POINTS: [P; 5] = [[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [3.0, 1.0], [4.0, 0.0]];

/// Calls `test` with every index over some points on a device: its name, and a function that runs a call.
fn with_indexes(device: &Device, points: &[P], mut test: impl FnMut(&str, &dyn Fn(&Call<'_>) -> String)) {
    let kdtree = build(device, points);
    test("k-d tree", &|call| call.run(&kdtree));
    let balanced = BalancedKdTree::build(device, points, &BalancedOptions::default()).unwrap();
    test("balanced tree", &|call| call.run(&balanced));
    let quadtree = Quadtree::build(device, points, &QuadtreeOptions::default()).unwrap();
    test("quadtree", &|call| call.run(&quadtree));
    if !device.is_cpu() {
        let devices = [device.clone(), device.clone()];
        let over_two = BalancedKdTree::build_over(&devices, points, &BalancedOptions::default()).unwrap();
        test("balanced tree over two devices", &|call| call.run(&over_two));
    }
}

/// A call to an index.
struct Call<'a> {
    name: &'a str,
    queries: Queries<'a, P>,
    options: &'a QueryOptions<P>,
}

const CALLS: [&str; 8] = [
    "nearest 0",
    "nearest 2",
    "nearest 0 in batches",
    "nearest 2 in batches",
    "count within",
    "within",
    "within, sorted",
    "within in batches",
];

impl Call<'_> {
    /// Returns the outcome.
    fn run(&self, index: &impl SpatialIndex<Point = P>) -> String {
        let &Call { name, queries, options } = self;
        let mut batches = Batches::new();
        let go_on = ControlFlow::Continue(());
        match name {
            "nearest 0" => outcome(index.nearest_with(queries, 0, options)),
            "nearest 2" => outcome(index.nearest_with(queries, 2, options)),
            "nearest 0 in batches" => {
                outcome(index.nearest_batches(queries, 0, options, &mut batches, |_| go_on))
            }
            "nearest 2 in batches" => {
                outcome(index.nearest_batches(queries, 2, options, &mut batches, |_| go_on))
            }
            "count within" => outcome(index.count_within(queries, 1.0, options)),
            "within" => outcome(index.within(queries, 1.0, options)),
            "within, sorted" => outcome(index.within(queries, 1.0, &options.clone().sorted())),
            _ => outcome(index.within_batches(queries, 1.0, options, &mut batches, |_| go_on)),
        }
    }
}

#[test]
fn every_index_refuses_invalid_queries() {
    let plain = QueryOptions::default();
    let mask = |len| PointMask::from_fn(len, |_| true).unwrap();
    let options = [
        (plain.clone(), "Ok"),
        (plain.clone().periods([9.0, 0.0]), "Ok"),
        (plain.clone().periods([3.5, 0.0]), "too short"),
        (plain.clone().periods([f32::NAN, 0.0]), "InvalidLength"),
        (plain.clone().periods([0.0, -1.0]), "InvalidLength"),
        (plain.clone().periods([9.0]), "Shape"),
        (plain.clone().mask(mask(6)), "Shape"),
    ];
    let (near, far, wrong) = ([[2.0, 0.5]], [[2.0, 0.5], [7.0, 0.0]], [[2.0, 0.0], [0.0, f32::NAN]]);
    let too_large = [[0.0, -1e30]];
    let queries: [(Queries<'_, P>, &str); 6] = [
        (Queries::Points(&[]), "Ok"),
        (Queries::Points(&near), "Ok"),
        (Queries::Points(&far), "far"),
        (Queries::Points(&wrong), "NonFinite"),
        (Queries::Points(&too_large), "CoordinateTooLarge"),
        (Queries::SelfQuery { include_self: false }, "far"),
    ];
    for device in devices_for(5) {
        for points in [&POINTS[..], &[]] {
            with_indexes(&device, points, |index, run| {
                for (options, of_options) in &options {
                    for (queries, of_queries) in &queries {
                        // Options are validated first, then coordinates, then the distance of queries from the points, if there are points.
                        let expected = match (*of_options, *of_queries) {
                            ("Ok" | "too short", "NonFinite") => "NonFinite",
                            ("Ok" | "too short", "CoordinateTooLarge") => "CoordinateTooLarge",
                            ("too short", "far") if !points.is_empty() => "BeyondPeriod",
                            ("Ok" | "too short", _) => "Ok",
                            (of_options, _) => of_options,
                        };
                        for name in CALLS {
                            let found = run(&Call { name, queries: *queries, options });
                            let n = points.len();
                            assert_eq!(
                                found, expected,
                                "{name} {queries:?} {options:?}, {index} of {n} on {device}"
                            );
                        }
                    }
                }
            });
        }
    }
}

/// An invalid coordinate on each axis of each corner of a box; counts in valid boxes.
#[test]
fn every_index_refuses_invalid_boxes_and_finds_nothing_in_empty_ones() {
    fn check(index: &impl SpatialIndex<Point = P>, what: &str) {
        let n = index.num_points();
        let masks = [None, Some(PointMask::from_fn(n, |_| true).unwrap())];
        let call = |boxes: &[[P; 2]], mask: Option<&PointMask>| {
            let mut batches = Batches::new();
            let in_batches = index.in_boxes_batches(boxes, mask, &mut batches, |_| ControlFlow::Continue(()));
            [
                outcome(index.count_in_boxes(boxes, mask)),
                outcome(index.in_boxes(boxes, mask)),
                outcome(in_batches),
            ]
        };
        for mask in masks.iter().map(Option::as_ref) {
            let upside_down = [[[3.0, 0.0], [1.0, 1.0]], [[0.0, 1.0], [9.0, 0.0]]];
            assert_eq!(index.count_in_boxes(&upside_down, mask).unwrap(), [0, 0], "{what}");
            assert!(index.in_boxes(&upside_down, mask).unwrap().ids().is_empty(), "{what}");
            let all = [[[0.0, 0.0], [4.0, 1.0]]];
            assert_eq!(index.count_in_boxes(&all, mask).unwrap(), [n as u32], "{what}");
            assert_eq!(call(&[], mask), ["Ok"; 3], "{what}");
            for (bad, expected) in
                [(f32::NAN, "NonFinite"), (f32::INFINITY, "NonFinite"), (1e30, "CoordinateTooLarge")]
            {
                for number in 0..4 {
                    for value in [bad, -bad] {
                        // Also where the other corner makes the box empty.
                        for mut boxes in [[all[0], all[0]], [all[0], upside_down[0]]] {
                            boxes[1].as_flattened_mut()[number] = value;
                            assert_eq!(call(&boxes, mask), [expected; 3], "{what}: {boxes:?}");
                        }
                    }
                }
            }
        }
        let wrong = PointMask::from_fn(n + 1, |_| true).unwrap();
        for boxes in [&[][..], &[[[0.0, 0.0], [4.0, 1.0]]]] {
            assert_eq!(call(boxes, Some(&wrong)), ["Shape"; 3], "{what}");
        }
    }
    for device in devices_for(5) {
        for points in [&POINTS[..], &[]] {
            let what = format!("{} points on {device}", points.len());
            check(&build(&device, points), &what);
            check(&BalancedKdTree::build(&device, points, &BalancedOptions::default()).unwrap(), &what);
            check(&Quadtree::build(&device, points, &QuadtreeOptions::default()).unwrap(), &what);
            if !device.is_cpu() {
                let devices = [device.clone(), device.clone()];
                let options = BalancedOptions::default();
                check(&BalancedKdTree::build_over(&devices, points, &options).unwrap(), &what);
            }
        }
    }
}

/// Runs every join of two sets with a distance: the calls and their outcomes.
fn joins(device: &Device, left: &[P], right: &[P], epsilon: f32) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut add = |call: &str, outcome: String| found.push((call.to_string(), outcome));
    let join = DistanceJoin::new(epsilon);
    let go_on = ControlFlow::Continue(());
    add("count", outcome(join.count(device, left, right)));
    add("estimate", outcome(join.estimate(device, left, right, 2)));
    add("rows", outcome(join.rows(device, left, right)));
    add("batches", outcome(join.rows_batches(device, left, right, &mut Batches::new(), |_| go_on)));
    add("plan", outcome(join.plan(device, left, Some(right))));
    for k in [0, 2] {
        for index in [KnnIndex::Auto, KnnIndex::Tree, KnnIndex::Grid] {
            let join = KnnJoin::new(k).within(epsilon).index(index);
            add(&format!("{k} nearest by {index:?}"), outcome(join.run(device, left, right)));
            add(&format!("plan of {k} nearest by {index:?}"), outcome(join.plan(device, left, right)));
        }
        let scores = [vec![1u32; left.len()], vec![1; right.len()]];
        let join = TopKDistanceJoin::new(epsilon, k);
        let [left, right] =
            [Scored::new(left, &scores[0]), Scored::new(right, &scores[1])].map(Result::unwrap);
        add(&format!("best {k}"), outcome(join.run(device, left, right)));
        add(&format!("plan of best {k}"), outcome(join.plan(device, left, right)));
    }
    found
}

#[test]
fn every_join_refuses_invalid_sets() {
    let wrong = [[1.0, 0.0], [f32::INFINITY, 0.0]];
    let too_large = [[0.0, 1e30]];
    let sets = [(&POINTS[..], "Ok"), (&[], "Ok"), (&wrong, "NonFinite"), (&too_large, "CoordinateTooLarge")];
    for device in devices_for(5) {
        for epsilon in [1.0, 0.0, f32::INFINITY, f32::NAN, -1.0] {
            for (left, of_left) in sets {
                for (right, of_right) in sets {
                    let of_sets = if of_left == "Ok" { of_right } else { of_left };
                    let expected = if epsilon >= 0.0 { of_sets } else { "InvalidLength" };
                    for (call, found) in joins(&device, left, right, epsilon) {
                        // A nearest join builds a tree before it validates the distance.
                        let may_be_of_sets = call.contains("nearest") && of_left != "Ok";
                        assert!(
                            found == expected || (may_be_of_sets && found == of_left),
                            "{call}: {found}, not {expected}: {left:?} and {right:?} within {epsilon} on {device}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_query_that_was_prepared_for_another_tree_is_refused() {
    use kauri::device::{Buffer, Stream, Workspace};
    use kauri::query::DeviceQueries;
    for device in devices_for(5).into_iter().filter(|device| !device.is_cpu()) {
        let gpu = device.gpu().unwrap();
        let stream = Stream::new(gpu).unwrap();
        let coords = Buffer::from_slice(&stream, POINTS.as_flattened(), "points").unwrap();
        let boxes = Buffer::from_slice(&stream, &[0.0f32, 0.0, 9.0, 9.0], "a box").unwrap();
        let (mut workspace, options) = (Workspace::new(gpu), KdTreeOptions::default());
        let mut tree = KdTree::<P>::build_on(&stream, &mut workspace, &coords, &options).unwrap();
        // Options of another tree over equal points, of a dropped tree, of this tree, and of a tree on another device if there is one.
        let same = build(&device, &POINTS);
        let gone = build(&device, &POINTS).prepare(&stream, &QueryOptions::default().radius(1.0)).unwrap();
        let within = QueryOptions::default().radius(1.0);
        let mut prepared = vec![
            (same.prepare(&stream, &within).unwrap(), "OtherTree"),
            (gone, "OtherTree"),
            (tree.prepare(&stream, &within).unwrap(), "Ok"),
        ];
        if let Some(elsewhere) = kauri_tests::simulated().next() {
            let stream = Stream::new(elsewhere.gpu().unwrap()).unwrap();
            prepared.push((build(&elsewhere, &POINTS).prepare(&stream, &within).unwrap(), "OtherTree"));
        }
        for is_rebuilt in [false, true] {
            if is_rebuilt {
                // A rebuilt tree still accepts the options that were prepared for it.
                tree.rebuild_on(&stream, &mut workspace, &coords, &options).unwrap();
                prepared.push((build(&device, &POINTS).prepare(&stream, &within).unwrap(), "OtherTree"));
            }
            for (prepared, expected) in &prepared {
                let mut ids = Buffer::<u32>::uninitialized(gpu, 5, "ids").unwrap();
                let mut dist2 = Buffer::<f32>::uninitialized(gpu, 5, "distances").unwrap();
                let mut counts = Buffer::<u32>::uninitialized(gpu, 5, "counts").unwrap();
                let mut box_counts = Buffer::<u32>::uninitialized(gpu, 1, "counts").unwrap();
                let mut offsets = Buffer::<u64>::uninitialized(gpu, 6, "offsets").unwrap();
                let mut box_offsets = Buffer::<u64>::uninitialized(gpu, 2, "offsets").unwrap();
                let (s, w, q) = (&stream, &mut workspace, DeviceQueries::SelfQuery { include_self: true });
                let found = [
                    outcome(tree.nearest_on(s, w, q, 1, prepared, &mut ids, &mut dist2)),
                    outcome(tree.count_within_on(s, w, q, prepared, &mut counts)),
                    outcome(tree.within_on(s, w, q, prepared, &mut offsets, &mut ids, Some(&mut dist2))),
                    outcome(tree.all_within_on(s, w, q, prepared)),
                    outcome(tree.count_in_boxes_on(s, w, &boxes, prepared, &mut box_counts)),
                    outcome(tree.in_boxes_on(s, w, &boxes, prepared, &mut box_offsets, &mut ids)),
                    outcome(tree.all_in_boxes_on(s, w, &boxes, prepared)),
                ];
                assert_eq!(found, [*expected; 7], "rebuilt: {is_rebuilt}, on {device}");
            }
        }
    }
}

#[test]
fn boxes_on_a_device_with_nan_in_any_corner_have_no_points() {
    use kauri::device::{Buffer, Stream, Workspace};
    for device in devices_for(5).into_iter().filter(|device| !device.is_cpu()) {
        let gpu = device.gpu().unwrap();
        let (stream, mut workspace) = (Stream::new(gpu).unwrap(), Workspace::new(gpu));
        let tree = build(&device, &POINTS);
        let prepared = tree.prepare(&stream, &QueryOptions::default()).unwrap();
        // A box with all points, then the box with NaN in each of its coordinates.
        let mut boxes = [[0.0f32, 0.0, 4.0, 1.0]; 5];
        (0..4).for_each(|number| boxes[1 + number][number] = f32::NAN);
        let boxes = Buffer::from_slice(&stream, boxes.as_flattened(), "boxes").unwrap();
        let mut counts = Buffer::uninitialized(gpu, 5, "counts").unwrap();
        tree.count_in_boxes_on(&stream, &mut workspace, &boxes, &prepared, &mut counts).unwrap();
        assert_eq!(counts.to_vec(&stream).unwrap(), [5, 0, 0, 0, 0], "on {device}");
        let found = tree.all_in_boxes_on(&stream, &mut workspace, &boxes, &prepared).unwrap();
        assert_eq!(found.offsets.to_vec(&stream).unwrap(), [0, 5, 5, 5, 5, 5], "on {device}");
    }
}

#[test]
fn places_are_refused_by_every_join() {
    let places = [LonLat::new(1.0, 2.0), LonLat::new(0.0, -91.0)];
    for device in devices_for(2) {
        let join = DistanceJoin::new(1000.0);
        assert_eq!(outcome(join.count(&device, &places, &places[..1])), "InvalidLonLat");
        assert_eq!(outcome(join.rows(&device, &places[..1], &places)), "InvalidLonLat");
        let nearest = KnnJoin::new(1).within(1000.0).run(&device, &places[..1], &places);
        let Err(Error::InvalidLonLat { index: 1, axis: "latitude", .. }) = nearest else {
            panic!("{nearest:?}")
        };
    }
}

/// Sets that a GPU checks while it copies them in pieces, also half of them.
#[test]
fn invalid_points_of_large_sets() {
    type OfPoints<'a> = &'a dyn Fn(&[P]) -> Result<()>;
    const N: usize = 3 << 20;
    for device in [Device::sim(SimOptions::default()).unwrap()].into_iter().chain(Device::cuda(0)) {
        let two = [device.clone(), device.clone()];
        let join = DistanceJoin::new(0.5);
        let calls: [(&str, OfPoints<'_>); 8] = [
            ("point", &|points| KdTree::build(&device, points, &KdTreeOptions::default()).map(drop)),
            ("point", &|points| RTree::build(&device, points).map(drop)),
            ("point", &|points| Quadtree::build(&device, points, &QuadtreeOptions::default()).map(drop)),
            ("point", &|points| {
                BalancedKdTree::build(&device, points, &BalancedOptions::default()).map(drop)
            }),
            ("point", &|points| {
                BalancedKdTree::build_over(&two, points, &BalancedOptions::default()).map(drop)
            }),
            ("left point", &|points| join.count(&device, points, points).map(drop)),
            ("point", &|points| join.self_rows(&device, points, SelfPairs::Both).map(drop)),
            ("right point", &|points| join.count_over(&two, &points[..9], points).map(drop)),
        ];
        let mut points = vec![[0.5, 1.0]; N];
        points[N - 7][0] = f32::INFINITY;
        points[N / 2 + 9][1] = f32::NAN;
        for (name, call) in calls {
            let error = call(&points).unwrap_err();
            let Error::NonFinite { what, index, axis: 1, .. } = error else { panic!("{name}: {error}") };
            assert_eq!((what, index as usize), (name, N / 2 + 9));
            assert_eq!(device.gpu().unwrap().memory_use().live_bytes, 0);
        }
    }
}
