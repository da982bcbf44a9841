//! Devices by their names.

use crate::error::from_kauri;
use datafusion::error::Result;
use kauri::Device;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The devices that have been opened: kernels are loaded once.
static DEVICES: LazyLock<Mutex<HashMap<String, Device>>> = LazyLock::new(Mutex::default);

/// Returns the device of a name, and opens it at the first call.
pub(super) fn device(name: &str) -> Result<Device> {
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = devices.get(name) {
        return Ok(device.clone());
    }
    let device = Device::from_name(name).map_err(from_kauri)?;
    devices.insert(name.into(), device.clone());
    Ok(device)
}
