//! The public radix sort on simulated devices: results equal those of the CPU to the bit.

use crate::{noise, on_each_schedule, uninitialized, upload};
use cust_core::DeviceCopy;
use kauri::Error;
use kauri::device::{Device, SimOptions, Stream, Workspace};
use kauri::primitives::cpu::radix_sort as cpu;
use kauri::primitives::radix_sort::{RadixSortOptions, SortKey, SortValue, sort_keys, sort_pairs};
use kauri::primitives::segmented_sort;
use kauri::research::primitives::RadixSortPolicy;
use std::fmt::Debug;

/// The items of a tile in sorts of few items.
const SMALL_TILE: usize = 8 * 32 * 4;

/// Returns the bytes of items, for comparison to the bit.
fn bytes<T: DeviceCopy>(items: &[T]) -> &[u8] {
    // SAFETY: all items of these tests are plain numbers.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }
}

/// Sorts pairs and keys alone on the device, and compares the results with the CPU.
fn check<K: SortKey + Debug, V: SortValue + Debug>(
    stream: &Stream,
    keys: &[K],
    value: impl Fn(usize) -> V,
    options: &RadixSortOptions,
) {
    let values: Vec<V> = (0..keys.len()).map(value).collect();
    let (mut expected_keys, mut expected_values) = (keys.to_vec(), values.clone());
    cpu::sort_pairs(keys, &values, &mut expected_keys, &mut expected_values, options).unwrap();

    let mut workspace = Workspace::new(stream.gpu());
    let (mut sorted_keys, mut sorted_values) =
        (uninitialized::<K>(stream, keys.len()), uninitialized::<V>(stream, keys.len()));
    let (keys, values) = (upload(stream, keys), upload(stream, &values));
    sort_pairs(stream, &mut workspace, &keys, &values, &mut sorted_keys, &mut sorted_values, options)
        .unwrap_or_else(|e| panic!("{e}"));
    let sorted = (sorted_keys.to_vec(stream).unwrap(), sorted_values.to_vec(stream).unwrap());
    assert!(bytes(&sorted.0) == bytes(&expected_keys), "keys of {} pairs, {options:?}", keys.len());
    assert!(bytes(&sorted.1) == bytes(&expected_values), "values of {} pairs, {options:?}", keys.len());
}

fn check_keys<K: SortKey + Debug>(stream: &Stream, keys: &[K], options: &RadixSortOptions) {
    let mut expected = keys.to_vec();
    cpu::sort_keys(keys, &mut expected, options).unwrap();
    let mut workspace = Workspace::new(stream.gpu());
    let mut sorted = uninitialized::<K>(stream, keys.len());
    let keys = upload(stream, keys);
    sort_keys(stream, &mut workspace, &keys, &mut sorted, options).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        bytes(&sorted.to_vec(stream).unwrap()) == bytes(&expected),
        "{} keys alone, {options:?}",
        keys.len()
    );
}

fn options() -> RadixSortOptions {
    RadixSortOptions::default()
}

fn bits(bits: std::ops::Range<u32>) -> RadixSortOptions {
    options().bits(bits)
}

fn words(len: usize, seed: u64) -> Vec<u32> {
    noise(len, seed).iter().map(|&x| (x >> 13) as u32).collect()
}

#[test]
fn sizes_round_warps_and_tiles() {
    on_each_schedule(|_, stream| {
        for n in [0, 1, 2, 31, 32, 33, 255, 257, SMALL_TILE - 1, SMALL_TILE, SMALL_TILE + 1] {
            check(stream, &words(n, 3), |i| i as u32, &bits(0..16));
        }
        // Enough tiles for a look-back over more than one window.
        check(stream, &words(9 * SMALL_TILE + 5, 4), |i| i as u32, &bits(8..16));
        check_keys(stream, &words(3 * SMALL_TILE, 5), &options());
    });
}

#[test]
fn patterns() {
    on_each_schedule(|_, stream| {
        let n = 2 * SMALL_TILE + 77;
        let by = bits(0..9);
        check(stream, &vec![7u32; n], |i| i as u32, &by);
        check(stream, &vec![u32::MAX; n], |i| i as u32, &by);
        let sorted: Vec<u32> = (0..n as u32).collect();
        check(stream, &sorted, |i| i as u32, &by);
        check(stream, &sorted.iter().rev().copied().collect::<Vec<_>>(), |i| i as u32, &by);
        check(stream, &words(n, 6).iter().map(|x| x % 3 * 0x55).collect::<Vec<_>>(), |i| i as u32, &by);
        check(stream, &words(n, 7).iter().map(|x| 1 << (x % 9)).collect::<Vec<u32>>(), |i| i as u32, &by);
    });
}

#[test]
fn keys_of_every_type() {
    let floats = |n| {
        let special =
            [0.0f32, -0.0, f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0, -1.0, f32::MIN];
        let any =
            |x: &u32| if x.is_multiple_of(3) { special[(x / 3 % 9) as usize] } else { f32::from_bits(*x) };
        words(n, 8).iter().map(any).collect::<Vec<f32>>()
    };
    let orders = [
        options(),
        options().descending(true),
        options().equal_zeros(true),
        options().equal_zeros(true).descending(true),
    ];
    on_each_schedule(|_, stream| {
        for (i, by) in orders.iter().enumerate() {
            let n = 300 + i;
            check(stream, &floats(n), |i| i as u32, by);
            check_keys(stream, &floats(n), by);
            check(stream, &floats(n).iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), |i| i as u32, by);
            if !by.equal_zeros {
                check(stream, &words(n, 9).iter().map(|&x| x as i32).collect::<Vec<_>>(), |i| i as u32, by);
                check(stream, &noise(n, 10).iter().map(|&x| x as i64).collect::<Vec<_>>(), |i| i as f32, by);
                check_keys(stream, &noise(n, 11), by);
                check_keys(stream, &words(n, 12), by);
            }
        }
        // Few bits of folded keys.
        let by = bits(21..32).descending(true);
        check(stream, &floats(SMALL_TILE + 3), |i| i as u32, &by);
    });
}

/// Expected results by hand, because the CPU uses the same code for keys.
#[test]
fn zeros_by_hand() {
    let keys = [0.0f32, -0.0, 1.0, -1.0, -0.0, 0.0];
    let (equal, total) = ([3, 0, 1, 4, 5, 2], [3, 1, 4, 0, 5, 2]);
    on_each_schedule(|_, stream| {
        for (equal_zeros, expected) in [(true, equal), (false, total)] {
            let by = options().equal_zeros(equal_zeros);
            let (input, ids) = (upload(stream, &keys), upload(stream, &[0u32, 1, 2, 3, 4, 5]));
            let (mut sorted, mut sorted_ids) =
                (uninitialized::<f32>(stream, 6), uninitialized::<u32>(stream, 6));
            let workspace = &mut Workspace::new(stream.gpu());
            sort_pairs(stream, workspace, &input, &ids, &mut sorted, &mut sorted_ids, &by).unwrap();
            assert_eq!(sorted_ids.to_vec(stream).unwrap(), expected);

            let offsets = upload(stream, &[0u64, 6]);
            let (k, v) = (&mut sorted, &mut sorted_ids);
            segmented_sort::sort_pairs(stream, workspace, &input, &ids, &offsets, k, v, &by).unwrap();
            assert_eq!(sorted_ids.to_vec(stream).unwrap(), expected);
        }
    });
}

#[test]
fn values_of_every_size() {
    on_each_schedule(|_, stream| {
        let keys = words(2100, 13);
        check(stream, &keys, |i| i as u64 * 0x1_0000_0001, &bits(0..8));
        check(stream, &keys, |i| [i as f32, 1.0, -2.0, 0.5], &bits(4..12));
        let keys = noise(400, 14);
        check(stream, &keys, |i| [i as u32, 3], &bits(56..64));
        check(stream, &keys, |i| [i as f64, -1.0], &bits(40..50));
    });
}

#[test]
fn large_tiles_and_wide_counts() {
    on_each_schedule(|_, stream| {
        for (warps, items) in [(12, 16), (12, 28)] {
            let tile = 32 * warps * items;
            let policy = RadixSortPolicy { warps, items };
            check(stream, &words(tile + 1, 15), |i| i as u32, &bits(0..8).policy(policy));
        }
        let wide = bits(3..17).wide(true).descending(true);
        let wide_tile = 32 * 12 * 20;
        for n in [1, wide_tile, 2 * wide_tile + 1] {
            check(stream, &words(n, 16), |i| i as u32, &wide);
        }
    });
}

#[test]
fn no_bits_no_change_and_wrong_calls() {
    let device = Device::sim(SimOptions::default()).unwrap();
    let stream = &Stream::new(device.gpu().unwrap()).unwrap();
    check(stream, &words(100, 17), |i| i as u32, &bits(5..5));
    check_keys(stream, &words(100, 17), &bits(32..32));

    let (keys, values) = (upload(stream, &words(10, 18)), upload(stream, &[0u32; 9]));
    let (mut sorted, mut sorted_values) =
        (uninitialized::<u32>(stream, 10), uninitialized::<u32>(stream, 10));
    let workspace = &mut Workspace::new(stream.gpu());
    let error = sort_pairs(stream, workspace, &keys, &values, &mut sorted, &mut sorted_values, &options());
    assert!(matches!(error, Err(Error::Shape { expected: 10, got: 9, .. })), "{error:?}");
    let error = sort_keys(stream, workspace, &keys, &mut sorted, &bits(3..33));
    assert!(matches!(error, Err(Error::InvalidBits { begin: 3, end: 33, bits: 32 })), "{error:?}");
    let policy = RadixSortPolicy { warps: 3, items: 5 };
    let error = sort_keys(stream, workspace, &keys, &mut sorted, &options().policy(policy));
    assert!(matches!(error, Err(Error::InvalidLaunch { .. })), "{error:?}");
    let other = Device::sim(SimOptions::default()).unwrap();
    let other = Stream::new(other.gpu().unwrap()).unwrap();
    let error = sort_keys(&other, workspace, &keys, &mut sorted, &options());
    assert!(matches!(error, Err(Error::WrongDevice { .. })), "{error:?}");
}
