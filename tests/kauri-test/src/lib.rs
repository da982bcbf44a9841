#![doc = include_str!("../README.md")]

use bytemuck::NoUninit;
use cust_core::DeviceCopy;
use kauri::device::{Buffer, Gpu, Schedule, SimOptions, Stream};
use kauri::{Device, Error};
use kauri_kernels::thread::words::Words;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Runs a test on the GPU, if there is one, and on simulated GPUs.
pub fn on_each_gpu(test: impl Fn(&Gpu, &Stream)) {
    on_cuda(&test);
    on_each_schedule(test);
}

/// Runs a test that needs CUDA: the simulator loads no modules and calls no driver. Without a GPU the test checks nothing, and the test
/// program prints a line about it.
pub fn on_cuda(test: impl Fn(&Gpu, &Stream)) {
    for device in devices() {
        if let Some(gpu) = device.gpu() {
            test(gpu, &Stream::new(gpu).unwrap());
        }
    }
}

/// Runs a test on each simulated device.
pub fn on_each_schedule(test: impl Fn(&Gpu, &Stream)) {
    on_each_schedule_in_turn(1, |gpu, stream, _| test(gpu, stream));
}

/// Like [`on_each_schedule`], but each device runs one of `cases` in turn: for slow cases. With fewer devices than
/// cases, as in a replay of one schedule, a device runs several. Under [some schedules](Share) about half of the cases run.
pub fn on_each_schedule_in_turn(cases: usize, test: impl Fn(&Gpu, &Stream, usize)) {
    let devices: Vec<_> = simulated().collect();
    let Share { step, first } = Share::of_this_run();
    for (i, device) in devices.iter().cycle().take(devices.len().max(cases.div_ceil(step))).enumerate() {
        let gpu = device.gpu().unwrap();
        test(gpu, &Stream::new(gpu).unwrap(), (first + i) % cases);
    }
}

/// The share of many slow cases that a run tests: all, or every second one if it has only some of the schedules, as a run for one change.
/// The first schedule, which depends on the change, decides which.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The distance of two cases that are tested.
    pub step: usize,
    /// The first case that is tested, modulo [`step`](Self::step).
    pub first: usize,
}

impl Share {
    /// Returns the share of this run.
    pub fn of_this_run() -> Self {
        let has_some = !Schedule::env_is_set() && device_instead().is_none();
        if has_some && (1..Schedule::ORDERS).contains(&num_orders()) {
            Self { step: 2, first: first_order() }
        } else {
            Self { step: 1, first: 0 }
        }
    }

    /// True for a case that is tested.
    pub fn has(self, case: usize) -> bool {
        case % self.step == self.first % self.step
    }
}

/// Returns the CPU and the first GPU, if there is one. All tests share these devices and the kernels loaded on them.
pub fn devices() -> Vec<Device> {
    static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();
    let open = |name: &&str| Device::from_name(name).expect("device_names has opened it");
    DEVICES.get_or_init(|| device_names().iter().map(open).collect()).clone()
}

/// Returns the names of [`devices`] for `--device`.
pub fn device_names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&str>> = OnceLock::new();
    NAMES.get_or_init(|| match Device::from_name("cuda") {
        Ok(device) => {
            println!("testing on the cpu and on {device}");
            vec!["cpu", "cuda"]
        }
        Err(reason @ (Error::DriverMissing { .. } | Error::NoDevice | Error::CudaDisabled)) => {
            assert!(std::env::var_os("KAURI_REQUIRE_CUDA").is_none(), "{reason}");
            // Not by `eprintln!`, which test programs capture: a test on a GPU that passes without one checks nothing.
            let reason = reason.to_string();
            let reason = reason.split(':').next().unwrap_or_default();
            let _ = writeln!(
                io::stderr(),
                "skipped: tests on a GPU check nothing ({reason}); KAURI_REQUIRE_CUDA=1 makes them fail"
            );
            vec!["cpu"]
        }
        Err(error) => panic!("the GPU of this machine cannot be used: {error}"),
    })
}

/// Returns simulated devices, one for each standard schedule.
///
/// The environment variable `KAURI_SIM_ORDERS` sets their number (default: 20); 0 turns the simulator off in all tests.
/// `KAURI_SIM_FIRST_ORDER` is the number of the first schedule (default: 0); after the last one the first follows.
/// If `SIM_SEED` or `SIM_ORDER` name a schedule to replay, there is one device, with this schedule.
///
/// With `KAURI_SIM_DEVICE=cuda` there is one device in their place, the first GPU: tests of the simulator are small cases of every kernel, as
/// compute-sanitizer needs them.
pub fn simulated() -> impl Iterator<Item = Device> {
    simulated_among(first_order()..first_order() + num_orders())
}

fn first_order() -> usize {
    number_from_env("KAURI_SIM_FIRST_ORDER").unwrap_or(0)
}

/// The name of the device that takes the place of simulated ones.
fn device_instead() -> Option<String> {
    std::env::var("KAURI_SIM_DEVICE").ok()
}

fn num_orders() -> usize {
    if device_instead().is_some() {
        return 1;
    }
    if Schedule::env_is_set() { 1 } else { number_from_env("KAURI_SIM_ORDERS").unwrap_or(Schedule::ORDERS) }
}

fn number_from_env(name: &str) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not `{text}`")))
}

fn simulated_among(orders: Range<usize>) -> impl Iterator<Item = Device> {
    orders.map(|i| {
        if let Some(name) = device_instead() {
            Device::from_name(&name).unwrap_or_else(|error| panic!("KAURI_SIM_DEVICE is {name}: {error}"))
        } else if Schedule::env_is_set() {
            Device::from_name("sim").expect("SIM_SEED and SIM_ORDER are valid")
        } else {
            Device::sim(SimOptions::nth_order(i, 1)).expect("the simulator is compiled in")
        }
    })
}

/// The largest test, in points or queries, that also runs on the simulator. A larger one would take minutes there.
const SIM_MOST: usize = 33;

/// Returns the devices for a test with this number of points or queries: the CPU, the first GPU if there is one, and the
/// simulator for small tests, with another schedule at each call, or at [every second](Share) call.
///
/// # Panics
/// If a GPU exists but cannot be used, or if there is none and the environment variable `KAURI_REQUIRE_CUDA` is set.
pub fn devices_for(items: usize) -> Vec<Device> {
    static SIMULATED: AtomicUsize = AtomicUsize::new(0);
    let mut devices = devices();
    if items <= SIM_MOST && num_orders() > 0 {
        let nth = SIMULATED.fetch_add(1, Relaxed);
        if Share::of_this_run().has(nth) {
            devices.extend(simulated_among(nth % Schedule::ORDERS..nth % Schedule::ORDERS + 1));
        }
    }
    devices
}

/// Returns a zeroed buffer.
pub fn zeros<T: DeviceCopy + NoUninit + Default>(stream: &Stream, len: usize) -> Buffer<T> {
    Buffer::from_slice(stream, &vec![T::default(); len], "zeros").unwrap()
}

/// Returns a buffer with these items.
pub fn upload<T: DeviceCopy + NoUninit>(stream: &Stream, items: &[T]) -> Buffer<T> {
    Buffer::from_slice(stream, items, "items").unwrap()
}

/// Returns a buffer with undefined contents.
pub fn uninitialized<T: DeviceCopy>(stream: &Stream, len: usize) -> Buffer<T> {
    Buffer::uninitialized(stream.gpu(), len, "test buffer").unwrap()
}

/// Returns reproducible pseudorandom numbers.
pub fn noise(len: usize, seed: u64) -> Vec<u64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..len).map(|_| next()).collect()
}

/// Returns the upper halves of [`noise`].
pub fn noise_u32(len: usize, seed: u64) -> Vec<u32> {
    noise(len, seed).into_iter().map(|bits| (bits >> 32) as u32).collect()
}

/// Returns the words of values, so that floats are compared to the bit.
pub fn bits<T: Words>(values: &[T]) -> Vec<[u32; 4]> {
    values.iter().map(|value| value.to_words()).collect()
}
