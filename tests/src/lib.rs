//! What the tests share: the devices to run on, oracles, and points to run with.

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

/// Most points or queries of a test that the simulator takes part in; above that it would take minutes.
const SIM_MOST: usize = 33;

/// The list of devices that the conformance suite runs on, for a test with that many points or queries: the CPU, the first
/// GPU if there is one, and if they are few the simulator, under another of its schedules each time. A GPU that is there
/// and cannot be used fails the test, and so does a missing one where the environment variable `KAURI_REQUIRE_CUDA` is set.
pub fn devices_for(items: usize) -> Vec<Device> {
    static SIMULATED: AtomicUsize = AtomicUsize::new(0);
    let mut devices = devices();
    if items <= SIM_MOST && num_orders() > 0 {
        let nth = SIMULATED.fetch_add(1, Relaxed) % Schedule::ORDERS;
        devices.extend(simulated_among(nth..nth + 1));
    }
    devices
}

/// The same list for a test that goes through all shapes of points, types and dimensions: of the shapes the simulator takes
/// one with many ties.
pub fn devices_for_shape(shape: Shape, items: usize) -> Vec<Device> {
    if shape == Shape::Lattice { devices_for(items) } else { devices() }
}

/// Those of them that are not simulated. Tests share them, and the kernels that each has loaded.
pub fn devices() -> Vec<Device> {
    static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();
    let open = |name: &&str| Device::from_name(name).expect("it could be used before");
    DEVICES.get_or_init(|| device_names().iter().map(open).collect()).clone()
}

/// Their names, as the command line takes them.
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

/// Simulated devices, one for each standard schedule. The environment variable `KAURI_SIM_ORDERS` sets how many (20; 0
/// leaves the simulator out everywhere), and where `SIM_SEED` or `SIM_ORDER` say which schedule to replay there is only
/// that one.
pub fn simulated() -> impl Iterator<Item = Device> {
    simulated_among(0..num_orders())
}

fn num_orders() -> usize {
    match std::env::var("KAURI_SIM_ORDERS") {
        _ if Schedule::env_is_set() => 1,
        Ok(text) => text.parse().expect("KAURI_SIM_ORDERS is a number"),
        Err(_) => Schedule::ORDERS,
    }
}

fn simulated_among(orders: Range<usize>) -> impl Iterator<Item = Device> {
    orders.map(|i| {
        if Schedule::env_is_set() {
            Device::from_name("sim").expect("SIM_SEED and SIM_ORDER are understood")
        } else {
            Device::sim(SimOptions::nth_order(i, 1)).expect("a simulated device is there")
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
