//! Segmented sorts of all segment lengths on simulated devices, compared with the CPU.

use crate::{noise, on_each_schedule, uninitialized, upload};
use kauri::device::{Stream, Workspace};
use kauri::primitives::cpu::segmented_sort as cpu;
use kauri::primitives::radix_sort::{RadixSortOptions, SortKey, SortValue};
use kauri::primitives::segmented_sort::{sort_keys, sort_pairs};
use std::fmt::Debug;

/// Returns the offsets of segments with these lengths.
fn offsets(lengths: &[u64]) -> Vec<u64> {
    let mut end = 0;
    let ends = lengths.iter().map(|len| {
        end += len;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

fn check<K: SortKey + PartialEq + Debug, V: SortValue + PartialEq + Debug>(
    stream: &Stream,
    lengths: &[u64],
    key: impl Fn(u64) -> K,
    value: impl Fn(usize) -> V,
    options: &RadixSortOptions,
) {
    let offsets = offsets(lengths);
    let n = *offsets.last().unwrap() as usize;
    let keys: Vec<K> = noise(n, 21).into_iter().map(key).collect();
    let values: Vec<V> = (0..n).map(value).collect();
    let (mut expected_keys, mut expected_values) = (keys.clone(), values.clone());
    cpu::sort_pairs(&keys, &values, &offsets, &mut expected_keys, &mut expected_values, options).unwrap();

    let workspace = &mut Workspace::new(stream.gpu());
    let (mut sorted, mut sorted_values) = (uninitialized::<K>(stream, n), uninitialized::<V>(stream, n));
    let (keys, values, offsets) = (upload(stream, &keys), upload(stream, &values), upload(stream, &offsets));
    sort_pairs(stream, workspace, &keys, &values, &offsets, &mut sorted, &mut sorted_values, options)
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(sorted.to_vec(stream).unwrap(), expected_keys, "{lengths:?} {options:?}");
    assert_eq!(sorted_values.to_vec(stream).unwrap(), expected_values, "{lengths:?} {options:?}");

    let mut sorted = uninitialized::<K>(stream, n);
    sort_keys(stream, workspace, &keys, &offsets, &mut sorted, options).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(sorted.to_vec(stream).unwrap(), expected_keys, "keys alone, {lengths:?} {options:?}");
}

fn bits(bits: std::ops::Range<u32>) -> RadixSortOptions {
    RadixSortOptions::default().bits(bits)
}

#[test]
fn segments_of_all_lengths() {
    on_each_schedule(|_, stream| {
        let short = [0, 1, 2, 5, 31, 32, 0, 33, 64, 1, 255, 257, 0];
        check(stream, &short, |x| x as u32 % 1000, |i| i as u32, &bits(0..10));
        // Together one item more than there are lanes.
        check(stream, &[5, 28, 20, 13, 1, 32, 1], |x| x as u32 % 100, |i| i as u32, &bits(0..7));
        check(stream, &[], |x| x as u32, |i| i as u32, &bits(0..8));
        check(stream, &[40], |x| x, |i| i as u64, &bits(0..64));
        // Around the tile size of short segments, and beyond the one of long segments.
        check(stream, &[511, 3, 512, 513], |x| x as u32, |i| i as f32, &bits(7..22));
        check(stream, &[2048, 10, 6200], |x| x as u32, |i| i as u32, &bits(0..9));
        check(stream, &[5121], |x| x as u32, |i| i as u32, &bits(24..32));
        check(stream, &[3073], |x| x, |i| [i as u32, 7], &bits(30..54));
    });
}

#[test]
fn keys_with_signs() {
    on_each_schedule(|_, stream| {
        let lengths = [7, 20, 300, 700];
        for descending in [false, true] {
            let options = RadixSortOptions::default().descending(descending);
            check(stream, &lengths, |x| x as i32 >> 20, |i| i as u32, &options);
            let zeros = options.equal_zeros(true);
            check(
                stream,
                &lengths,
                |x| (x % 5) as f32 * if x % 2 == 0 { 1.0 } else { -0.0 },
                |i| i as u32,
                &zeros,
            );
        }
        check(stream, &[100, 30, 3100], |x| -(x as f64), |i| i as u32, &bits(48..64));
    });
}

#[test]
fn invalid_offsets() {
    on_each_schedule(|_, stream| {
        let keys = upload(stream, &[5u32, 4, 3, 2, 1]);
        let workspace = &mut Workspace::new(stream.gpu());
        // Each segment is clamped to the items.
        let offsets = upload(stream, &[3u64, u64::MAX, 7, 2]);
        let mut sorted = upload(stream, &[0u32; 5]);
        sort_keys(stream, workspace, &keys, &offsets, &mut sorted, &bits(0..8)).unwrap();
        assert_eq!(sorted.to_vec(stream).unwrap(), [0, 0, 0, 1, 2]);
        sort_keys(stream, workspace, &keys, &upload(stream, &[]), &mut sorted, &bits(0..8)).unwrap();
        assert_eq!(sorted.to_vec(stream).unwrap(), [0, 0, 0, 1, 2]);
    });
}
