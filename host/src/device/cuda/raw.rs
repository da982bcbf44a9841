//! Driver functions that kauri calls directly. They are declared here because `cust::sys` returns a Rust enum of CUDA
//! 11.4, in which a newer result code is undefined behavior. These functions return the number.

use super::codes;
use crate::error::{Error, Result};
use std::ffi::{c_char, c_void};

pub(super) const SUCCESS: i32 = 0;
pub(super) const OUT_OF_MEMORY: i32 = 2;
pub(super) const NO_DEVICE: i32 = 100;
pub(super) const NOT_FOUND: i32 = 500;
pub(super) const PEER_ACCESS_UNSUPPORTED: i32 = 217;
pub(super) const PEER_ACCESS_ALREADY_ENABLED: i32 = 704;
pub(super) const TOO_MANY_PEERS: i32 = 711;

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
pub(super) const MAX_DYNAMIC_SHARED_SIZE: i32 = 8;
/// `CU_JIT_ERROR_LOG_BUFFER`.
pub(super) const JIT_ERROR_LOG_BUFFER: i32 = 5;
/// `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`.
pub(super) const JIT_ERROR_LOG_BUFFER_BYTES: i32 = 6;
/// `CU_JIT_GENERATE_LINE_INFO`.
pub(super) const JIT_GENERATE_LINE_INFO: i32 = 13;
/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`.
pub(super) const HOST_ALLOC_PORTABLE_MAPPED: u32 = 1 | 2;

/// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`, which `cust` does not have.
pub(super) const MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: i32 = 97;

unsafe extern "C" {
    pub(super) fn cuDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32) -> i32;
    pub(super) fn cuInit(flags: u32) -> i32;
    pub(super) fn cuDriverGetVersion(version: *mut i32) -> i32;
    pub(super) fn cuCtxSetCurrent(context: *mut c_void) -> i32;
    pub(super) fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> i32;
    pub(super) fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> i32;
    pub(super) fn cuMemFree_v2(address: u64) -> i32;
    pub(super) fn cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: u32) -> i32;
    pub(super) fn cuMemFreeHost(pointer: *mut c_void) -> i32;
    pub(super) fn cuMemHostGetDevicePointer_v2(address: *mut u64, pointer: *mut c_void, flags: u32) -> i32;
    pub(super) fn cuMemcpyHtoDAsync_v2(
        to: u64,
        from: *const c_void,
        bytes: usize,
        stream: *mut c_void,
    ) -> i32;
    pub(super) fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: *mut c_void) -> i32;
    pub(super) fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: *mut c_void) -> i32;
    pub(super) fn cuDeviceCanAccessPeer(can: *mut i32, device: i32, peer: i32) -> i32;
    pub(super) fn cuCtxEnablePeerAccess(peer: *mut c_void, flags: u32) -> i32;
    pub(super) fn cuMemcpyPeerAsync(
        to: u64,
        to_context: *mut c_void,
        from: u64,
        from_context: *mut c_void,
        bytes: usize,
        stream: *mut c_void,
    ) -> i32;
    pub(super) fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) -> i32;
    pub(super) fn cuMemsetD8Async(to: u64, byte: u8, bytes: usize, stream: *mut c_void) -> i32;
    pub(super) fn cuStreamSynchronize(stream: *mut c_void) -> i32;
    pub(super) fn cuStreamWaitEvent(stream: *mut c_void, event: *mut c_void, flags: u32) -> i32;
    pub(super) fn cuStreamDestroy_v2(stream: *mut c_void) -> i32;
    pub(super) fn cuEventRecord(event: *mut c_void, stream: *mut c_void) -> i32;
    pub(super) fn cuEventSynchronize(event: *mut c_void) -> i32;
    pub(super) fn cuEventElapsedTime(ms: *mut f32, start: *mut c_void, end: *mut c_void) -> i32;
    pub(super) fn cuEventDestroy_v2(event: *mut c_void) -> i32;
    pub(super) fn cuModuleLoadDataEx(
        module: *mut *mut c_void,
        image: *const c_void,
        num_options: u32,
        options: *mut i32,
        values: *mut *mut c_void,
    ) -> i32;
    pub(super) fn cuModuleUnload(module: *mut c_void) -> i32;
    pub(super) fn cuModuleGetFunction(
        function: *mut *mut c_void,
        module: *mut c_void,
        name: *const c_char,
    ) -> i32;
    pub(super) fn cuModuleGetGlobal_v2(
        address: *mut u64,
        bytes: *mut usize,
        module: *mut c_void,
        name: *const c_char,
    ) -> i32;
    pub(super) fn cuFuncSetAttribute(function: *mut c_void, attribute: i32, value: i32) -> i32;
    pub(super) fn cuLaunchKernel(
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
    ) -> i32;
}

/// Returns the error of a result code that is not success.
pub(super) fn error(call: &'static str, code: i32) -> Error {
    let known = codes::lookup(code);
    Error::Driver { call, code, name: known.name, meaning: known.meaning, advice: known.advice }
}

/// Returns `Ok` for success, else the error of the code.
pub(super) fn check(call: &'static str, code: i32) -> Result<()> {
    if code == SUCCESS { Ok(()) } else { Err(error(call, code)) }
}
