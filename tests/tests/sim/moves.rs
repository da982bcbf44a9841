//! Fill, iota and noise, gather and scatter, bounds and histograms, against the CPU.

use crate::{noise, on_each_schedule};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::primitives::operator::Affine;
use kauri::primitives::{bounds, cpu, generate, histogram, permute};
use kauri_kernels::thread::coord::Float;
use std::fmt::Debug;

const LENGTHS: [usize; 10] = [0, 1, 2, 31, 32, 33, 255, 256, 1023, 1025];

#[test]
fn generated_arrays() {
    on_each_schedule(|gpu, stream| {
        for n in LENGTHS {
            let mut narrow = Buffer::<u32>::uninitialized(gpu, n, "out").unwrap();
            generate::iota(stream, 7, u32::MAX, &mut narrow).unwrap();
            let expected = (0..n as u32).map(|i| 7u32.wrapping_sub(i));
            assert!(narrow.to_vec(stream).unwrap().into_iter().eq(expected));
            generate::noise(stream, 3, &mut narrow).unwrap();
            let expected = (0..n as u64).map(|i| generate::splitmix64(3 + i) as u32);
            assert!(narrow.to_vec(stream).unwrap().into_iter().eq(expected));
            let mut wide = Buffer::uninitialized(gpu, n, "out").unwrap();
            let value = Affine { scale: 1 << 63 | 5, offset: u64::MAX - 1 };
            generate::fill(stream, value, &mut wide).unwrap();
            assert_eq!(wide.to_vec(stream).unwrap(), vec![value; n]);
        }
    });
}

/// Gathers items of `N` words with some indices out of range, and scatters them by a permutation.
fn check_permute<const N: usize>(stream: &Stream, n: usize)
where
    [u32; N]: PartialEq + Debug,
{
    let input: Vec<[u32; N]> = (0..n as u32).map(|i| std::array::from_fn(|j| i << 8 | j as u32)).collect();
    let items = Buffer::from_slice(stream, &input, "items").unwrap();
    let start = vec![[u32::MAX; N]; n];
    let mut out = Buffer::from_slice(stream, &start, "out").unwrap();

    let indices: Vec<u32> = noise(n, 41).iter().map(|x| (x % (n as u64 + 2)) as u32).collect();
    let mut expected = start.clone();
    cpu::permute::gather(&input, &indices, &mut expected);
    let indices = Buffer::from_slice(stream, &indices, "indices").unwrap();
    permute::gather(stream, &items, &indices, &mut out).unwrap();
    assert_eq!(out.to_vec(stream).unwrap(), expected, "gather, {n} items of {N} words");

    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&i| generate::splitmix64(i.into()));
    let mut expected = start.clone();
    cpu::permute::scatter(&input, &order, &mut expected);
    let order = Buffer::from_slice(stream, &order, "order").unwrap();
    permute::scatter(stream, &items, &order, &mut out).unwrap();
    assert_eq!(out.to_vec(stream).unwrap(), expected, "scatter, {n} items of {N} words");
}

#[test]
fn items_of_4_to_64_bytes() {
    on_each_schedule(|_, stream| {
        for n in LENGTHS {
            check_permute::<1>(stream, n);
        }
        check_permute::<2>(stream, 300);
        check_permute::<3>(stream, 300);
        check_permute::<4>(stream, 300);
        check_permute::<6>(stream, 1100);
        check_permute::<12>(stream, 77);
        check_permute::<16>(stream, 300);
    });
}

fn check_bounds<C: Float + Debug, const D: usize>(stream: &Stream, points: &[[C; D]]) {
    let mut workspace = Workspace::new(stream.gpu());
    let device_points = Buffer::from_slice(stream, points, "points").unwrap();
    let mut corners = Buffer::uninitialized(stream.gpu(), 2, "corners").unwrap();
    bounds::bounds(stream, &mut workspace, &device_points, &mut corners).unwrap();
    let (got, expected) = (corners.to_vec(stream).unwrap(), cpu::bounds::bounds(points));
    assert_eq!(crate::bits(got.as_flattened()), crate::bits(expected.as_flattened()), "{points:?}");
}

#[test]
fn boxes_of_points() {
    on_each_schedule(|_, stream| {
        for n in [0, 1, 33, 300, 1000] {
            let x = noise(3 * n, 43);
            let points: Vec<[f32; 3]> =
                x.chunks(3).map(|x| [x[0] as f32, -(x[1] as f32), (x[2] % 9) as f32 - 4.0]).collect();
            check_bounds(stream, &points);
            let points: Vec<[f64; 1]> = x.iter().map(|&x| [x as i64 as f64]).collect();
            check_bounds(stream, &points);
        }
        check_bounds(stream, &[[-0.0f32, f32::NAN], [-0.0, f32::NAN], [0.0, f32::NAN]]);
        check_bounds(
            stream,
            &[[f64::NAN, f64::INFINITY, -0.0, 1.0], [2.0, f64::NEG_INFINITY, -0.0, -f64::NAN]],
        );
    });
}

#[test]
fn histograms_of_bins_and_bytes() {
    on_each_schedule(|gpu, stream| {
        for n in [0, 1, 1000, 5000] {
            let mut items: Vec<f32> = noise(n, 47).iter().map(|x| (x % 1200) as f32 * 0.1 - 10.0).collect();
            items.extend([f32::NAN, f32::INFINITY, -0.0, 100.0]);
            let device_items = Buffer::from_slice(stream, &items, "items").unwrap();
            for (low, high, num_bins) in
                [(0.0, 100.0, 10), (-5.0, 3.3, 4096), (1.0, 1.0, 3), (f64::NAN, 1.0, 1)]
            {
                let mut counts = Buffer::uninitialized(gpu, num_bins, "counts").unwrap();
                histogram::even(stream, &device_items, low, high, &mut counts).unwrap();
                let expected = cpu::histogram::even(&items, low, high, num_bins);
                assert_eq!(counts.to_vec(stream).unwrap(), expected, "{n} items, {low} to {high}");
            }
            let keys = noise(n, 53);
            let device_keys = Buffer::from_slice(stream, &keys, "keys").unwrap();
            let mut counts = Buffer::uninitialized(gpu, 8 * 256, "counts").unwrap();
            histogram::digits(stream, &device_keys, &mut counts).unwrap();
            assert_eq!(counts.to_vec(stream).unwrap(), cpu::histogram::digits(&keys));
        }
    });
}
