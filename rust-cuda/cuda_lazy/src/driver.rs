//! The driver's functions that kauri and its tasks call, under their names in the manual of the CUDA driver API.
//!
//! Handles are `*mut c_void`, devices are `i32`, device addresses are `u64`. Each function returns the driver's result
//! code; [the crate's page](crate) says what it returns without a driver.

#![allow(non_snake_case, reason = "the driver's names")]

use std::ffi::{c_char, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The address of a function of the driver, found at the first call.
struct Slot {
    name: &'static str,
    /// Null until the function is found.
    address: AtomicPtr<c_void>,
}

impl Slot {
    const fn new(name: &'static str) -> Self {
        Self { name, address: AtomicPtr::new(null_mut()) }
    }

    fn address(&self) -> Result<NonNull<c_void>, i32> {
        if let Some(address) = NonNull::new(self.address.load(Ordering::Acquire)) {
            return Ok(address);
        }
        let address = crate::address(self.name)?;
        // Release: a thread that calls the address must also see the mapped and relocated library.
        self.address.store(address.as_ptr(), Ordering::Release);
        Ok(address)
    }
}

/// Defines each function, and the list of their names.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        $(
            #[doc = concat!("Calls `", stringify!($name), "` of the driver.")]
            ///
            /// # Safety
            /// The conditions of the function in the manual of the CUDA driver API.
            #[allow(clippy::too_many_arguments, reason = "the driver's arguments")]
            pub unsafe fn $name($($argument: $type),*) -> i32 {
                static SLOT: Slot = Slot::new(stringify!($name));
                match SLOT.address() {
                    // SAFETY: the driver's function of this name has this signature, and its address remains valid;
                    // the rest is passed on to the caller.
                    Ok(address) => unsafe {
                        let function: unsafe extern "system" fn($($type),*) -> i32 =
                            std::mem::transmute(address.as_ptr());
                        function($($argument),*)
                    },
                    Err(code) => code,
                }
            }
        )*

        /// The names of the functions of this module.
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

/// `CU_MEM_ALLOCATION_TYPE_PINNED`.
const PINNED: i32 = 1;
/// `CU_MEM_LOCATION_TYPE_DEVICE`.
const ON_DEVICE: i32 = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const READ_AND_WRITE: i32 = 3;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Location {
    kind: i32,
    device: i32,
}

/// `CUmemPoolProps`: the properties of a memory pool.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PoolProperties {
    allocation: i32,
    handles: i32,
    location: Location,
    security_attributes: *mut c_void,
    max_bytes: usize,
    usage: u16,
    reserved: [u8; 54],
}

impl PoolProperties {
    /// The properties of a pool of a device's memory, without a limit and without handles for other processes.
    pub fn of_device(device: i32) -> Self {
        Self {
            allocation: PINNED,
            handles: 0,
            location: Location { kind: ON_DEVICE, device },
            security_attributes: null_mut(),
            max_bytes: 0,
            usage: 0,
            reserved: [0; 54],
        }
    }
}

/// `CUmemAccessDesc`: how a device uses a memory pool.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PoolAccess {
    location: Location,
    flags: i32,
}

impl PoolAccess {
    /// The permission of a device to read and write.
    pub fn of_device(device: i32) -> Self {
        Self { location: Location { kind: ON_DEVICE, device }, flags: READ_AND_WRITE }
    }
}

functions! {
    fn cuInit(flags: u32);
    fn cuDriverGetVersion(version: *mut i32);

    fn cuDeviceGetCount(count: *mut i32);
    fn cuDeviceGet(device: *mut i32, ordinal: i32);
    fn cuDeviceGetName(name: *mut c_char, bytes: i32, device: i32);
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: i32);
    fn cuDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32);
    fn cuDeviceCanAccessPeer(can: *mut i32, device: i32, peer: i32);

    fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: i32);
    fn cuDevicePrimaryCtxRelease_v2(device: i32);
    fn cuCtxSetCurrent(context: *mut c_void);
    fn cuCtxPushCurrent_v2(context: *mut c_void);
    fn cuCtxPopCurrent_v2(context: *mut *mut c_void);
    fn cuCtxGetDevice(device: *mut i32);
    fn cuCtxEnablePeerAccess(peer: *mut c_void, flags: u32);
    fn cuCtxSynchronize();

    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize);
    fn cuMemFree_v2(address: u64);
    fn cuMemPoolCreate(pool: *mut *mut c_void, properties: *const PoolProperties);
    fn cuMemPoolDestroy(pool: *mut c_void);
    fn cuMemPoolGetAttribute(pool: *mut c_void, attribute: i32, value: *mut c_void);
    fn cuMemPoolSetAttribute(pool: *mut c_void, attribute: i32, value: *mut c_void);
    fn cuMemPoolSetAccess(pool: *mut c_void, access: *const PoolAccess, count: usize);
    fn cuMemPoolTrimTo(pool: *mut c_void, bytes: usize);
    fn cuMemAllocFromPoolAsync(address: *mut u64, bytes: usize, pool: *mut c_void, stream: *mut c_void);
    fn cuMemFreeAsync(address: u64, stream: *mut c_void);
    fn cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: u32);
    fn cuMemFreeHost(pointer: *mut c_void);
    fn cuMemHostGetDevicePointer_v2(address: *mut u64, pointer: *mut c_void, flags: u32);
    fn cuPointerGetAttribute(value: *mut c_void, attribute: i32, pointer: u64);
    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize);
    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: *mut c_void);
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: *mut c_void);
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: *mut c_void);
    fn cuMemcpyPeerAsync(
        to: u64,
        to_context: *mut c_void,
        from: u64,
        from_context: *mut c_void,
        bytes: usize,
        stream: *mut c_void,
    );
    fn cuMemsetD8Async(to: u64, byte: u8, bytes: usize, stream: *mut c_void);

    fn cuStreamCreate(stream: *mut *mut c_void, flags: u32);
    fn cuStreamDestroy_v2(stream: *mut c_void);
    fn cuStreamGetCtx(stream: *mut c_void, context: *mut *mut c_void);
    fn cuStreamSynchronize(stream: *mut c_void);
    fn cuStreamWaitEvent(stream: *mut c_void, event: *mut c_void, flags: u32);

    fn cuEventCreate(event: *mut *mut c_void, flags: u32);
    fn cuEventDestroy_v2(event: *mut c_void);
    fn cuEventRecord(event: *mut c_void, stream: *mut c_void);
    fn cuEventSynchronize(event: *mut c_void);
    fn cuEventElapsedTime(ms: *mut f32, start: *mut c_void, end: *mut c_void);

    fn cuModuleLoadDataEx(
        module: *mut *mut c_void,
        image: *const c_void,
        num_options: u32,
        options: *mut i32,
        values: *mut *mut c_void,
    );
    fn cuModuleUnload(module: *mut c_void);
    fn cuModuleGetFunction(function: *mut *mut c_void, module: *mut c_void, name: *const c_char);
    fn cuModuleGetGlobal_v2(
        address: *mut u64,
        bytes: *mut usize,
        module: *mut c_void,
        name: *const c_char,
    );
    fn cuFuncGetAttribute(value: *mut i32, attribute: i32, function: *mut c_void);
    fn cuFuncSetAttribute(function: *mut c_void, attribute: i32, value: i32);
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut i32,
        function: *mut c_void,
        threads_per_block: i32,
        shared_bytes: usize,
    );
    fn cuLaunchKernel(
        function: *mut c_void,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared_bytes: u32,
        stream: *mut c_void,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    );

    fn cuProfilerStart();
    fn cuProfilerStop();
}
