//! Sorts on a GPU: many sizes, equal bits in every run, no allocation in a second run, more items than 2^32.

use crate::{on_cuda, on_each_gpu, zeros};
use kauri::device::{Buffer, Event, Gpu, Stream, Workspace};
use kauri::primitives::generate::splitmix64;
use kauri::primitives::radix_sort::{self, RadixSortOptions, sort_keys, sort_pairs};
use kauri::primitives::{cpu, segmented_sort};
use kauri::research::primitives::RadixSortPolicy;
use kauri_test_kernels::large::{test_keys_modulo, test_sorted_modulo};

fn uninitialized<T: cust_core::DeviceCopy>(gpu: &Gpu, len: usize) -> Buffer<T> {
    Buffer::uninitialized(gpu, len, "test buffer").unwrap()
}

fn options() -> RadixSortOptions {
    RadixSortOptions::default()
}

/// A key type that random bits can make.
trait RandomKey: radix_sort::SortKey + PartialEq {
    fn of(bits: u64) -> Self;
}

impl RandomKey for u32 {
    fn of(bits: u64) -> Self {
        bits as u32
    }
}

impl RandomKey for u64 {
    fn of(bits: u64) -> Self {
        bits
    }
}

/// Returns random keys, with their indices as values.
fn pairs<K: RandomKey>(stream: &Stream, n: usize, mask: u64) -> (Vec<K>, Buffer<K>, Buffer<u32>) {
    let keys: Vec<K> = (0..n as u64).map(|i| K::of(splitmix64(i) & mask)).collect();
    let ids: Vec<u32> = (0..n as u32).collect();
    let buffer = Buffer::from_slice(stream, &keys, "keys").unwrap();
    (keys, buffer, Buffer::from_slice(stream, &ids, "ids").unwrap())
}

fn check<K>(stream: &Stream, n: usize, mask: u64, options: &RadixSortOptions)
where
    K: RandomKey,
{
    let (keys, buffer, ids) = pairs::<K>(stream, n, mask);
    let (mut sorted, mut sorted_ids) =
        (uninitialized::<K>(stream.gpu(), n), uninitialized::<u32>(stream.gpu(), n));
    let workspace = &mut Workspace::new(stream.gpu());
    sort_pairs(stream, workspace, &buffer, &ids, &mut sorted, &mut sorted_ids, options).unwrap();
    let mut expected = (keys.clone(), ids.to_vec(stream).unwrap());
    let values = expected.1.clone();
    cpu::radix_sort::sort_pairs(&keys, &values, &mut expected.0, &mut expected.1, options).unwrap();
    assert!(sorted.to_vec(stream).unwrap() == expected.0, "keys of {n} pairs, {options:?}");
    assert!(sorted_ids.to_vec(stream).unwrap() == expected.1, "values of {n} pairs, {options:?}");

    sort_keys(stream, workspace, &buffer, &mut sorted, options).unwrap();
    assert!(sorted.to_vec(stream).unwrap() == expected.0, "{n} keys, {options:?}");
}

#[test]
fn pairs_of_many_sizes_and_shapes() {
    on_cuda(|_, stream| {
        for n in [1, 1000, 6143, 6144, 6145, 131_072, 131_073, 1_000_007, 5_000_000] {
            for mask in [u64::MAX, 0, 0x0101_0000_0003_0101] {
                check::<u32>(stream, n, mask, &options());
                check::<u64>(stream, n, mask, &options());
            }
            let folded = options().descending(true);
            check::<u32>(stream, n, u64::MAX, &folded);
            check::<u64>(stream, n, u64::MAX, &folded.wide(true));
        }
        for (warps, items) in [(12, 28), (12, 16), (8, 4)] {
            let policy = RadixSortPolicy { warps, items };
            check::<u32>(stream, 3_000_001, u64::MAX, &options().policy(policy));
        }
    });
}

#[test]
fn segments_of_many_lengths() {
    on_cuda(|gpu, stream| {
        let mut offsets = vec![0u64];
        for len in (0..400).chain([511, 512, 513, 2047, 2048, 2049, 50_000, 1_000_000]) {
            offsets.push(offsets[offsets.len() - 1] + len);
        }
        let n = offsets[offsets.len() - 1] as usize;
        let (keys, buffer, ids) = pairs::<u32>(stream, n, u64::MAX);
        let (mut sorted, mut sorted_ids) = (uninitialized::<u32>(gpu, n), uninitialized::<u32>(gpu, n));
        let begins = Buffer::from_slice(stream, &offsets, "offsets").unwrap();
        let workspace = &mut Workspace::new(gpu);
        let options = options().descending(true);
        let (k, v) = (&mut sorted, &mut sorted_ids);
        segmented_sort::sort_pairs(stream, workspace, &buffer, &ids, &begins, k, v, &options).unwrap();
        let values = ids.to_vec(stream).unwrap();
        let (mut expected, mut expected_ids) = (keys.clone(), values.clone());
        let (k, v) = (&mut expected, &mut expected_ids);
        cpu::segmented_sort::sort_pairs(&keys, &values, &offsets, k, v, &options).unwrap();
        assert!(sorted.to_vec(stream).unwrap() == expected);
        assert!(sorted_ids.to_vec(stream).unwrap() == expected_ids);
    });
}

#[test]
fn the_same_bits_on_every_run_and_one_allocation() {
    on_each_gpu(|gpu, stream| {
        let (n, runs) = if gpu.info().id == "sim" { (1500, 2) } else { (1_000_003, 200) };
        let (_, keys, ids) = pairs::<u32>(stream, n, 0xffff);
        let (mut sorted, mut sorted_ids) = (uninitialized::<u32>(gpu, n), uninitialized::<u32>(gpu, n));
        // Other tests allocate on the same device.
        let own = gpu.with_memory_limit(u64::MAX);
        let workspace = &mut Workspace::new(&own);
        let mut sort = |workspace: &mut Workspace| {
            sort_pairs(stream, workspace, &keys, &ids, &mut sorted, &mut sorted_ids, &options()).unwrap();
            (sorted.to_vec(stream).unwrap(), sorted_ids.to_vec(stream).unwrap())
        };
        let first = sort(workspace);
        for _ in 0..runs {
            assert!(sort(workspace) == first);
        }
        if std::env::var_os("KAURI_ALLOC").is_none() {
            assert_eq!(own.memory_use().allocations, 1);
            assert_eq!(workspace.bytes(), radix_sort::plan_pairs::<u32, u32>(n, &options()).unwrap());
        }
    });
}

#[test]
fn a_workspace_goes_from_stream_to_stream() {
    on_each_gpu(|gpu, stream| {
        let n = if gpu.info().id == "sim" { 1100 } else { 2_000_000 };
        let (keys, buffer, _) = pairs::<u32>(stream, n, u64::MAX);
        stream.synchronize().unwrap();
        let mut expected = keys.clone();
        cpu::radix_sort::sort_keys(&keys, &mut expected, &options()).unwrap();
        let workspace = &mut Workspace::new(gpu);
        let mut sorted: Vec<_> = (0..4).map(|_| uninitialized::<u32>(gpu, n)).collect();
        // These streams wait for no other, and may be dropped before their work is done.
        for sorted in &mut sorted {
            sort_keys(&Stream::new(gpu).unwrap(), workspace, &buffer, sorted, &options()).unwrap();
        }
        let done = Event::new(gpu).unwrap();
        sort_keys(stream, workspace, &buffer, &mut sorted[0], &options()).unwrap();
        stream.record(&done).unwrap();
        done.synchronize().unwrap();
        for sorted in &sorted {
            assert!(sorted.to_vec(stream).unwrap() == expected);
        }
    });
}

/// Sorts `n` keys of few values, optionally with their indices, and compares the result with its closed form.
fn sort_by_closed_form(stream: &Stream, n: usize, with_values: bool, options: &RadixSortOptions) {
    const MODULUS: u64 = 1000;
    let gpu = stream.gpu();
    let num_values = if with_values { n } else { 0 };
    let (mut keys, mut values) = (uninitialized::<u32>(gpu, n), uninitialized::<u32>(gpu, num_values));
    let args = (keys.slice_mut(), values.slice_mut(), MODULUS);
    // SAFETY: one thread for each item.
    unsafe { stream.launch_items::<test_keys_modulo>(n as u64, args) }.unwrap();
    let (mut sorted, mut sorted_values) =
        (uninitialized::<u32>(gpu, n), uninitialized::<u32>(gpu, num_values));
    let workspace = &mut Workspace::new(gpu);
    if with_values {
        sort_pairs(stream, workspace, &keys, &values, &mut sorted, &mut sorted_values, options).unwrap();
    } else {
        sort_keys(stream, workspace, &keys, &mut sorted, options).unwrap();
    }
    let mut wrong = zeros::<u64>(stream, 1);
    let args = (sorted.slice(), sorted_values.slice(), wrong.slice_mut(), MODULUS);
    // SAFETY: one thread for each item.
    unsafe { stream.launch_items::<test_sorted_modulo>(n as u64, args) }.unwrap();
    assert_eq!(wrong.to_vec(stream).unwrap(), [0], "{n} items");
}

#[test]
fn sorts_match_the_closed_form() {
    on_each_gpu(|_, stream| {
        let few = options().bits(0..10);
        sort_by_closed_form(stream, 2500, true, &few);
        sort_by_closed_form(stream, 1700, false, &few);
    });
}

/// Runs only if the environment variable `KAURI_LARGE` is set, because it takes up to 70 GB of device memory.
#[test]
fn more_items_than_32_bits_can_count() {
    if std::env::var_os("KAURI_LARGE").is_none() {
        println!("skipped: KAURI_LARGE is not set");
        return;
    }
    on_cuda(|_, stream| {
        for n in [(1 << 30) - 1, 1 << 30, (1 << 30) + 1, (1 << 31) + 12_345] {
            sort_by_closed_form(stream, n, true, &options());
        }
        sort_by_closed_form(stream, (1 << 32) + 54_321, false, &options());
    });
}
