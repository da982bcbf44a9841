//! Top-k, merges, merge sorts, search and expansion, on every GPU of this machine and on a simulated one.

use crate::primitives::{ON_CUDA, bits, noise, on_gpus, uninitialized, upload};
use kauri::device::{Buffer, FaultCall, FaultPlan, Gpu, Stream, Workspace};
use kauri::primitives::generate::{iota, splitmix64};
use kauri::primitives::order::{Ascending, Descending, NoValue, Order};
use kauri::primitives::top_k::{Best, RankKey};
use kauri::primitives::{cpu, expand, merge, merge_sort, search, top_k};
use kauri::research::primitives as research;
use kauri::{Device, Error, Result};
use kauri_kernels::thread::ranked::RankBits;
use rayon::prelude::*;

const ON_SIM: [usize; 2] = [1, 1900];

fn check_top_k<K: RankKey>(stream: &Stream, keys: &[K], k: usize, best: Best)
where
    Ascending: Order<<K::Bits as RankBits>::Ranked, NoValue>,
{
    let mut workspace = Workspace::new(stream.gpu());
    let (device_keys, mut best_keys, mut ids) =
        (upload(stream, keys), uninitialized(stream, k), uninitialized(stream, k));
    top_k::top_k(stream, &mut workspace, &device_keys, best, &mut best_keys, &mut ids).unwrap();
    assert_eq!(workspace.bytes(), top_k::plan::<K>(keys.len(), k));
    let expected = cpu::top_k::top_k(keys, k, best);
    assert_eq!(ids.to_vec(stream).unwrap(), expected.1, "{k} of {}, {best:?}", keys.len());
    assert_eq!(bits(&best_keys.to_vec(stream).unwrap()), bits(&expected.0));
}

#[test]
fn the_best_of_all() {
    on_gpus(&ON_CUDA, &ON_SIM, |_, stream, n| {
        let floats = noise(n, |x| (x >> 40) as f32 - 5e6);
        let mut ks = vec![1, 100, 1024, 50_000, n / 3, n, n + 5];
        ks.retain(|&k| k <= n + 5 && k > 0);
        for k in ks {
            check_top_k(stream, &floats, k, Best::Smallest);
            check_top_k(stream, &floats, k, Best::Largest);
        }
        check_top_k(stream, &noise(n, |x| x), 777, Best::Smallest);
        check_top_k(stream, &noise(n, f64::from_bits), 777, Best::Largest);
        check_top_k(stream, &vec![0.0f32; n], 1000, Best::Largest);
        check_top_k(stream, &noise(n, |x| x as u32 % 3), 1000, Best::Largest);
        check_top_k(stream, &(0..n as u32).collect::<Vec<_>>(), 1000, Best::Largest);
        check_top_k(stream, &(0..n as i64).map(|x| -x).collect::<Vec<_>>(), 1000, Best::Largest);
    });
}

#[test]
fn the_best_of_segments() {
    on_gpus(&ON_CUDA, &ON_SIM, |_, stream, n| {
        let mut workspace = Workspace::new(stream.gpu());
        let input = noise(n, |x| (x >> 40) as f32);
        let keys = upload(stream, &input);
        for (length, k) in [(5, 3), (70, 32), (3000, 10), (3000, 500), (100_000, 20), (100_000, 2000)] {
            let ends = (1..=n.div_ceil(length)).map(|i| (i * length).min(n) as u64);
            let offsets: Vec<u64> = [0, 0].into_iter().chain(ends).collect();
            let rows = (offsets.len() - 1) * k;
            let (mut best, mut ids) = (uninitialized(stream, rows), uninitialized(stream, rows));
            let (b, i) = (&mut best, &mut ids);
            let device_offsets = upload(stream, &offsets);
            top_k::top_k_segmented(stream, &mut workspace, &keys, &device_offsets, k, Best::Largest, b, i)
                .unwrap();
            let expected = cpu::top_k::top_k_segmented(&input, &offsets, k, Best::Largest);
            assert_eq!(ids.to_vec(stream).unwrap(), expected.1, "{k} of each {length}");
            assert_eq!(bits(&best.to_vec(stream).unwrap()), bits(&expected.0));
        }
    });
}

#[test]
fn merges_and_sorts() {
    on_gpus(&ON_CUDA, &ON_SIM, |_, stream, n| {
        let mut workspace = Workspace::new(stream.gpu());
        let input = noise(n, |x| 2500.0 - (x % 5000) as f32);
        let values: Vec<u32> = (0..n as u32).collect();
        let (keys, ids) = (upload(stream, &input), upload(stream, &values));
        let (mut sorted, mut order) = (uninitialized(stream, n), uninitialized(stream, n));
        let (s, o) = (&mut sorted, &mut order);
        merge_sort::sort_pairs::<f32, Descending>(stream, &mut workspace, &keys, &ids, s, o).unwrap();
        let expected = cpu::merge_sort::sort_pairs::<f32, Descending>(&input, &values);
        assert_eq!(order.to_vec(stream).unwrap(), expected.1);
        assert_eq!(sorted.to_vec(stream).unwrap(), expected.0);
        let signed = noise(n, |x| x as i64);
        let (keys, mut sorted_keys) = (upload(stream, &signed), uninitialized(stream, n));
        merge_sort::sort_keys::<i64, Descending>(stream, &mut workspace, &keys, &mut sorted_keys).unwrap();
        let expected = cpu::merge_sort::sort_keys::<i64, Descending>(&signed);
        assert_eq!(sorted_keys.to_vec(stream).unwrap(), expected);

        let points = noise(n, |x| [x, x >> 8, x >> 16, x >> 24].map(|x| (x % 20) as f32));
        let device_points = upload(stream, &points);
        for axis in [0, 2] {
            let (s, o) = (&mut sorted, &mut order);
            research::sort_points(stream, &mut workspace, &device_points, axis, s, o).unwrap();
            let expected = research::cpu::sort_points(&points, axis);
            assert_eq!(order.to_vec(stream).unwrap(), expected.1, "axis {axis}");
            assert_eq!(sorted.to_vec(stream).unwrap(), expected.0);
        }

        let runs = [n / 3, n].map(|len| {
            cpu::merge_sort::sort_keys::<f64, Descending>(&noise(len, |x| 5000.0 - (x % 10_000) as f64))
        });
        let ids = runs.each_ref().map(|run| (0..run.len() as u32).collect::<Vec<_>>());
        let device_runs = runs.each_ref().map(|run| upload(stream, run));
        let device_ids = ids.each_ref().map(|ids| upload(stream, ids));
        let len = runs[0].len() + n;
        let (mut merged, mut order) = (uninitialized(stream, len), uninitialized(stream, len));
        let run = |i: usize| (&device_runs[i], &device_ids[i]);
        let to = (&mut merged, &mut order);
        merge::merge_pairs::<f64, Descending>(stream, &mut workspace, run(0), run(1), to).unwrap();
        let run = |i: usize| (&runs[i][..], &ids[i][..]);
        let expected = cpu::merge::merge_pairs::<f64, Descending>(run(0), run(1));
        assert_eq!(merged.to_vec(stream).unwrap(), expected.0);
        assert_eq!(order.to_vec(stream).unwrap(), expected.1);
    });
}

#[test]
fn searches_and_expansions() {
    on_gpus(&ON_CUDA, &ON_SIM, |_, stream, n| {
        let mut workspace = Workspace::new(stream.gpu());
        let queries = noise(n, |x| (x >> 32) as i64 - (1 << 31));
        let sorted =
            cpu::merge_sort::sort_keys::<i64, Ascending>(&noise(n / 2, |x| (x >> 33) as i64 - (1 << 30)));
        let (device_sorted, device_queries) = (upload(stream, &sorted), upload(stream, &queries));
        let (mut begins, mut ends) = (uninitialized(stream, n), uninitialized(stream, n));
        search::equal_range(stream, &device_sorted, &device_queries, &mut begins, &mut ends).unwrap();
        assert_eq!(begins.to_vec(stream).unwrap(), cpu::search::lower_bound(&sorted, &queries));
        assert_eq!(ends.to_vec(stream).unwrap(), cpu::search::upper_bound(&sorted, &queries));

        // Mostly empty segments, and a few long ones.
        let counts = noise(n, |x| if x.is_multiple_of(9) { (x >> 40) as u32 % 20 } else { 0 });
        let device_counts = upload(stream, &counts);
        let mut offsets = uninitialized(stream, n + 1);
        expand::offsets(stream, &mut workspace, &device_counts, &mut offsets).unwrap();
        let expected = cpu::expand::offsets(&counts);
        assert_eq!(offsets.to_vec(stream).unwrap(), expected);
        let expected = cpu::expand::expand(&expected);
        for capacity in [expected.len(), expected.len() / 3] {
            let (mut segments, mut indices) =
                (uninitialized(stream, capacity), uninitialized(stream, capacity));
            let mut overflow = uninitialized(stream, 1);
            expand::expand(stream, &offsets, &mut segments, &mut indices, &mut overflow).unwrap();
            let got = segments.to_vec(stream).unwrap().into_iter().zip(indices.to_vec(stream).unwrap());
            assert!(got.eq(expected[..capacity].iter().copied()));
            assert_eq!(overflow.to_vec(stream).unwrap(), [u32::from(capacity < expected.len())]);
        }
    });
}

#[test]
fn a_second_call_allocates_nothing() {
    if std::env::var_os("KAURI_ALLOC").is_some() {
        return; // every plan allocates its regions again
    }
    on_gpus(&[1 << 22], &[20_000], |gpu, stream, n| {
        let k = 500;
        let keys = upload(stream, &noise(n, |x| x as u32));
        let (mut best, mut ids, mut sorted) =
            (uninitialized(stream, k), uninitialized(stream, k), uninitialized(stream, n));
        let own = gpu.with_memory_limit(merge_sort::plan_keys::<u32>(n).max(top_k::plan::<u32>(n, k)));
        let mut workspace = Workspace::new(&own);
        for _ in 0..3 {
            merge_sort::sort_keys::<u32, Ascending>(stream, &mut workspace, &keys, &mut sorted).unwrap();
            top_k::top_k(stream, &mut workspace, &keys, Best::Smallest, &mut best, &mut ids).unwrap();
        }
        let grown = merge_sort::plan_keys::<u32>(n) < top_k::plan::<u32>(n, k);
        assert_eq!(own.memory_use().allocations, 1 + u64::from(grown));
    });
}

#[test]
fn the_same_bits_on_every_run() {
    on_gpus(&[2_000_003], &[20_000], |_, stream, n| {
        let mut workspace = Workspace::new(stream.gpu());
        let keys = upload(stream, &noise(n, |x| (x % 1000) as f32));
        let (mut best, mut ids) = (uninitialized(stream, 3000), uninitialized(stream, 3000));
        let mut first = None;
        for _ in 0..if n > 1 << 20 { 200 } else { 3 } {
            top_k::top_k(stream, &mut workspace, &keys, Best::Largest, &mut best, &mut ids).unwrap();
            let got = ids.to_vec(stream).unwrap();
            assert!(*first.get_or_insert_with(|| got.clone()) == got);
        }
    });
}

#[test]
fn wrong_shapes_are_errors() {
    on_gpus(&[100], &[100], |gpu, stream, n| {
        let mut workspace = Workspace::new(gpu);
        let is_shape = |result: Result<()>| assert!(matches!(result, Err(Error::Shape { .. })), "{result:?}");
        let keys = upload(stream, &noise(n, |x| x as u32));
        let (mut short, mut same) = (uninitialized::<u32>(stream, n - 1), uninitialized::<u32>(stream, n));
        let (mut positions, mut offsets) =
            (uninitialized::<u64>(stream, n + 1), uninitialized::<u64>(stream, n));
        let none = uninitialized::<u64>(stream, 0);
        is_shape(top_k::top_k(stream, &mut workspace, &keys, Best::Smallest, &mut short, &mut same));
        is_shape(merge_sort::sort_keys::<u32, Ascending>(stream, &mut workspace, &keys, &mut short));
        is_shape(merge::merge_keys::<u32, Ascending>(stream, &mut workspace, &keys, &keys, &mut same));
        is_shape(search::lower_bound(stream, &keys, &keys, &mut positions));
        is_shape(expand::offsets(stream, &mut workspace, &keys, &mut offsets));
        let mut overflow = uninitialized(stream, 1);
        is_shape(expand::expand(stream, &none, &mut same, &mut short, &mut overflow));
        let (b, i) = (&mut short, &mut same);
        is_shape(top_k::top_k_segmented(stream, &mut workspace, &keys, &none, 1, Best::Smallest, b, i));
        let points = upload(stream, &vec![[0.0f32; 2]; n]);
        let mut coords = uninitialized(stream, n);
        is_shape(research::sort_points(stream, &mut workspace, &points, 2, &mut coords, &mut same));
    });
}

/// Selects the best keys, sorts and expands on a device with a failing call. Returns true if no call failed.
fn survives(gpu: &Gpu, plan: FaultPlan) -> bool {
    let input = noise(2000, |x| x as u32);
    let run = |gpu: &Gpu| -> Result<(Vec<u32>, Vec<u32>)> {
        let stream = Stream::new(gpu)?;
        let mut workspace = Workspace::new(gpu);
        let keys = Buffer::from_slice(&stream, &input, "input")?;
        let mut sorted = Buffer::uninitialized(gpu, input.len(), "sorted")?;
        let (mut best, mut ids) =
            (Buffer::uninitialized(gpu, 9, "best")?, Buffer::uninitialized(gpu, 9, "ids")?);
        top_k::top_k(&stream, &mut workspace, &keys, Best::Smallest, &mut best, &mut ids)?;
        merge_sort::sort_keys::<u32, Ascending>(&stream, &mut workspace, &keys, &mut sorted)?;
        Ok((ids.to_vec(&stream)?, sorted.to_vec(&stream)?))
    };
    let faulty = gpu.with_faults(plan);
    let result = run(&faulty);
    assert_eq!(faulty.memory_use().live_bytes, 0, "{plan:?}");
    match result {
        Ok(got) => {
            assert_eq!(got, run(gpu).unwrap(), "{plan:?}");
            true
        }
        Err(error) => {
            let expected =
                matches!(error, Error::OutOfMemory { .. } | Error::Driver { name: "INJECTED", .. });
            assert!(expected, "{plan:?}: {error}");
            false
        }
    }
}

#[test]
fn every_call_may_fail() {
    on_gpus(&[0], &[0], |gpu, _, _| {
        let mut nth = 1;
        while !survives(gpu, FaultPlan { call: FaultCall::Any, nth, repeat: false }) {
            nth += 1;
            assert!(nth < 200, "a call never stops failing");
        }
        assert!(nth > 10, "{nth} calls");
    });
}

/// More than 2^32 items, with results in closed form. Takes about 70 GB of device memory and 18 GB of host memory.
#[test]
#[ignore = "for a GPU with 70 GB of memory that are free"]
fn more_than_32_bits_of_items() {
    let Ok(device) = Device::from_name("cuda") else { return };
    let gpu = device.gpu().unwrap();
    let stream = &Stream::new(gpu).unwrap();
    let mut workspace = Workspace::new(gpu);
    {
        // Multiplication by an odd factor is a permutation.
        let (n, factor) = (u32::MAX as usize, 0x9E37_79B1u32);
        let mut keys = uninitialized::<u32>(stream, n);
        iota(stream, 0, factor, &mut keys).unwrap();
        let (mut best, mut ids) = (uninitialized(stream, 1000), uninitialized(stream, 1000));
        top_k::top_k(stream, &mut workspace, &keys, Best::Smallest, &mut best, &mut ids).unwrap();
        // The missing index has another key.
        let (best, ids) = (best.to_vec(stream).unwrap(), ids.to_vec(stream).unwrap());
        assert!(best.iter().zip(&ids).all(|(&key, &id)| id.wrapping_mul(factor) == key));
        assert_eq!(best, (0..1000).collect::<Vec<u32>>());
    }
    let n = (1usize << 32) + 5;
    {
        let (mut keys, mut sorted) = (uninitialized::<u32>(stream, n), uninitialized::<u32>(stream, n));
        iota(stream, 4, u32::MAX, &mut keys).unwrap();
        merge_sort::sort_keys::<u32, Ascending>(stream, &mut workspace, &keys, &mut sorted).unwrap();
        let sorted = sorted.to_vec(stream).unwrap();
        // The values 4, 3, 2, 1, 0 occur twice each.
        assert!(
            sorted.par_iter().enumerate().all(|(i, &key)| key as usize == if i < 10 { i / 2 } else { i - 5 })
        );
    }
    workspace = Workspace::new(gpu);
    {
        let mut sorted = uninitialized::<u64>(stream, n);
        iota(stream, 0, 3, &mut sorted).unwrap();
        let queries: Vec<u64> = (0..1000).map(|i| splitmix64(i) % (3 * n as u64 + 10)).collect();
        let (device_queries, mut positions) =
            (upload(stream, &queries), uninitialized(stream, queries.len()));
        search::lower_bound(stream, &sorted, &device_queries, &mut positions).unwrap();
        let expected = queries.iter().map(|query| query.div_ceil(3).min(n as u64));
        assert!(positions.to_vec(stream).unwrap().into_iter().eq(expected));
    }
    let counts = upload(stream, &vec![1000u32; n.div_ceil(1000)]);
    let mut offsets = uninitialized(stream, counts.len() + 1);
    expand::offsets(stream, &mut workspace, &counts, &mut offsets).unwrap();
    let (mut segments, mut indices, mut overflow) =
        (uninitialized(stream, n), uninitialized(stream, n), uninitialized(stream, 1));
    expand::expand(stream, &offsets, &mut segments, &mut indices, &mut overflow).unwrap();
    assert_eq!(overflow.to_vec(stream).unwrap(), [1]);
    let agrees = |got: &[u32], expected: fn(usize) -> usize| {
        assert!(got.par_iter().enumerate().all(|(i, &x)| x as usize == expected(i)));
    };
    agrees(&segments.to_vec(stream).unwrap(), |i| i / 1000);
    agrees(&indices.to_vec(stream).unwrap(), |i| i % 1000);
}
