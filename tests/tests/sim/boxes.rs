//! Joins of boxes in device buffers return the result of the CPU, by every method.

use crate::{on_each_schedule_in_turn, upload};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::join::{BoxMethod, Norm};
use kauri::research::join::{BoxMethodOptions, GridBuild, Streams};
use kauri::{Batches, BoxJoin, Cartesian, Device};
use kauri_tests::generate::{Random, Scalar, Shape};
use std::ops::ControlFlow;

/// Boxes whose sides differ by three decades.
pub(crate) fn boxes<C: Scalar, const D: usize>(shape: Shape, len: usize, seed: u64) -> Vec<[[C; D]; 2]> {
    let mut random = Random::new(seed);
    let lows = shape.points::<C, D>(len, seed);
    let high = |low: [C; D]| low.map(|x| x + C::from_f64(0.5 * 10f64.powf(-3.0 * random.unit())));
    lows.into_iter().map(high).zip(shape.points::<C, D>(len, seed)).map(|(high, low)| [low, high]).collect()
}

/// Checks counts, rows and pairs of two sets, and of the left one with itself.
fn check<C: Scalar, const D: usize>(stream: &Stream, join: BoxJoin<C>, shape: Shape, lens: [usize; 2])
where
    [C; D]: Cartesian<Coord = C>,
{
    let [left, right] = [0, 1].map(|i| boxes::<C, D>(shape, lens[i], i as u64));
    let expected = join.rows(&Device::cpu(), &left, &right).unwrap();
    let coords = [&left, &right].map(|set| upload(stream, set.as_flattened().as_flattened()));
    let [left, right] = &coords;
    let mut workspace = Workspace::new(stream.gpu());
    let (offsets, ids) = join.rows_on::<[C; D]>(stream, &mut workspace, left, Some(right)).unwrap();
    assert_eq!(offsets.to_vec(stream).unwrap(), expected.offsets(), "{join:?}");
    assert_eq!(ids.to_vec(stream).unwrap(), expected.ids(), "{join:?}");
    let count = join.count_on::<[C; D]>(stream, &mut workspace, left, Some(right)).unwrap();
    assert_eq!(count, expected.ids().len() as u64);

    let all: Vec<_> =
        (0..expected.len()).flat_map(|l| expected.row(l).iter().map(move |&r| [l as u32, r])).collect();
    for capacity in [all.len() + 3, all.len() / 2, 0] {
        let mut pairs = Buffer::from_slice(stream, &vec![[u32::MAX; 2]; capacity], "pairs").unwrap();
        let found = join.pairs_on::<[C; D]>(stream, &mut workspace, left, Some(right), &mut pairs).unwrap();
        assert_eq!(found, count);
        let mut pairs = pairs.to_vec(stream).unwrap();
        pairs.sort_unstable();
        if capacity >= all.len() {
            assert_eq!(pairs[..all.len()], all);
            assert!(pairs[all.len()..].iter().all(|pair| *pair == [u32::MAX; 2]));
        } else {
            pairs.dedup();
            assert_eq!(pairs.len(), capacity, "the pairs of a full buffer differ");
            assert!(pairs.iter().all(|pair| all.binary_search(pair).is_ok()));
        }
    }
}

#[test]
fn pairs_of_two_sets() {
    on_each_schedule_in_turn(20, |_, stream, turn| {
        let method = [BoxMethod::Cells, BoxMethod::NestedLoop, BoxMethod::Cells][turn % 3];
        match turn % 7 {
            0 => check::<f32, 2>(stream, BoxJoin::intersects().method(method), Shape::Uniform, [150, 140]),
            1 => check::<f64, 2>(stream, BoxJoin::within(1.0).method(method), Shape::Lattice, [40, 140]),
            2 => check::<f32, 3>(stream, BoxJoin::contains().method(method), Shape::Clustered, [90, 70]),
            3 => {
                let join = BoxJoin::within(0.1).norm(Norm::Manhattan).method(method);
                check::<f64, 3>(stream, join, Shape::Flat, [60, 140]);
            }
            4 => check::<f32, 1>(stream, BoxJoin::intersects().method(method), Shape::Scales, [130, 70]),
            5 => check::<f64, 5>(stream, BoxJoin::intersects().method(method), Shape::Uniform, [70, 50]),
            // The right boxes find the pairs of one level.
            _ => check::<f32, 2>(stream, BoxJoin::intersects().method(method), Shape::Uniform, [9, 140]),
        }
    });
}

/// The kernels of `multi_layer`, `sort_based` and `nested_plain`.
#[test]
fn published_methods() {
    on_each_schedule_in_turn(20, |_, stream, turn| {
        let methods = [BoxMethod::MultiLayerGrid, BoxMethod::SortBased, BoxMethod::PlainNestedLoop];
        let streams = [Streams::Exact, Streams::Fixed, Streams::BitStrings][turn % 3];
        let options = BoxMethodOptions::default().streams(streams).partitions([64, 3, 67, 1][turn % 4]);
        let options = if turn % 2 == 0 { options.build(GridBuild::Layers) } else { options.z_order(true) };
        let method = if turn % 5 < 3 { methods[0] } else { methods[1 + turn % 2] };
        match turn % 7 {
            0 | 1 => {
                let join = BoxJoin::intersects().method(method).options(options);
                check::<f32, 2>(stream, join, Shape::Uniform, [150, 140]);
            }
            2 => {
                // Cells so short that a warp visits those of each box.
                let join = BoxJoin::intersects().method(method).options(options.cell_length(0.004));
                check::<f32, 2>(stream, join, Shape::Uniform, [40, 50]);
            }
            3 => {
                let join = BoxJoin::within(1.0).method(method).options(options);
                check::<f64, 2>(stream, join, Shape::Lattice, [40, 140]);
            }
            4 => {
                let join = BoxJoin::contains().method(method).options(options);
                check::<f32, 3>(stream, join, Shape::Clustered, [90, 70]);
            }
            5 => {
                let join = BoxJoin::within(0.1).norm(Norm::Manhattan).method(method).options(options);
                check::<f64, 5>(stream, join, Shape::Uniform, [70, 50]);
            }
            _ => {
                let join = BoxJoin::intersects().method(method).options(options);
                check::<f64, 3>(stream, join, Shape::Flat, [60, 140]);
            }
        }
    });
}

#[test]
fn rows_longer_than_a_warp_are_sorted() {
    on_each_schedule_in_turn(6, |_, stream, turn| {
        let len = [40, 140, 300][turn % 3];
        check::<f32, 2>(stream, BoxJoin::within(10.0).method(BoxMethod::Cells), Shape::Uniform, [6, len]);
    });
}

#[test]
fn batches() {
    on_each_schedule_in_turn(6, |gpu, _, _| {
        let device = Device::from_gpu(gpu.clone());
        let [left, right] = [0, 1].map(|i| boxes::<f32, 2>(Shape::Uniform, 90, i));
        let join = BoxJoin::within(0.01);
        let expected = join.rows(&Device::cpu(), &left, &right).unwrap();
        let mut ids = Vec::new();
        let delivered = join.rows_batches(&device, &left, &right, &mut Batches::new().rows(40), |batch| {
            batch.rows().for_each(|row| ids.extend_from_slice(batch.row(row)));
            ControlFlow::Continue(())
        });
        assert!(delivered.unwrap().is_complete && ids == expected.ids());
    });
}
