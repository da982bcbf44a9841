//! Code shared by the tests: reference results, and generated points.

pub mod frames;
pub mod generate;
pub mod load_any;
pub mod naive;
pub mod nasty;
pub mod oracle;
pub mod rays;
pub mod read_any;
pub mod searches;

use generate::Shape;
use kauri::Device;
pub use kauri_test::{device_names, devices, devices_for, simulated};

/// Returns the devices for one shape of a test that loops over all shapes, types and dimensions. The simulator runs only
/// one shape, which has many ties.
pub fn devices_for_shape(shape: Shape, items: usize) -> Vec<Device> {
    if shape == Shape::Lattice { devices_for(items) } else { devices() }
}

/// Runs `$body` once per number of dimensions as the constant `$D`: 1, 2, 3, 4, 5 and 8. With `all`, 6 and 7 too: few tests need them, because
/// 5 to 8 have one kernel on a GPU, and each number is compiled and simulated anew.
#[macro_export]
macro_rules! for_each_dims {
    ($D:ident => $body:expr) => {
        $crate::for_each_dims!(@ $D, $body, 1 2 3 4 5 8)
    };
    (all $D:ident => $body:expr) => {
        $crate::for_each_dims!(@ $D, $body, 1 2 3 4 5 6 7 8)
    };
    (@ $D:ident, $body:expr, $($n:literal)*) => {
        $({ const $D: usize = $n; $body })*
    };
}
