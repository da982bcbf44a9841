//! Code shared by the tests: devices, reference results, and generated points.

pub mod frames;
pub mod generate;
pub mod load_any;
pub mod naive;
pub mod nasty;
pub mod oracle;
pub mod rays;
pub mod read_any;

use generate::Shape;
use kauri::device::{Schedule, SimOptions};
use kauri::{Device, Error};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The largest test, in points or queries, that also runs on the simulator. A larger one would take minutes there.
const SIM_MOST: usize = 33;

/// Returns the devices for a test with this number of points or queries: the CPU, the first GPU if there is one, and the
/// simulator for small tests, with another schedule at each call.
///
/// # Panics
/// If a GPU exists but cannot be used, or if there is none and the environment variable `KAURI_REQUIRE_CUDA` is set.
pub fn devices_for(items: usize) -> Vec<Device> {
    static SIMULATED: AtomicUsize = AtomicUsize::new(0);
    let mut devices = devices();
    if items <= SIM_MOST && num_orders() > 0 {
        let nth = SIMULATED.fetch_add(1, Relaxed) % Schedule::ORDERS;
        devices.extend(simulated_among(nth..nth + 1));
    }
    devices
}

/// Returns the devices for one shape of a test that loops over all shapes, types and dimensions. The simulator runs only
/// one shape, which has many ties.
pub fn devices_for_shape(shape: Shape, items: usize) -> Vec<Device> {
    if shape == Shape::Lattice { devices_for(items) } else { devices() }
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
            println!("skipped on cuda: {reason}");
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
pub fn simulated() -> impl Iterator<Item = Device> {
    let first = number_from_env("KAURI_SIM_FIRST_ORDER").unwrap_or(0);
    simulated_among(first..first + num_orders())
}

fn num_orders() -> usize {
    if Schedule::env_is_set() { 1 } else { number_from_env("KAURI_SIM_ORDERS").unwrap_or(Schedule::ORDERS) }
}

fn number_from_env(name: &str) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not `{text}`")))
}

fn simulated_among(orders: Range<usize>) -> impl Iterator<Item = Device> {
    orders.map(|i| {
        if Schedule::env_is_set() {
            Device::from_name("sim").expect("SIM_SEED and SIM_ORDER are valid")
        } else {
            Device::sim(SimOptions::nth_order(i, 1)).expect("the simulator is compiled in")
        }
    })
}

/// Runs `$body` once per number of dimensions, 1 to 8, as the constant `$D`.
#[macro_export]
macro_rules! for_each_dims {
    ($D:ident => $body:expr) => {
        $crate::for_each_dims!(@ $D, $body, 1 2 3 4 5 6 7 8)
    };
    (@ $D:ident, $body:expr, $($n:literal)*) => {
        $({ const $D: usize = $n; $body })*
    };
}
