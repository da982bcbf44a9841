//! Search, and expansion of counts, against the CPU.

use crate::{noise, on_each_schedule};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::primitives::order::Ascending;
use kauri::primitives::radix_sort::SortKey;
use kauri::primitives::{cpu, expand, search};
use kauri_kernels::primitives::expand::TILE;

fn check_search<T: SortKey>(stream: &Stream, items: &[T], queries: &[T]) {
    let gpu = stream.gpu();
    let sorted = cpu::merge_sort::sort_keys::<T, Ascending>(items);
    let device_sorted = Buffer::from_slice(stream, &sorted, "sorted").unwrap();
    let device_queries = Buffer::from_slice(stream, queries, "queries").unwrap();
    let positions = || Buffer::<u64>::uninitialized(gpu, queries.len(), "positions").unwrap();
    let (mut lower, mut upper, mut begins, mut ends) = (positions(), positions(), positions(), positions());
    let (s, q) = (&device_sorted, &device_queries);
    search::lower_bound(stream, s, q, &mut lower).unwrap();
    search::upper_bound(stream, s, q, &mut upper).unwrap();
    search::equal_range(stream, s, q, &mut begins, &mut ends).unwrap();
    let expected = cpu::search::lower_bound(&sorted, queries);
    assert_eq!(lower.to_vec(stream).unwrap(), expected, "{} items", items.len());
    assert_eq!(begins.to_vec(stream).unwrap(), expected);
    let expected = cpu::search::upper_bound(&sorted, queries);
    assert_eq!(upper.to_vec(stream).unwrap(), expected, "{} items", items.len());
    assert_eq!(ends.to_vec(stream).unwrap(), expected);
}

#[test]
fn queries_in_sorted_arrays() {
    on_each_schedule(|_, stream| {
        let x = noise(700, 83);
        for n in [0, 1, 2, 3, 31, 32, 500] {
            check_search(stream, &x[..n], &x[..300]);
            let few: Vec<u32> = x[..n].iter().map(|x| (x % 20) as u32).collect();
            check_search(stream, &few, &(0..22).collect::<Vec<_>>());
        }
        check_search(stream, &x.iter().map(|&x| x as i32).collect::<Vec<_>>(), &[i32::MIN, -1, 0, i32::MAX]);
        check_search(stream, &x.iter().map(|&x| x as i64 % 9).collect::<Vec<_>>(), &[i64::MIN, -3, 0, 8, 9]);
        let special = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0, 1.0, 1.5];
        let floats: Vec<f32> = x.iter().map(|&x| special[(x % 7) as usize]).collect();
        check_search(stream, &floats, &special);
        check_search(stream, &floats.iter().map(|&x| x.into()).collect::<Vec<_>>(), &special.map(f64::from));
    });
}

/// Expands with the exact capacity, with less and with more.
fn check_expand(stream: &Stream, counts: &[u32]) {
    let gpu = stream.gpu();
    let mut workspace = Workspace::new(gpu);
    let device_counts = Buffer::from_slice(stream, counts, "counts").unwrap();
    let mut offsets = Buffer::uninitialized(gpu, counts.len() + 1, "offsets").unwrap();
    expand::offsets(stream, &mut workspace, &device_counts, &mut offsets).unwrap();
    assert_eq!(workspace.bytes(), expand::plan(counts.len()));
    let expected = cpu::expand::offsets(counts);
    assert_eq!(offsets.to_vec(stream).unwrap(), expected);
    let expected = cpu::expand::expand(&expected);

    for capacity in [expected.len(), expected.len() / 2, expected.len() + 100] {
        let mut segments = Buffer::uninitialized(gpu, capacity, "segments").unwrap();
        let mut indices = Buffer::uninitialized(gpu, capacity, "indices").unwrap();
        let mut overflow = Buffer::uninitialized(gpu, 1, "overflow").unwrap();
        expand::expand(stream, &offsets, &mut segments, &mut indices, &mut overflow).unwrap();
        let written = capacity.min(expected.len());
        let got = segments.front_to_vec(stream, written).unwrap();
        let got = got.into_iter().zip(indices.front_to_vec(stream, written).unwrap());
        assert!(
            got.eq(expected[..written].iter().copied()),
            "{} segments, capacity {capacity}",
            counts.len()
        );
        assert_eq!(overflow.to_vec(stream).unwrap(), [u32::from(capacity < expected.len())]);
    }
}

#[test]
fn counts_become_outputs() {
    on_each_schedule(|_, stream| {
        for n in [0, 1, 2, 33, 700, TILE - 1, TILE, TILE + 1] {
            check_expand(stream, &vec![1; n]);
            check_expand(stream, &noise(n, 89).iter().map(|x| (x % 4) as u32).collect::<Vec<_>>());
        }
        // Empty segments only; a long one among empty ones; long ones.
        check_expand(stream, &[0; 3 * TILE]);
        check_expand(stream, &(0..2 * TILE).map(|i| if i == TILE { 5000 } else { 0 }).collect::<Vec<_>>());
        check_expand(stream, &[3000, 0, 0, 1, 4000, 0]);
    });
}
