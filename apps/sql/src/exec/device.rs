//! Devices by their names.

use crate::error::from_kauri;
use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use kauri::Device;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

/// The name of the device that is chosen without a wish.
const BEST: &str = "best";

/// The devices that `best` means in this process.
static BEST_DEVICES: OnceLock<String> = OnceLock::new();

/// The devices that have been opened (kernels are loaded once), and the joins that use each.
static DEVICES: LazyLock<Mutex<HashMap<String, (Device, usize)>>> = LazyLock::new(Mutex::default);

fn devices() -> MutexGuard<'static, HashMap<String, (Device, usize)>> {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the devices that `kauri.device = 'best'` means in this process: names with commas between them. Only the first call has an effect.
pub fn set_devices(names: &str) {
    let _ = BEST_DEVICES.set(names.into());
}

/// A device that a join uses.
#[derive(Debug)]
pub(super) struct Lease {
    name: String,
    device: Device,
}

impl Lease {
    /// Takes the device that fewest joins use among those whose names have commas between them.
    pub(super) fn new(names: &str) -> Result<Self> {
        let names = match BEST_DEVICES.get() {
            Some(best) if names == BEST => best,
            _ => names,
        };
        let mut devices = devices();
        let uses = |name: &&str| devices.get(*name).map_or(0, |(_, uses)| *uses);
        let name = names.split(',').map(str::trim).min_by_key(uses);
        let name = name.ok_or_else(|| internal_datafusion_err!("no device is named"))?;
        if !devices.contains_key(name) {
            let device = Device::from_name(name).map_err(from_kauri)?;
            devices.insert(name.into(), (device, 0));
        }
        let (device, uses) = devices.get_mut(name).expect("the device has been opened");
        *uses += 1;
        Ok(Self { name: name.into(), device: device.clone() })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some((_, uses)) = devices().get_mut(&self.name) {
            *uses -= 1;
        }
    }
}

impl Deref for Lease {
    type Target = Device;

    fn deref(&self) -> &Device {
        &self.device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_take_devices_in_turn() {
        // Two names, of one device where there is no GPU.
        let lease = || Lease::new("cpu, best").unwrap();
        let (first, second) = (lease(), lease());
        assert_eq!((&*first.name, &*second.name), ("cpu", "best"));
        drop(second);
        assert_eq!(lease().name, "best");
        assert!(Lease::new("no such device").is_err());
    }
}
