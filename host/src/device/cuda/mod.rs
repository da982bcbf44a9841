//! The CUDA backend, through the driver's functions in [`raw`].

mod codes;
mod context;
#[cfg(feature = "cust")]
pub mod cust_bridge;
mod fault;
mod kept;
mod modules;
mod raw;
mod staged;

use super::driver::{DeviceInfo, Driver, Launch, Memory, RawEvent, RawStream, Transfer, peer_of};
use super::images::KernelId;
use crate::error::{Error, Result};
use context::PrimaryContext;
use fault::FaultReport;
use kept::KeptMemory;
use modules::Modules;
use staged::IdleMemory;
use std::any::Any;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// A CUDA device, used through its primary context.
pub(super) struct CudaDriver {
    info: DeviceInfo,
    modules: Modules,
    fault: FaultReport,
    idle_memory: IdleMemory,
    kept_memory: KeptMemory,
    /// The result code that destroyed the context.
    poison: OnceLock<i32>,
    /// The last field, so that everything in the context is dropped first.
    context: PrimaryContext,
}

/// Initializes the driver, and returns the number of devices.
fn init() -> Result<usize> {
    if let cuda_lazy::Status::DriverMissing { searched, reason } = cuda_lazy::status() {
        return Err(Error::DriverMissing { searched, reason });
    }
    // SAFETY: the call takes no pointer.
    match unsafe { raw::cuInit(0) } {
        raw::NO_DEVICE => return Err(Error::NoDevice),
        code => raw::check("cuInit", code)?,
    }
    let mut count = 0;
    // SAFETY: writes one integer.
    raw::check("cuDeviceGetCount", unsafe { raw::cuDeviceGetCount(&mut count) })?;
    if count == 0 { Err(Error::NoDevice) } else { Ok(count as usize) }
}

/// Returns the devices of this machine.
pub(super) fn list() -> Result<Vec<DeviceInfo>> {
    (0..init()?).map(|ordinal| Ok(describe(ordinal)?.1)).collect()
}

/// Returns the driver's number of device `ordinal`, and its properties.
fn describe(ordinal: usize) -> Result<(i32, DeviceInfo)> {
    let (mut device, mut version, mut memory_bytes) = (0, 0, 0);
    let mut name = [0u8; 256];
    // SAFETY: each call writes one number, or a text that fits in `name`.
    unsafe {
        raw::check("cuDeviceGet", raw::cuDeviceGet(&mut device, ordinal as i32))?;
        raw::check("cuDriverGetVersion", raw::cuDriverGetVersion(&mut version))?;
        raw::check("cuDeviceTotalMem", raw::cuDeviceTotalMem_v2(&mut memory_bytes, device))?;
        let code = raw::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as i32, device);
        raw::check("cuDeviceGetName", code)?;
    }
    let attribute = |attribute| {
        let mut value = 0;
        // SAFETY: writes one integer.
        let code = unsafe { raw::cuDeviceGetAttribute(&mut value, attribute, device) };
        raw::check("cuDeviceGetAttribute", code).map(|()| value)
    };
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    let info = DeviceInfo {
        id: format!("cuda:{ordinal}"),
        name: name.to_string_lossy().into_owned(),
        capability: (
            attribute(raw::COMPUTE_CAPABILITY_MAJOR)? as u32,
            attribute(raw::COMPUTE_CAPABILITY_MINOR)? as u32,
        ),
        num_sms: attribute(raw::MULTIPROCESSOR_COUNT)? as u32,
        memory_bytes: memory_bytes as u64,
        max_shared_bytes: attribute(raw::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize,
        driver_version: ((version / 1000) as u32, (version % 1000 / 10) as u32),
    };
    Ok((device, info))
}

impl CudaDriver {
    /// Opens device `ordinal` of the driver's list.
    pub(super) fn open(ordinal: usize) -> Result<Self> {
        let available = init()?;
        if ordinal >= available {
            return Err(Error::NoSuchDevice { ordinal, available });
        }
        let (device, info) = describe(ordinal)?;
        Ok(Self {
            info,
            modules: Modules::default(),
            fault: FaultReport::default(),
            idle_memory: IdleMemory::default(),
            kept_memory: KeptMemory::default(),
            poison: OnceLock::new(),
            context: PrimaryContext::retain(device)?,
        })
    }

    /// Returns true if both are the same device, opened twice: they share its context.
    fn is_same(&self, other: &Self) -> bool {
        self.context.raw == other.context.raw
    }

    /// Calls a function of the driver in the context.
    fn call(&self, name: &'static str, function: impl FnOnce() -> i32) -> Result<()> {
        self.enter()?;
        self.check(name, function())
    }

    /// Makes the context current on this thread, unless it is lost. Every call begins with this, because the current
    /// context belongs to a thread, and any thread may call.
    fn enter(&self) -> Result<()> {
        if let Some(&code) = self.poison.get() {
            let name = codes::lookup(code).name;
            return Err(Error::ContextPoisoned { device: self.info.id.clone(), code, name });
        }
        // SAFETY: the context lives as long as `self`.
        raw::check("cuCtxSetCurrent", unsafe { raw::cuCtxSetCurrent(self.context.raw) })
    }

    /// Returns `Ok` for success. Records the loss of the context, and returns the access of a checked kernel that
    /// caused it.
    fn check(&self, call: &'static str, code: i32) -> Result<()> {
        if code == raw::SUCCESS {
            return Ok(());
        }
        if codes::is_sticky(code) {
            let _ = self.poison.set(code);
            if let Some(fault) = self.fault.read() {
                return Err(fault);
            }
        }
        Err(raw::error(call, code))
    }
}

fn pointer(handle: usize) -> *mut c_void {
    handle as *mut c_void
}

// SAFETY: the driver's allocations have the requested size and live until they are freed.
unsafe impl Driver for CudaDriver {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn free_memory(&self) -> Result<u64> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two integers.
        self.call("cuMemGetInfo", || unsafe { raw::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok(free as u64 + self.idle_pool_bytes()?)
    }

    fn keep_memory(&self, bytes: u64) -> Result<()> {
        self.enter()?;
        self.keep_in_pool(bytes)
    }

    fn alloc(&self, memory: Memory, bytes: usize, label: &'static str) -> Result<u64> {
        self.enter()?;
        let (mut address, mut pointer) = (0, null_mut());
        let (call, code) = match memory {
            Memory::Device => self.alloc_device(&mut address, bytes),
            // SAFETY: writes one address.
            Memory::PinnedHost => ("cuMemHostAlloc", unsafe {
                raw::cuMemHostAlloc(&mut pointer, bytes, raw::HOST_ALLOC_PORTABLE_MAPPED)
            }),
        };
        if code == raw::OUT_OF_MEMORY {
            return Err(memory.exhausted(bytes as u64, self.free_memory().unwrap_or(0), label));
        }
        self.check(call, code)?;
        tracing::trace!(label, bytes, "alloc");
        Ok(if memory == Memory::PinnedHost { pointer as u64 } else { address })
    }

    unsafe fn free(&self, memory: Memory, address: u64) {
        // An error of earlier work can show up here too; the next call reports it. If the device cannot be waited for, the memory is not
        // freed, because work may still use it.
        let _ = match memory {
            // SAFETY: passed on to the caller.
            Memory::Device => unsafe { self.free_device(address) },
            Memory::PinnedHost => {
                // SAFETY: passed on to the caller.
                self.call("cuMemFreeHost", || unsafe { raw::cuMemFreeHost(address as *mut c_void) })
            }
        };
    }

    fn create_stream(&self) -> Result<RawStream> {
        self.enter()?;
        let mut stream = null_mut();
        // SAFETY: writes one handle.
        let code = unsafe { raw::cuStreamCreate(&mut stream, raw::STREAM_DEFAULT) };
        self.check("cuStreamCreate", code)?;
        Ok(RawStream(stream as usize))
    }

    fn destroy_stream(&self, stream: RawStream) {
        // SAFETY: made by create_stream, destroyed once.
        let _ = self.call("cuStreamDestroy", || unsafe { raw::cuStreamDestroy_v2(pointer(stream.0)) });
    }

    fn synchronize(&self, stream: RawStream) -> Result<()> {
        // SAFETY: a live stream.
        self.call("cuStreamSynchronize", || unsafe { raw::cuStreamSynchronize(pointer(stream.0)) })
    }

    fn create_event(&self) -> Result<RawEvent> {
        self.enter()?;
        let mut event = null_mut();
        // SAFETY: writes one handle.
        self.check("cuEventCreate", unsafe { raw::cuEventCreate(&mut event, raw::EVENT_DEFAULT) })?;
        Ok(RawEvent(event as usize))
    }

    fn destroy_event(&self, event: RawEvent) {
        // SAFETY: made by create_event, destroyed once.
        let _ = self.call("cuEventDestroy", || unsafe { raw::cuEventDestroy_v2(pointer(event.0)) });
    }

    fn record(&self, event: RawEvent, stream: RawStream) -> Result<()> {
        // SAFETY: live handles.
        self.call("cuEventRecord", || unsafe { raw::cuEventRecord(pointer(event.0), pointer(stream.0)) })
    }

    fn wait(&self, stream: RawStream, event: RawEvent) -> Result<()> {
        // SAFETY: live handles.
        self.call("cuStreamWaitEvent", || unsafe {
            raw::cuStreamWaitEvent(pointer(stream.0), pointer(event.0), 0)
        })
    }

    fn synchronize_event(&self, event: RawEvent) -> Result<()> {
        // SAFETY: a live handle.
        self.call("cuEventSynchronize", || unsafe { raw::cuEventSynchronize(pointer(event.0)) })
    }

    fn elapsed_ms(&self, start: RawEvent, end: RawEvent) -> Result<f32> {
        let mut ms = 0.0;
        // SAFETY: live handles; writes one float.
        self.call("cuEventElapsedTime", || unsafe {
            raw::cuEventElapsedTime(&mut ms, pointer(start.0), pointer(end.0))
        })?;
        Ok(ms)
    }

    fn can_reach(&self, peer: &dyn Driver) -> Result<bool> {
        let Some(peer) = (peer as &dyn Any).downcast_ref::<Self>() else { return Ok(false) };
        self.enter()?;
        if self.is_same(peer) {
            return Ok(true);
        }
        let mut can = 0;
        // SAFETY: writes one integer; both devices exist.
        let code = unsafe { raw::cuDeviceCanAccessPeer(&mut can, self.context.device, peer.context.device) };
        self.check("cuDeviceCanAccessPeer", code)?;
        if can == 0 {
            return Ok(false);
        }
        // SAFETY: the peer's context lives as long as the peer does.
        match unsafe { raw::cuCtxEnablePeerAccess(peer.context.raw, 0) } {
            raw::PEER_ACCESS_UNSUPPORTED | raw::TOO_MANY_PEERS => return Ok(false),
            raw::PEER_ACCESS_ALREADY_ENABLED => {}
            code => self.check("cuCtxEnablePeerAccess", code)?,
        }
        Ok(peer.pool_is_open_to(self))
    }

    unsafe fn transfer(&self, transfer: Transfer<'_>, bytes: usize, stream: RawStream) -> Result<()> {
        self.enter()?;
        let raw_stream = pointer(stream.0);
        // SAFETY: passed on to the caller; the contexts of peers live as long as their devices.
        let (call, code) = unsafe {
            match transfer {
                Transfer::ToDevice { .. } | Transfer::ToHost { .. }
                    if self.copy_pageable(transfer, bytes, stream)? =>
                {
                    return Ok(());
                }
                Transfer::ToDeviceBy { to, unit, write } => {
                    return self.write_by(to, bytes, unit, write, stream);
                }
                Transfer::ToHostBy { from, unit, read } => {
                    return self.read_by(from, bytes, unit, read, stream);
                }
                Transfer::ToDevice { to, from } => {
                    ("cuMemcpyHtoDAsync", raw::cuMemcpyHtoDAsync_v2(to, from.cast(), bytes, raw_stream))
                }
                Transfer::ToHost { to, from } => {
                    ("cuMemcpyDtoHAsync", raw::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, raw_stream))
                }
                Transfer::OnDevice { to, from } => {
                    ("cuMemcpyDtoDAsync", raw::cuMemcpyDtoDAsync_v2(to, from, bytes, raw_stream))
                }
                Transfer::FromPeer { to, peer, from } => {
                    let peer = peer_of(self, peer)?;
                    if self.is_same(peer) {
                        return self.transfer(Transfer::OnDevice { to, from }, bytes, stream);
                    }
                    let (own, other) = (self.context.raw, peer.context.raw);
                    ("cuMemcpyPeerAsync", raw::cuMemcpyPeerAsync(to, own, from, other, bytes, raw_stream))
                }
                Transfer::Fill { to, byte } => {
                    ("cuMemsetD8Async", raw::cuMemsetD8Async(to, byte, bytes, raw_stream))
                }
            }
        };
        self.check(call, code)
    }

    fn loads_images(&self) -> bool {
        true
    }

    fn has_kernel(&self, kernel: KernelId<'_>) -> bool {
        self.modules.has(kernel)
    }

    fn load_kernel(&self, kernel: KernelId<'_>) -> Result<()> {
        self.enter()?;
        self.modules.load_kernel(self, kernel)
    }

    fn load_family(&self, family: &'static str, ptx: &str) -> Result<()> {
        self.enter()?;
        self.modules.load_family(self, family, ptx)
    }

    unsafe fn launch(&self, launch: &Launch<'_>, stream: RawStream) -> Result<()> {
        self.enter()?;
        let function = self.modules.function(self, launch)?;
        let mut params = launch.params.pointers();
        // SAFETY: the function is of a loaded module; the number and sizes of the parameters are those of its marker,
        // which the PTX lint compares with the entry; the rest is passed on to the caller.
        let code = unsafe {
            raw::cuLaunchKernel(
                function,
                launch.blocks,
                1,
                1,
                launch.threads_per_block,
                1,
                1,
                launch.shared_bytes as u32,
                pointer(stream.0),
                params.as_mut_ptr().cast(),
                null_mut(),
            )
        };
        self.check("cuLaunchKernel", code)
    }
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        if self.enter().is_ok() {
            self.modules.unload();
            self.fault.release();
            self.free_idle_memory();
            self.destroy_pool();
        }
    }
}
