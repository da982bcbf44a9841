//! The primitives on every GPU of this machine and on a simulated one: results equal those of the CPU to the bit on
//! every run, a second call allocates nothing, errors are typed, and more than 2^32 items work.

use kauri::device::{Buffer, FaultCall, FaultPlan, Gpu, SimOptions, Stream, Workspace};
use kauri::primitives::generate::splitmix64;
use kauri::primitives::operator::{Affine, Compose, Max, Min, Sum};
use kauri::primitives::predicate::{AtLeast, Below, EqualBits};
use kauri::primitives::scan::ScanOperator;
use kauri::primitives::{
    bounds, cpu, generate, histogram, partition, permute, reduce, scan, segmented, select, unique,
};
use kauri::{Device, Error, Result};
use kauri_kernels::thread::words::Words;
pub(crate) use kauri_test::{bits, uninitialized, upload};
use rayon::prelude::*;

/// Returns true if every region of a plan is a separate allocation of its exact size.
fn is_paranoid() -> bool {
    std::env::var_os("KAURI_ALLOC").is_some()
}

/// Runs a test with each number of items of `on_cuda` on the GPU of this machine, if there is one, and with each of
/// `on_sim` on a simulated one.
pub(crate) fn on_gpus(on_cuda: &[usize], on_sim: &[usize], test: impl Fn(&Gpu, &Stream, usize)) {
    let sim = Device::sim(SimOptions::default()).unwrap();
    let devices = kauri_tests::devices().into_iter().filter(|device| !device.is_cpu());
    let cases = devices.map(|device| (device, on_cuda)).chain([(sim, on_sim)]);
    for (device, sizes) in cases {
        let gpu = device.gpu().unwrap();
        let stream = Stream::new(gpu).unwrap();
        sizes.iter().for_each(|&n| test(gpu, &stream, n));
    }
}

pub(crate) fn noise<T>(n: usize, item: impl Fn(u64) -> T) -> Vec<T> {
    (0..n as u64).map(|i| item(splitmix64(i))).collect()
}

pub(crate) const ON_CUDA: [usize; 4] = [1, 4097, 1 << 20, 3_000_001];
pub(crate) const ON_SIM: [usize; 2] = [1, 4500];

fn check_scan<T: Words, O: ScanOperator<T>>(stream: &Stream, input: &[T]) {
    let mut workspace = Workspace::new(stream.gpu());
    let items = upload(stream, input);
    let (mut out, mut sum) = (uninitialized(stream, input.len()), uninitialized(stream, 1));
    let mut expected = input.to_vec();
    scan::inclusive::<T, O>(stream, &mut workspace, &items, &mut out).unwrap();
    cpu::scan::inclusive::<T, O>(input, &mut expected);
    assert_eq!(bits(&out.to_vec(stream).unwrap()), bits(&expected), "inclusive, {}", input.len());
    scan::exclusive::<T, O>(stream, &mut workspace, &items, &mut out).unwrap();
    cpu::scan::exclusive::<T, O>(input, &mut expected);
    assert_eq!(bits(&out.to_vec(stream).unwrap()), bits(&expected), "exclusive, {}", input.len());
    reduce::reduce::<T, O>(stream, &mut workspace, &items, &mut sum).unwrap();
    let expected = cpu::reduce::reduce::<T, O>(input);
    assert_eq!(bits(&sum.to_vec(stream).unwrap()), bits(&[expected]), "sum, {}", input.len());
}

#[test]
fn scans_and_sums() {
    on_gpus(&ON_CUDA, &ON_SIM, |_, stream, n| {
        check_scan::<u32, Sum>(stream, &noise(n, |x| x as u32));
        check_scan::<i64, Min>(stream, &noise(n, |x| x as i64));
        check_scan::<f32, Sum>(stream, &noise(n, |x| (x >> 40) as f32 * 1e-6 - 5.0));
        check_scan::<f64, Sum>(stream, &noise(n, |x| (x >> 11) as f64 * 1e-9));
        check_scan::<f32, Max>(stream, &noise(n, |x| (x as i32) as f32));
        check_scan::<Affine, Compose>(stream, &noise(n, |x| Affine { scale: x | 1, offset: !x }));
    });
}

#[test]
fn selections() {
    on_gpus(&ON_CUDA, &ON_SIM, |_, stream, n| {
        let mut workspace = Workspace::new(stream.gpu());
        let input = noise(n, |x| x as u32 % 1000);
        let items = upload(stream, &input);
        let (mut kept, mut others) = (uninitialized::<u32>(stream, n), uninitialized(stream, n));
        let mut count = uninitialized::<u64>(stream, 1);
        let expect = |kept: &Buffer<u32>, count: &Buffer<u64>, expected: &[u32]| {
            assert_eq!(count.to_vec(stream).unwrap(), [expected.len() as u64]);
            assert_eq!(kept.front_to_vec(stream, expected.len()).unwrap(), expected);
        };
        let (below, above) = cpu::select::partition::<u32, Below>(&input, 300);
        let (k, o, c) = (&mut kept, &mut others, &mut count);
        select::partition::<u32, Below>(stream, &mut workspace, &items, 300, k, o, c).unwrap();
        expect(k, c, &below);
        assert_eq!(o.front_to_vec(stream, above.len()).unwrap(), above);
        select::matching::<u32, AtLeast>(stream, &mut workspace, &items, 300, k, c).unwrap();
        expect(k, c, &above);
        let flags: Vec<u8> = input.iter().map(|&x| u8::from(x >= 300)).collect();
        let flags = upload(stream, &flags);
        select::flagged(stream, &mut workspace, &items, &flags, k, c).unwrap();
        expect(k, c, &above);
        kauri::research::primitives::flagged_two_pass(stream, &mut workspace, &items, &flags, k, c).unwrap();
        expect(k, c, &above);

        let mut sorted = input.clone();
        sorted.par_sort_unstable();
        let items = upload(stream, &sorted);
        unique::unique::<u32, EqualBits>(stream, &mut workspace, &items, k, c).unwrap();
        expect(k, c, &cpu::unique::unique::<u32, EqualBits>(&sorted));
    });
}

/// Returns offsets of segments with random lengths up to `longest`.
fn segments(num_items: usize, longest: u64) -> Vec<u64> {
    let mut offsets = vec![0];
    while offsets[offsets.len() - 1] < num_items as u64 {
        let begin = offsets[offsets.len() - 1];
        offsets
            .push((begin + splitmix64(begin + offsets.len() as u64) % (longest + 1)).min(num_items as u64));
    }
    offsets
}

#[test]
fn segments_of_all_lengths() {
    on_gpus(&ON_CUDA, &ON_SIM, |_, stream, n| {
        let mut workspace = Workspace::new(stream.gpu());
        for longest in [3, 200, u64::MAX >> 1] {
            let offsets = segments(n, longest);
            let num_segments = offsets.len() - 1;
            let device_offsets = upload(stream, &offsets);
            let input = noise(n, |x| x as u32);
            let classes = noise(n, |x| (x >> 32) as u8 % 3);
            let (items, device_classes) = (upload(stream, &input), upload(stream, &classes));
            let (mut out, mut counts) = (uninitialized(stream, n), uninitialized(stream, 2 * num_segments));
            let (d_c, d_o) = (&device_classes, &device_offsets);
            partition::by_class(stream, &mut workspace, &items, d_c, d_o, &mut out, &mut counts).unwrap();
            let (expected, expected_counts) = cpu::partition::by_class(&input, &classes, &offsets);
            assert_eq!(out.to_vec(stream).unwrap(), expected);
            assert_eq!(counts.to_vec(stream).unwrap(), expected_counts.concat());

            let floats = noise(n, |x| (x >> 40) as f32 * 1e-6);
            let items = upload(stream, &floats);
            let mut sums = uninitialized(stream, num_segments);
            segmented::reduce::<f32, Sum>(stream, &mut workspace, &items, d_o, &mut sums).unwrap();
            let expected = cpu::segmented::reduce::<f32, Sum>(&floats, &offsets);
            assert_eq!(bits(&sums.to_vec(stream).unwrap()), bits(&expected));
            let mut out = uninitialized(stream, n);
            segmented::inclusive::<f32, Sum>(stream, &mut workspace, &items, d_o, &mut out).unwrap();
            let mut expected = floats.clone();
            cpu::segmented::inclusive::<f32, Sum>(
                &floats,
                &cpu::segmented::heads(&offsets, n),
                &mut expected,
            );
            assert_eq!(bits(&out.to_vec(stream).unwrap()), bits(&expected));
        }
    });
}

#[test]
fn moves_bounds_and_histograms() {
    on_gpus(&ON_CUDA, &ON_SIM, |_, stream, n| {
        let mut workspace = Workspace::new(stream.gpu());
        let input = noise(n, |x| [x as u32, 1, 2]);
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.par_sort_by_key(|&i| splitmix64(u64::from(i) << 20));
        let (items, device_order) = (upload(stream, &input), upload(stream, &order));
        let (mut out, mut back) = (uninitialized(stream, n), uninitialized(stream, n));
        permute::gather(stream, &items, &device_order, &mut out).unwrap();
        let mut expected = input.clone();
        cpu::permute::gather(&input, &order, &mut expected);
        assert_eq!(out.to_vec(stream).unwrap(), expected);
        permute::scatter(stream, &out, &device_order, &mut back).unwrap();
        assert_eq!(back.to_vec(stream).unwrap(), input);

        let points = noise(n, |x| [(x >> 40) as f64 - 7e6, x as i64 as f64]);
        let device_points = upload(stream, &points);
        let mut corners = uninitialized(stream, 2);
        bounds::bounds(stream, &mut workspace, &device_points, &mut corners).unwrap();
        assert_eq!(corners.to_vec(stream).unwrap(), cpu::bounds::bounds(&points));
        assert!(is_paranoid() || bounds::plan::<f64, 2>() == workspace.bytes());

        let floats = noise(n, |x| (x >> 40) as f32 / (1 << 20) as f32);
        let device_floats = upload(stream, &floats);
        let mut counts = uninitialized(stream, 77);
        histogram::even(stream, &device_floats, 1.0, 9.5, &mut counts).unwrap();
        assert_eq!(counts.to_vec(stream).unwrap(), cpu::histogram::even(&floats, 1.0, 9.5, 77));
        let keys = noise(n, |x| x);
        let mut counts = uninitialized(stream, 8 * 256);
        histogram::digits(stream, &upload(stream, &keys), &mut counts).unwrap();
        assert_eq!(counts.to_vec(stream).unwrap(), cpu::histogram::digits(&keys));
    });
}

#[test]
fn the_same_bits_on_every_run() {
    on_gpus(&[2_000_003], &[4500], |_, stream, n| {
        let mut workspace = Workspace::new(stream.gpu());
        let items = upload(stream, &noise(n, |x| (x >> 40) as f32 * 1e-3));
        let (mut out, mut sum) = (uninitialized(stream, n), uninitialized::<f32>(stream, 1));
        let mut first = None;
        for _ in 0..if n > 1 << 20 { 200 } else { 3 } {
            scan::inclusive::<f32, Sum>(stream, &mut workspace, &items, &mut out).unwrap();
            reduce::reduce::<f32, Sum>(stream, &mut workspace, &items, &mut sum).unwrap();
            let got = (bits(&out.to_vec(stream).unwrap()), bits(&sum.to_vec(stream).unwrap()));
            assert!(*first.get_or_insert_with(|| got.clone()) == got);
        }
    });
}

#[test]
fn a_second_call_allocates_nothing() {
    if is_paranoid() {
        return; // every plan allocates its regions again
    }
    on_gpus(&[1 << 20], &[4500], |gpu, stream, n| {
        let items = upload(stream, &noise(n, |x| x as u32));
        let (mut out, mut count) = (uninitialized(stream, n), uninitialized(stream, 1));
        let own = gpu.with_memory_limit(select::plan::<u32>(n).max(scan::plan::<u32, Sum>(n)));
        let mut workspace = Workspace::new(&own);
        for round in 0..3 {
            scan::inclusive::<u32, Sum>(stream, &mut workspace, &items, &mut out).unwrap();
            select::matching::<u32, Below>(stream, &mut workspace, &items, 9, &mut out, &mut count).unwrap();
            if round == 0 {
                continue;
            }
            let expected = if select::plan::<u32>(n) > scan::plan::<u32, Sum>(n) { 2 } else { 1 };
            assert_eq!(own.memory_use().allocations, expected);
        }
    });
}

#[test]
fn wrong_shapes_and_devices_are_errors() {
    on_gpus(&[100], &[100], |gpu, stream, n| {
        let mut workspace = Workspace::new(gpu);
        let items = upload(stream, &noise(n, |x| x as u32));
        let flags = upload(stream, &vec![1u8; n - 1]);
        let (mut short, mut out) = (uninitialized(stream, n - 1), uninitialized(stream, n));
        let (mut count, mut two) = (uninitialized(stream, 1), uninitialized(stream, 2));
        let is_shape = |result: Result<()>| assert!(matches!(result, Err(Error::Shape { .. })), "{result:?}");
        is_shape(scan::inclusive::<u32, Sum>(stream, &mut workspace, &items, &mut short));
        is_shape(reduce::reduce::<u32, Sum>(stream, &mut workspace, &items, &mut out));
        is_shape(select::flagged(stream, &mut workspace, &items, &flags, &mut out, &mut count));
        is_shape(select::matching::<u32, Below>(stream, &mut workspace, &items, 1, &mut out, &mut two));
        is_shape(unique::unique::<u32, EqualBits>(stream, &mut workspace, &items, &mut short, &mut count));
        let (classes, none) = (upload(stream, &vec![0u8; n]), uninitialized::<u64>(stream, 0));
        let mut counts = uninitialized(stream, 0);
        is_shape(partition::by_class(stream, &mut workspace, &items, &classes, &none, &mut out, &mut counts));
        is_shape(segmented::inclusive_by_heads::<u32, Sum>(stream, &mut workspace, &items, &flags, &mut out));
        is_shape(permute::gather(stream, &items, &items, &mut short));
        is_shape(histogram::digits(stream, &items, &mut count));

        let other = Device::sim(SimOptions::default()).unwrap();
        let other = Stream::new(other.gpu().unwrap()).unwrap();
        let result = scan::inclusive::<u32, Sum>(&other, &mut workspace, &items, &mut out);
        assert!(matches!(result, Err(Error::WrongDevice { .. })), "{result:?}");
        let mut foreign = Workspace::new(other.gpu());
        let result = scan::inclusive::<u32, Sum>(stream, &mut foreign, &items, &mut out);
        assert!(matches!(result, Err(Error::WrongDevice { .. })), "{result:?}");
        let result = generate::fill(&other, 1u32, &mut out);
        assert!(matches!(result, Err(Error::WrongDevice { .. })), "{result:?}");
    });
}

/// Scans and selects on a device with a failing call. Returns true if no call failed.
fn survives(gpu: &Gpu, plan: FaultPlan) -> bool {
    let input = noise(300, |x| x as u32);
    let run = |gpu: &Gpu| -> Result<(Vec<u32>, Vec<u64>)> {
        let stream = Stream::new(gpu)?;
        let mut workspace = Workspace::new(gpu);
        let items = Buffer::from_slice(&stream, &input, "input")?;
        let mut out = Buffer::uninitialized(gpu, input.len(), "output")?;
        let mut count = Buffer::uninitialized(gpu, 1, "count")?;
        select::matching::<u32, Below>(&stream, &mut workspace, &items, 1 << 31, &mut out, &mut count)?;
        scan::inclusive::<u32, Sum>(&stream, &mut workspace, &items, &mut out)?;
        Ok((out.to_vec(&stream)?, count.to_vec(&stream)?))
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
        for repeat in [false, true] {
            let mut nth = 1;
            while !survives(gpu, FaultPlan { call: FaultCall::Any, nth, repeat }) {
                nth += 1;
                assert!(nth < 200, "a call never stops failing");
            }
            assert!(nth > 10, "{nth} calls");
        }
    });
}

/// More than 2^32 items, with results in closed form. Takes about 52 GB of device memory and 18 GB of host memory.
#[test]
#[ignore = "for a GPU with 52 GB of memory that are free"]
fn more_than_32_bits_of_items() {
    let n = (1usize << 32) + 5;
    let Ok(device) = Device::from_name("cuda") else { return };
    let gpu = device.gpu().unwrap();
    let stream = &Stream::new(gpu).unwrap();
    let mut workspace = Workspace::new(gpu);
    let (mut items, mut out) = (uninitialized::<u32>(stream, n), uninitialized::<u32>(stream, n));
    let agrees = |got: &[u32], expected: fn(u64) -> u32| {
        assert!(got.par_iter().enumerate().all(|(i, &x)| x == expected(i as u64)));
    };

    generate::fill(stream, 1u32, &mut items).unwrap();
    scan::inclusive::<u32, Sum>(stream, &mut workspace, &items, &mut out).unwrap();
    agrees(&out.to_vec(stream).unwrap(), |i| (i + 1) as u32);
    let mut sum = uninitialized(stream, 1);
    reduce::reduce::<u32, Sum>(stream, &mut workspace, &items, &mut sum).unwrap();
    assert_eq!(sum.to_vec(stream).unwrap(), [5]);

    generate::iota(stream, 0u32, 1, &mut items).unwrap();
    let mut count = uninitialized::<u64>(stream, 1);
    let bound = u32::MAX - 99;
    select::matching::<u32, Below>(stream, &mut workspace, &items, bound, &mut out, &mut count).unwrap();
    assert_eq!(count.to_vec(stream).unwrap(), [n as u64 - 100]);
    let kept = out.front_to_vec(stream, n - 100).unwrap();
    assert_eq!(kept[kept.len() - 6..], [bound - 1, 0, 1, 2, 3, 4]);
    agrees(&kept[..kept.len() - 5], |i| i as u32);
    drop(kept);

    unique::unique::<u32, EqualBits>(stream, &mut workspace, &items, &mut out, &mut count).unwrap();
    assert_eq!(count.to_vec(stream).unwrap(), [n as u64]);
    let classes = {
        let mut classes = uninitialized::<u8>(stream, n);
        classes.fill_bytes(stream, 1).unwrap();
        classes
    };
    let offsets = upload(stream, &[0, 3, n as u64 - 1, n as u64]);
    let mut counts = uninitialized(stream, 6);
    partition::by_class(stream, &mut workspace, &items, &classes, &offsets, &mut out, &mut counts).unwrap();
    assert_eq!(counts.to_vec(stream).unwrap(), [0, 3, 0, n as u64 - 4, 0, 1]);
    agrees(&out.to_vec(stream).unwrap(), |i| i as u32);
}
