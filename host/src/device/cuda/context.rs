//! The primary context of a device.

use super::raw;
use crate::error::Result;
use std::ffi::c_void;
use std::ptr::null_mut;

/// A reference to a device's primary context, the one that CUDA's runtime and other libraries use too. The driver
/// destroys the context when the last reference is released.
pub(super) struct PrimaryContext {
    /// The driver's number of the device.
    pub(super) device: i32,
    /// The driver's handle, valid while the context lives.
    pub(super) raw: *mut c_void,
}

// SAFETY: the driver's handles are not tied to a thread.
unsafe impl Send for PrimaryContext {}
// SAFETY: as for `Send`; nothing is changed through a shared reference.
unsafe impl Sync for PrimaryContext {}

impl PrimaryContext {
    pub(super) fn retain(device: i32) -> Result<Self> {
        let mut raw = null_mut();
        // SAFETY: writes one handle.
        let code = unsafe { raw::cuDevicePrimaryCtxRetain(&mut raw, device) };
        raw::check("cuDevicePrimaryCtxRetain", code)?;
        Ok(Self { device, raw })
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        // An error means that the context is lost already.
        // SAFETY: retained once, released once.
        unsafe { raw::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}
