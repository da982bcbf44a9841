//! The host's half: functions that launch the kernels.

pub mod example_op;

use kauri::Result;
use kauri::device::Gpu;

/// The kernels as PTX, compiled by the build script.
const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

/// Loads the kernels; call it once for a GPU, before the first launch. A simulated GPU needs no PTX and ignores it.
///
/// # Errors
/// [`BadModule`](kauri::Error::BadModule) if the driver cannot compile the PTX.
pub fn load(gpu: &Gpu) -> Result<()> {
    // SAFETY: no kernel of kauri is in this PTX.
    unsafe { gpu.load_module("", PTX) }
}
