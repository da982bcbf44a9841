//! Every join of boxes, by every method and on every device, gives the result of a loop over all pairs.

use kauri::device::{Buffer, Stream, Workspace};
use kauri::join::{BoxMethod, Norm, SelfPairs};
use kauri::research::join::{BoxMethodOptions, GridBuild, Streams, SweepAxis};
use kauri::{Batches, BoxJoin, Cartesian, Device, DistanceJoin, Error, Rows};
use kauri_kernels::thread::coord::Float;
use kauri_tests::generate::{Random, Scalar, Shape};
use kauri_tests::{devices, devices_for, devices_for_shape};
use std::ops::ControlFlow;

const METHODS: [BoxMethod; 6] = [
    BoxMethod::Auto,
    BoxMethod::NestedLoop,
    BoxMethod::Cells,
    BoxMethod::MultiLayerGrid,
    BoxMethod::SortBased,
    BoxMethod::PlainNestedLoop,
];
const NORMS: [Norm; 3] = [Norm::Euclidean, Norm::Manhattan, Norm::Chebyshev];
const SELF_PAIRS: [SelfPairs; 2] = [SelfPairs::Once, SelfPairs::Both];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Predicate<C> {
    Intersects,
    Contains,
    Within(C, Norm),
}

impl<C: Float> Predicate<C> {
    fn join(self, method: BoxMethod) -> BoxJoin<C> {
        let join = match self {
            Self::Intersects => BoxJoin::intersects(),
            Self::Contains => BoxJoin::contains(),
            Self::Within(epsilon, norm) => BoxJoin::within(epsilon).norm(norm),
        };
        join.method(method)
    }

    pub(crate) fn holds<const D: usize>(self, left: &[[C; D]; 2], right: &[[C; D]; 2]) -> bool {
        let all = |holds: &dyn Fn(usize) -> bool| (0..D).all(holds);
        let is_valid = |of: &[[C; D]; 2]| all(&|axis| of[0][axis] <= of[1][axis]);
        is_valid(left)
            && is_valid(right)
            && match self {
                Self::Intersects => {
                    all(&|axis| left[0][axis] <= right[1][axis] && right[0][axis] <= left[1][axis])
                }
                Self::Contains => {
                    all(&|axis| left[0][axis] <= right[0][axis] && right[1][axis] <= left[1][axis])
                }
                Self::Within(epsilon, norm) => {
                    let gap = |axis: usize| {
                        let (below, above) = (right[0][axis] - left[1][axis], left[0][axis] - right[1][axis]);
                        if below > C::ZERO {
                            below
                        } else if above > C::ZERO {
                            above
                        } else {
                            C::ZERO
                        }
                    };
                    let bound = if norm == Norm::Euclidean { epsilon * epsilon } else { epsilon };
                    norm.put_together(D, gap) <= bound
                }
            }
    }
}

/// Boxes whose low corners have a shape and whose sides are of very different lengths; some have no extent, some are inverted, and some
/// contain nearly all others.
pub(crate) fn boxes<C: Scalar, const D: usize>(shape: Shape, len: usize, seed: u64) -> Vec<[[C; D]; 2]> {
    let mut random = Random::new(seed);
    let lows = shape.points::<C, D>(len, seed);
    let on_lattice = matches!(shape, Shape::Lattice | Shape::SignedZeros | Shape::FewDistinct);
    let mut side = |kind: u64| match kind {
        0 => 0.0,
        1 => -1.0,
        2 => 100.0,
        _ if on_lattice => random.below(3) as f64,
        _ => 0.3 * 10f64.powf(-3.0 * random.unit()),
    };
    let kinds: Vec<u64> = lows.iter().enumerate().map(|(i, _)| (i as u64 * 7 + seed) % 12).collect();
    let high = |(low, kind): ([C; D], u64)| {
        [low, low.map(|x| if shape == Shape::Largest { x } else { x + C::from_f64(side(kind)) })]
    };
    lows.into_iter().zip(kinds).map(high).collect()
}

fn naive<C: Float, const D: usize>(
    predicate: Predicate<C>,
    left: &[[[C; D]; 2]],
    right: &[[[C; D]; 2]],
    has_pair: impl Fn(usize, usize) -> bool,
) -> Vec<Vec<u32>> {
    let row = |l: usize| {
        let ids = (0..right.len()).filter(|&r| has_pair(l, r) && predicate.holds(&left[l], &right[r]));
        ids.map(|r| r as u32).collect()
    };
    (0..left.len()).map(row).collect()
}

fn has_self_pair(pairs: SelfPairs) -> fn(usize, usize) -> bool {
    match pairs {
        SelfPairs::Once => |l, r| r < l,
        SelfPairs::Both => |l, r| r != l,
    }
}

fn as_vecs(rows: &Rows) -> Vec<Vec<u32>> {
    (0..rows.len()).map(|row| rows.row(row).to_vec()).collect()
}

fn check<C: Scalar, const D: usize>(device: &Device, shape: Shape, lens: [usize; 2])
where
    [C; D]: Cartesian<Coord = C>,
{
    let [left, right] = [0, 1].map(|i| boxes::<C, D>(shape, lens[i], i as u64 + D as u64));
    let epsilon = C::from_f64(if shape == Shape::Lattice { 1.0 } else { 0.05 });
    let within = Predicate::Within(epsilon, NORMS[(lens[0] + D) % 3]);
    for (case, predicate) in [Predicate::Intersects, Predicate::Contains, within].into_iter().enumerate() {
        let expected = naive(predicate, &left, &right, |_, _| true);
        let count: u64 = expected.iter().map(|row| row.len() as u64).sum();
        for method in METHODS {
            let join = predicate.join(method).options(variants()[(lens[0] + D + case) % VARIANTS]);
            let what = || format!("{predicate:?} {method:?} {shape:?} {D} dimensions on {device}");
            let rows = join.rows(device, &left, &right).unwrap_or_else(|error| panic!("{}: {error}", what()));
            assert_eq!(as_vecs(&rows), expected, "{}", what());
            assert_eq!(join.count(device, &left, &right).unwrap(), count, "{}", what());
        }
        let method = METHODS[(lens[0] + D + case) % METHODS.len()];
        for pairs in SELF_PAIRS {
            let expected = naive(predicate, &left, &left, has_self_pair(pairs));
            let rows = predicate.join(method).self_rows(device, &left, pairs).unwrap();
            assert_eq!(as_vecs(&rows), expected, "{predicate:?} {method:?} {shape:?} {pairs:?} on {device}");
            let count = predicate.join(method).self_count(device, &left, pairs).unwrap();
            assert_eq!(count, expected.iter().map(|row| row.len() as u64).sum::<u64>());
        }
    }
}

/// Number of [`variants`].
const VARIANTS: usize = 6;

/// Options of the published methods.
fn variants() -> [BoxMethodOptions; VARIANTS] {
    let options = BoxMethodOptions::default;
    [
        options(),
        options().build(GridBuild::Layers).streams(Streams::Fixed),
        options().streams(Streams::BitStrings).z_order(true).axis(SweepAxis::LeastOverlap),
        options().partitions(1).cell_length(0.01),
        // Two words of a cell, the second of which has few bits.
        options().partitions(67).build(GridBuild::Layers),
        options().partitions(7).z_order(true).cell_length(1e-9).grid_bytes(4096),
    ]
}

#[test]
fn pairs_of_every_shape_type_and_dimension() {
    for shape in Shape::ALL {
        for device in devices_for_shape(shape, 60) {
            check::<f32, 1>(&device, shape, [50, 61]);
            check::<f32, 2>(&device, shape, [50, 40]);
            check::<f64, 2>(&device, shape, [40, 50]);
            check::<f32, 3>(&device, shape, [41, 50]);
            check::<f64, 3>(&device, shape, [30, 31]);
            check::<f32, 4>(&device, shape, [30, 35]);
            check::<f64, 5>(&device, shape, [30, 34]);
            check::<f32, 6>(&device, shape, [30, 33]);
        }
    }
}

#[test]
fn one_set_is_much_larger() {
    for device in devices_for(400) {
        for shape in [Shape::Uniform, Shape::Lattice] {
            check::<f32, 2>(&device, shape, [7, 300]);
            check::<f32, 2>(&device, shape, [300, 7]);
        }
    }
    for device in devices() {
        check::<f32, 2>(&device, Shape::Uniform, [3000, 40]);
        check::<f64, 3>(&device, Shape::Clustered, [40, 3000]);
        check::<f32, 2>(&device, Shape::Uniform, [2000, 1500]);
    }
}

#[test]
fn integers_and_points_without_extent() {
    let mut random = Random::new(9);
    let mut points = |len: usize| -> Vec<[i32; 2]> {
        (0..len).map(|_| [0, 1].map(|_| random.below(30) as i32 - 15)).collect()
    };
    let [left, right] = [points(70), points(60)];
    let as_boxes = |points: &[[i32; 2]]| -> Vec<_> { points.iter().map(|&point| [point; 2]).collect() };
    for device in devices_for(70) {
        for method in METHODS {
            for norm in NORMS {
                let boxes = BoxJoin::within(3.0).norm(norm).method(method);
                let boxes = boxes.rows(&device, &as_boxes(&left), &as_boxes(&right)).unwrap();
                let points = DistanceJoin::new(3.0).norm(norm).rows(&device, &left, &right).unwrap();
                let sorted = as_vecs(&points).into_iter().map(|mut row| {
                    row.sort_unstable();
                    row
                });
                assert!(as_vecs(&boxes).into_iter().eq(sorted), "{method:?} {norm:?} on {device}");
            }
        }
    }
}

#[test]
fn sides_swap() {
    let [left, right] = [1, 2].map(|seed| boxes::<f32, 2>(Shape::Uniform, 500, seed));
    for device in devices() {
        let pairs = |join: &BoxJoin<f32>, left: &[_], right: &[_]| {
            let rows = as_vecs(&join.rows(&device, left, right).unwrap());
            let pairs = rows.iter().enumerate().flat_map(|(l, row)| row.iter().map(move |&r| [l as u32, r]));
            pairs.collect::<Vec<_>>()
        };
        for join in [BoxJoin::intersects(), BoxJoin::within(0.1)] {
            let mut swapped = pairs(&join, &right, &left);
            swapped.iter_mut().for_each(|pair| pair.reverse());
            swapped.sort_unstable();
            assert_eq!(pairs(&join, &left, &right), swapped);
        }
    }
}

#[test]
fn batches_equal_the_whole() {
    for (device, lens) in devices_for(90).into_iter().map(|device| (device, [90, 80])) {
        let [left, right] = [0, 1].map(|i| boxes::<f32, 2>(Shape::Uniform, lens[i], i as u64));
        let join = BoxJoin::within(0.02);
        let check = |expected: Rows, deliver: &dyn Fn(&mut Batches<'_>, &mut Vec<Vec<u32>>)| {
            for rows in [1, 13, 1000] {
                let mut found = Vec::new();
                deliver(&mut Batches::new().rows(rows), &mut found);
                assert_eq!(found, as_vecs(&expected), "{rows} rows on {device}");
            }
        };
        check(join.rows(&device, &left, &right).unwrap(), &|batches, found| {
            let delivered = join.rows_batches(&device, &left, &right, batches, |batch| {
                found.extend(batch.rows().map(|row| batch.row(row).to_vec()));
                ControlFlow::Continue(())
            });
            assert!(delivered.unwrap().is_complete);
        });
        for pairs in SELF_PAIRS {
            check(join.self_rows(&device, &left, pairs).unwrap(), &|batches, found| {
                let delivered = join.self_rows_batches(&device, &left, pairs, batches, |batch| {
                    found.extend(batch.rows().map(|row| batch.row(row).to_vec()));
                    ControlFlow::Continue(())
                });
                assert!(delivered.unwrap().is_complete);
            });
        }
    }
}

#[test]
fn estimates_of_all_boxes_are_exact() {
    let boxes = boxes::<f64, 2>(Shape::Uniform, 300, 5);
    let valid: Vec<_> = boxes.into_iter().filter(|of| of[0][0] <= of[1][0]).collect();
    for device in devices() {
        let join = BoxJoin::intersects();
        let count = join.count(&device, &valid, &valid).unwrap();
        assert_eq!(join.estimate(&device, &valid, &valid, 1000).unwrap(), count);
        let both = join.self_count(&device, &valid, SelfPairs::Both).unwrap();
        assert_eq!(join.self_estimate(&device, &valid, SelfPairs::Both, 1000).unwrap(), both);
        let estimate = join.estimate(&device, &valid, &valid, 50).unwrap();
        assert!(estimate > count / 3 && estimate < count * 3, "{estimate} of {count}");
    }
}

#[test]
fn empty_sets_and_sets_apart() {
    let some = [[[0.0f32, 0.0], [1.0, 1.0]], [[2.0, 2.0], [1.0, 3.0]]];
    let far = [[[9.0f32, 9.0], [9.5, 9.5]]];
    let inverted = [[[5.0f32, 0.0], [3.0, 1.0]], [[9.0, 9.0], [-9.0, -9.0]]];
    for device in devices_for(3) {
        for method in METHODS {
            let join = BoxJoin::intersects().method(method);
            for (left, right) in [
                (&some[..], &[][..]),
                (&[], &some),
                (&[], &[]),
                (&some, &far),
                (&some, &inverted),
                (&inverted, &inverted),
            ] {
                assert_eq!(join.count(&device, left, right).unwrap(), 0, "{method:?} on {device}");
                let rows = join.rows(&device, left, right).unwrap();
                assert!(rows.len() == left.len() && rows.ids().is_empty());
            }
        }
    }
}

/// The cell length makes the cells of the whole space many for the boxes that contain nearly all others.
#[test]
fn published_methods_have_the_same_pairs_for_all_options() {
    let [left, right] = [0, 1].map(|i| boxes::<f32, 2>(Shape::Uniform, 130 - 37 * i as usize, i));
    let predicate = Predicate::Within(0.01, Norm::Euclidean);
    let expected = naive(predicate, &left, &right, |_, _| true);
    for device in devices_for(130) {
        for build in [GridBuild::Layers, GridBuild::Atomic] {
            for streams in [Streams::Fixed, Streams::Exact, Streams::BitStrings] {
                for (partitions, z_order) in [(1, true), (64, false), (130, true), (200, false)] {
                    let options = BoxMethodOptions::default().partitions(partitions).z_order(z_order);
                    let options = options.build(build).streams(streams).cell_length(0.02);
                    let join = predicate.join(BoxMethod::MultiLayerGrid).options(options);
                    let rows = join.rows(&device, &left, &right).unwrap();
                    assert_eq!(as_vecs(&rows), expected, "{options:?} on {device}");
                }
            }
        }
        for axis in [SweepAxis::First, SweepAxis::LeastOverlap] {
            let options = BoxMethodOptions::default().axis(axis);
            let rows = predicate.join(BoxMethod::SortBased).options(options).rows(&device, &left, &right);
            assert_eq!(as_vecs(&rows.unwrap()), expected, "{axis:?} on {device}");
        }
    }
}

/// Every box walks over all others, in many tasks.
#[test]
fn long_walks_of_a_sort_are_divided() {
    let boxes = vec![[[0.0f32], [1.0]]; 20_000];
    let join = BoxJoin::intersects().method(BoxMethod::SortBased);
    for device in devices().into_iter().filter(|device| !device.is_cpu()) {
        assert_eq!(join.count(&device, &boxes, &boxes).unwrap(), 400_000_000);
    }
}

/// Five ranges on a line: the first two are the left set. The ends in order are those of boxes 0 1 2 1 0 3 2 4 3 4.
#[test]
fn example_of_a_sort() {
    let of = |[low, high]: [f32; 2]| [[low], [high]];
    let left = [[1.0, 6.0], [2.0, 4.0]].map(of);
    let right = [[3.0, 9.0], [7.0, 12.0], [10.0, 13.0]].map(of);
    for device in devices_for(5) {
        let rows = BoxJoin::intersects().method(BoxMethod::SortBased).rows(&device, &left, &right).unwrap();
        assert_eq!(as_vecs(&rows), [[0], [0]], "{device}");
    }
}

/// Two partitions of two boxes each. The first right box touches cells of both, the second one of none.
#[test]
fn example_of_a_grid_with_layers() {
    let square = |x: f32, y: f32| [[x, y], [x + 0.8, y + 0.8]];
    let left = [square(1.1, 1.1), square(5.1, 5.1), square(2.1, 1.1), square(8.1, 8.1)];
    let right = [[[1.5f32, 1.5], [2.5, 1.6]], [[0.0, 9.0], [0.5, 9.5]]];
    for device in devices_for(4) {
        for streams in [Streams::Fixed, Streams::Exact, Streams::BitStrings] {
            let options = BoxMethodOptions::default().partitions(2).cell_length(1.0).streams(streams);
            let join = BoxJoin::intersects().method(BoxMethod::MultiLayerGrid).options(options);
            let rows = join.rows(&device, &left, &right).unwrap();
            assert_eq!(as_vecs(&rows), [vec![0], vec![], vec![0], vec![]], "{device}");
            let Some(gpu) = device.gpu() else { continue };
            let (stream, mut workspace) = (Stream::new(gpu).unwrap(), Workspace::new(gpu));
            let upload = |set: &[[[f32; 2]; 2]]| {
                Buffer::from_slice(&stream, set.as_flattened().as_flattened(), "boxes").unwrap()
            };
            let [left, right] = [upload(&left), upload(&right)];
            let (count, phases) =
                join.count_in_phases_on::<[f32; 2]>(&stream, &mut workspace, &left, Some(&right)).unwrap();
            let names: Vec<_> = phases.iter().map(|phase| phase.name).collect();
            assert_eq!((count, names), (2, vec!["bounds", "build", "probe", "streams", "join"]));
            // A word for each right box; the begins of the streams, their lengths, and two ids.
            let [probe, lists] = [2, 3].map(|i| phases[i].bytes);
            let ids = [4 * 4, 4 * 2, 0][streams as usize];
            assert_eq!((probe, lists), (16, 3 * 8 + 2 * 4 + ids), "{streams:?}");
        }
    }
}

#[test]
fn refused_options_are_named() {
    let boxes = [[[0.0f32], [1.0]]];
    let count = |options| BoxJoin::intersects().options(options).count(&Device::cpu(), &boxes, &boxes);
    let options = BoxMethodOptions::default;
    assert!(matches!(count(options().partitions(0)), Err(Error::OutOfRange { value: 0, .. })));
    let error = count(options().cell_length(f64::NAN)).unwrap_err();
    assert!(matches!(error, Error::InvalidLength { what: "length of a cell", .. }));
}

#[test]
fn refused_boxes_are_named() {
    let good = [[[0.0f32, 0.0], [1.0, 1.0]]];
    let bad = [good[0], [[0.0, 1.0], [2.0, f32::NAN]]];
    let infinite = [[[0.0, f32::NEG_INFINITY], [2.0, 1.0]]];
    for device in devices_for(2) {
        let join = BoxJoin::intersects();
        let error = join.count(&device, &bad, &good).unwrap_err();
        assert!(matches!(error, Error::NonFinite { index: 1, axis: 1, .. }));
        assert_eq!(error.to_string(), "high corner of box 1 has NaN on axis 1: coordinates must be finite");
        let error = join.rows(&device, &good, &infinite).unwrap_err();
        assert_eq!(
            error.to_string(),
            "low corner of right box 0 has -inf on axis 1: coordinates must be finite"
        );
        let error = BoxJoin::within(-1.0).count(&device, &good, &good).unwrap_err();
        assert!(matches!(error, Error::InvalidLength { what: "distance", .. }));
        let error = join.plan(&device, &good, Some(&bad[..])).unwrap_err();
        assert!(matches!(error, Error::NonFinite { .. }));
    }
}

#[test]
fn identical_boxes_have_an_exact_count() {
    let boxes = vec![[[1.0f32, 2.0], [1.5, 2.5]]; 3000];
    for device in devices() {
        assert_eq!(BoxJoin::intersects().count(&device, &boxes, &boxes).unwrap(), 9_000_000);
        assert_eq!(BoxJoin::contains().self_count(&device, &boxes, SelfPairs::Once).unwrap(), 4_498_500);
        let rows = BoxJoin::intersects().rows(&device, &boxes[..20], &boxes).unwrap();
        assert!((0..20).all(|row| rows.row(row).iter().copied().eq(0..3000)));
    }
}

#[test]
fn plans_name_method_and_memory() {
    let boxes = boxes::<f32, 2>(Shape::Uniform, 100, 3);
    for device in devices_for(100) {
        let plan = BoxJoin::intersects().method(BoxMethod::Cells).plan(&device, &boxes, None).unwrap();
        assert_eq!(plan.num_points, [100, 100]);
        assert!(plan.temp_bytes > 0 && plan.to_string().contains("cells of several sizes"));
        let published = [
            (BoxMethod::MultiLayerGrid, "a grid with a layer for each partition"),
            (BoxMethod::SortBased, "sorted ends of boxes"),
        ];
        for (method, name) in published.into_iter().filter(|_| !device.is_cpu()) {
            let plan = BoxJoin::intersects().method(method).plan(&device, &boxes, None).unwrap();
            assert!(plan.temp_bytes > 0 && plan.to_string().contains(name));
        }
    }
}
