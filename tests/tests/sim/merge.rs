//! Merge and merge sort compared with the CPU, and the CPU with `std`: every order and type, tile edges, ties, the
//! super key. Kernels: `merge`, `merge_sort`, `sort_points`.

use crate::{bits, noise, on_each_schedule};
use cuda_std::mem::Slice;
use kauri::device::{Buffer, Stream, Workspace};
use kauri::primitives::item::Bits128;
use kauri::primitives::merge::MergeOrder;
use kauri::primitives::order::{Ascending, ByKey, Descending, NoValue, Order};
use kauri::primitives::radix_sort::SortKey;
use kauri::primitives::{cpu, merge, merge_sort};
use kauri::research::primitives as research;
use kauri_kernels::policy::MERGE;
use kauri_kernels::primitives::merge::{TwoRuns, primitives_merge_partition};
use kauri_kernels::thread::carried::Source;
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::merge_path::split;
use kauri_kernels::thread::order::Lookup;
use kauri_kernels::thread::radix_key::Fold;
use kauri_kernels::thread::words::Words;
use std::cmp::Ordering;
use std::ptr::dangling;

/// The items of a tile of 4-byte keys.
const TILE: usize = MERGE.tile_items(1);

fn sort_keys<K: Words, O: MergeOrder<K, NoValue> + ByKey>(stream: &Stream, keys: &[K]) {
    let mut workspace = Workspace::new(stream.gpu());
    let input = Buffer::from_slice(stream, keys, "keys").unwrap();
    let mut sorted = Buffer::uninitialized(stream.gpu(), keys.len(), "sorted").unwrap();
    merge_sort::sort_keys::<K, O>(stream, &mut workspace, &input, &mut sorted).unwrap();
    assert_eq!(workspace.bytes(), merge_sort::plan_keys::<K>(keys.len()));
    let expected = cpu::merge_sort::sort_keys::<K, O>(keys);
    assert_eq!(bits(&sorted.to_vec(stream).unwrap()), bits(&expected), "{} keys", keys.len());
}

/// Values are indices, which shows whether the sort is stable.
fn sort_pairs<K: Words, O: MergeOrder<K, u32> + ByKey>(stream: &Stream, keys: &[K]) {
    let gpu = stream.gpu();
    let mut workspace = Workspace::new(gpu);
    let values: Vec<u32> = (0..keys.len() as u32).collect();
    let input = Buffer::from_slice(stream, keys, "keys").unwrap();
    let ids = Buffer::from_slice(stream, &values, "values").unwrap();
    let mut sorted = Buffer::uninitialized(gpu, keys.len(), "sorted").unwrap();
    let mut order = Buffer::uninitialized(gpu, keys.len(), "order").unwrap();
    merge_sort::sort_pairs::<K, O>(stream, &mut workspace, &input, &ids, &mut sorted, &mut order).unwrap();
    assert_eq!(workspace.bytes(), merge_sort::plan_pairs::<K>(keys.len()));
    let expected = cpu::merge_sort::sort_pairs::<K, O>(keys, &values);
    assert_eq!(order.to_vec(stream).unwrap(), expected.1, "{} pairs", keys.len());
    assert_eq!(bits(&sorted.to_vec(stream).unwrap()), bits(&expected.0));
}

fn narrow(n: usize, range: u64) -> Vec<u32> {
    noise(n, 71).iter().map(|x| (x % range) as u32).collect()
}

#[test]
fn sorts_of_every_length() {
    on_each_schedule(|_, stream| {
        for n in [0, 1, 2, 6, 7, 8, 31, 33, 223, 225, TILE - 1, TILE, TILE + 1, 2 * TILE - 1, 5 * TILE + 3] {
            sort_keys::<u32, Ascending>(stream, &narrow(n, 1 << 32));
            sort_pairs::<u32, Descending>(stream, &narrow(n, 9));
        }
    });
}

/// Sorts and merges in both directions. The oracle is the standard library's stable sort.
fn every_order<K: SortKey>(stream: &Stream, keys: &[K], compare: fn(&K, &K) -> Ordering) {
    let ids: Vec<u32> = (0..keys.len() as u32).collect();
    let (mut up, mut down) = (ids.clone(), ids.clone());
    up.sort_by(|&a, &b| compare(&keys[a as usize], &keys[b as usize]));
    down.sort_by(|&a, &b| compare(&keys[b as usize], &keys[a as usize]));
    assert_eq!(cpu::merge_sort::sort_pairs::<K, Ascending>(keys, &ids).1, up);
    assert_eq!(cpu::merge_sort::sort_pairs::<K, Descending>(keys, &ids).1, down);
    // One tile, and several.
    for keys in [&keys[..100], keys] {
        sort_keys::<K, Ascending>(stream, keys);
        sort_keys::<K, Descending>(stream, keys);
        sort_pairs::<K, Ascending>(stream, keys);
        sort_pairs::<K, Descending>(stream, keys);
    }
    let (first, second) = keys.split_at(keys.len() / 3);
    merge_all::<K, Ascending>(stream, first, second);
    merge_all::<K, Descending>(stream, first, second);
}

#[test]
fn every_type_and_order() {
    let special = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0, 1.5, -1.5];
    on_each_schedule(|_, stream| {
        let words = noise(TILE + 77, 73);
        let narrow = |n: usize| words[..n].iter().map(|&x| x as u32);
        let wide = &words[..MERGE.tile_items(2) + 77];
        // Half of the keys are special values, the others random bits, including many kinds of NaN.
        let float =
            |x: u64| if x.is_multiple_of(2) { special[x as usize / 2 % 8] } else { f32::from_bits(x as u32) };
        let double = |x: u64| if x.is_multiple_of(2) { float(x).into() } else { f64::from_bits(x) };
        every_order(stream, &narrow(TILE + 77).collect::<Vec<u32>>(), Ord::cmp);
        every_order(stream, &narrow(TILE + 77).map(|x| x as i32 >> 24).collect::<Vec<_>>(), Ord::cmp);
        every_order(stream, &words.iter().map(|&x| float(x)).collect::<Vec<_>>(), f32::total_cmp);
        every_order(stream, wide, Ord::cmp);
        every_order(stream, &wide.iter().map(|&x| x as i64).collect::<Vec<_>>(), Ord::cmp);
        every_order(stream, &wide.iter().map(|&x| double(x)).collect::<Vec<_>>(), f64::total_cmp);
    });
}

#[test]
fn patterns_and_sixteen_bytes() {
    on_each_schedule(|_, stream| {
        let n = TILE + 77;
        let keys: Vec<Bits128> = noise(n, 73).iter().map(|&x| Bits128(x % 5, x)).collect();
        sort_keys::<Bits128, Ascending>(stream, &keys);
        for pattern in [|_| 7u32, |i| i, |i| u32::MAX - i, |i| u32::from(i == 1000), |i| i % 2] {
            sort_pairs::<u32, Ascending>(stream, &(0..n as u32).map(pattern).collect::<Vec<_>>());
        }
    });
}

fn sort_points<C: Float, const D: usize>(stream: &Stream, points: &[[C; D]], axis: usize)
where
    [C; D]: cust_core::DeviceCopy,
{
    let gpu = stream.gpu();
    let mut workspace = Workspace::new(gpu);
    let device_points = Buffer::from_slice(stream, points, "points").unwrap();
    let mut coords = Buffer::uninitialized(gpu, points.len(), "coords").unwrap();
    let mut ids = Buffer::uninitialized(gpu, points.len(), "ids").unwrap();
    let (c, i) = (&mut coords, &mut ids);
    research::sort_points(stream, &mut workspace, &device_points, axis, c, i).unwrap();
    let expected = research::cpu::sort_points(points, axis);
    assert_eq!(ids.to_vec(stream).unwrap(), expected.1, "{} points, axis {axis}", points.len());
    assert_eq!(bits(&coords.to_vec(stream).unwrap()), bits(&expected.0));
}

#[test]
fn points_by_super_key() {
    on_each_schedule(|_, stream| {
        for n in [1, 100, TILE + 300] {
            let x = noise(4 * n, 79);
            // A small lattice: ties on every axis, equal points, both zeros.
            let points: Vec<[f32; 4]> =
                x.chunks(4).map(|x| std::array::from_fn(|axis| -((x[axis] % 4) as f32))).collect();
            sort_points(stream, &points, 0);
            sort_points(stream, &points, 3);
            let points: Vec<[f64; 2]> =
                x.chunks(4).map(|x| [(x[0] % 3) as f64, (x[1] % 50) as f64]).collect();
            sort_points(stream, &points, 1);
        }
        sort_points(stream, &[[-0.0f32, 2.0], [0.0, 1.0], [-0.0, 1.0], [0.0, 2.0]], 0);
    });
}

fn merge_all<K: Words, O: MergeOrder<K, NoValue> + MergeOrder<K, u32> + ByKey>(
    stream: &Stream,
    first: &[K],
    second: &[K],
) {
    let gpu = stream.gpu();
    let runs = [first, second].map(|keys| cpu::merge_sort::sort_keys::<K, O>(keys));
    let n = first.len() + second.len();
    let values: Vec<u32> = (0..n as u32).collect();
    let values = values.split_at(first.len());
    let keys = runs.each_ref().map(|keys| Buffer::from_slice(stream, keys, "run").unwrap());
    let ids = [values.0, values.1].map(|values| Buffer::from_slice(stream, values, "values").unwrap());
    let mut merged = Buffer::uninitialized(gpu, n, "merged").unwrap();
    let mut order = Buffer::uninitialized(gpu, n, "order").unwrap();
    let mut workspace = Workspace::new(gpu);
    merge::merge_keys::<K, O>(stream, &mut workspace, &keys[0], &keys[1], &mut merged).unwrap();
    assert_eq!(workspace.bytes(), merge::plan::<K>(n));
    let expected = cpu::merge::merge_keys::<K, O>(&runs[0], &runs[1]);
    assert_eq!(bits(&merged.to_vec(stream).unwrap()), bits(&expected), "{} + {}", first.len(), second.len());
    let to = (&mut merged, &mut order);
    merge::merge_pairs::<K, O>(stream, &mut workspace, (&keys[0], &ids[0]), (&keys[1], &ids[1]), to).unwrap();
    let expected = cpu::merge::merge_pairs::<K, O>((&runs[0], values.0), (&runs[1], values.1));
    assert_eq!(order.to_vec(stream).unwrap(), expected.1, "{} + {}", first.len(), second.len());
    assert_eq!(bits(&merged.to_vec(stream).unwrap()), bits(&expected.0));
    // A merge equals a stable sort of the concatenated runs.
    let all: Vec<K> = runs.concat();
    let values: Vec<u32> = (0..n as u32).collect();
    assert_eq!(cpu::merge_sort::sort_pairs::<K, O>(&all, &values).1, expected.1);
}

#[test]
fn merges_of_every_length() {
    on_each_schedule(|_, stream| {
        for (a, b) in [
            (0, 0),
            (0, 1),
            (1, 0),
            (5, 3),
            (33, 0),
            (TILE, TILE),
            (TILE - 1, 2),
            (40, 3 * TILE),
            (2000, 1999),
        ] {
            merge_all::<u32, Ascending>(stream, &narrow(a, 1 << 32), &narrow(b, 1 << 32));
            merge_all::<u32, Ascending>(stream, &narrow(a, 4), &narrow(b, 4));
        }
        // One run entirely before the other, in both orders.
        let (low, high) = (narrow(2500, 100), narrow(2500, 100).iter().map(|x| x + 100).collect::<Vec<_>>());
        merge_all::<u32, Ascending>(stream, &low, &high);
        merge_all::<u32, Ascending>(stream, &high, &low);
    });
}

#[test]
fn merges_of_unsorted_runs_stay_in_bounds() {
    on_each_schedule(|_, stream| {
        let gpu = stream.gpu();
        let mut workspace = Workspace::new(gpu);
        let runs = [narrow(3 * TILE, 1 << 32), narrow(2 * TILE + 5, 1 << 31)];
        let runs = runs.each_ref().map(|keys| Buffer::from_slice(stream, keys, "run").unwrap());
        let mut merged = Buffer::uninitialized(gpu, 5 * TILE + 5, "merged").unwrap();
        merge::merge_keys::<u32, Ascending>(stream, &mut workspace, &runs[0], &runs[1], &mut merged).unwrap();
        merged.to_vec(stream).unwrap();
    });
}

/// The splits of many tiles: with small tiles there are enough of them for both numbers of lanes.
#[test]
fn splits_of_many_tiles() {
    fn splits_of<K: Words + Ord>(stream: &Stream, first: &[K], second: &[K], tile_items: usize)
    where
        Ascending: Order<K, NoValue>,
    {
        let num_tiles = (first.len() + second.len()).div_ceil(tile_items);
        let keys = [first, second].map(|keys| Buffer::from_slice(stream, keys, "run").unwrap());
        let mut splits = Buffer::<u64>::uninitialized(stream.gpu(), num_tiles, "splits").unwrap();
        let lanes = (num_tiles * MERGE.split_lanes(num_tiles)) as u64;
        // SAFETY: there are no values and nothing is looked up; the buffers live until the splits have been copied.
        let found = unsafe {
            let lookup = Lookup { coords: Slice::from_raw_parts(dangling(), 0), dims: 0, axis: 0 };
            let [first, second] = [0, 1].map(|run| Source::of_keys(keys[run].slice()));
            let runs = TwoRuns { first, second, fold: Fold::NONE, lookup };
            let args = (runs, splits.slice_mut(), tile_items as u64);
            stream.launch_items::<primitives_merge_partition<K, NoValue, Ascending>>(lanes, args).unwrap();
            splits.to_vec(stream).unwrap()
        };
        let expected = (0..num_tiles).map(|tile| {
            split(first.len(), second.len(), tile * tile_items, |i, j| first[i] <= second[j]) as u64
        });
        assert_eq!(found, expected.collect::<Vec<_>>(), "{} + {}", first.len(), second.len());
    }
    on_each_schedule(|_, stream| {
        let sorted = |n: usize, range: u64| {
            let mut keys: Vec<u64> = noise(n, 83).iter().map(|x| x % range).collect();
            keys.sort_unstable();
            keys
        };
        for (a, b, tile_items) in [(700, 300, 7), (0, 50, 3), (5000, 3300, 1)] {
            let (first, second) = (sorted(a, 100), sorted(b, 90));
            splits_of::<u64>(stream, &first, &second, tile_items);
            let narrow = |keys: &[u64]| keys.iter().map(|&key| key as u32).collect::<Vec<_>>();
            splits_of::<u32>(stream, &narrow(&first), &narrow(&second), tile_items);
        }
    });
}
