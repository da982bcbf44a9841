//! The driver's functions, constants and result codes.

use super::codes;
use crate::error::{Error, Result};

pub(super) use cuda_lazy::driver::*;

pub(super) const SUCCESS: i32 = 0;
pub(super) const OUT_OF_MEMORY: i32 = 2;
pub(super) const NO_DEVICE: i32 = 100;
pub(super) const NOT_FOUND: i32 = 500;
pub(super) const NOT_SUPPORTED: i32 = 801;
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

/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`.
pub(super) const MULTIPROCESSOR_COUNT: i32 = 16;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
pub(super) const COMPUTE_CAPABILITY_MAJOR: i32 = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
pub(super) const COMPUTE_CAPABILITY_MINOR: i32 = 76;
/// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`.
pub(super) const MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: i32 = 97;

/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`.
pub(super) const POINTER_MEMORY_TYPE: i32 = 2;
/// `CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE`.
pub(super) const POINTER_POOL: i32 = 17;
/// `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
#[cfg(feature = "cust")]
pub(super) const POINTER_DEVICE_ORDINAL: i32 = 9;

/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`.
pub(super) const POOL_RELEASE_THRESHOLD: i32 = 4;
/// `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`.
pub(super) const POOL_RESERVED: i32 = 5;
/// `CU_MEMPOOL_ATTR_USED_MEM_CURRENT`.
pub(super) const POOL_USED: i32 = 7;

/// `CU_STREAM_DEFAULT`: the stream waits for the default stream and the default stream for it, so that the synchronous
/// copies of other libraries are ordered with kauri's work.
pub(super) const STREAM_DEFAULT: u32 = 0;
/// `CU_STREAM_NON_BLOCKING`.
pub(super) const STREAM_NON_BLOCKING: u32 = 1;
/// `CU_EVENT_DEFAULT`.
pub(super) const EVENT_DEFAULT: u32 = 0;

/// Returns the error of a result code that is not success.
pub(super) fn error(call: &'static str, code: i32) -> Error {
    let known = codes::lookup(code);
    Error::Driver { call, code, name: known.name, meaning: known.meaning, advice: known.advice }
}

/// Returns `Ok` for success, else the error of the code.
pub(super) fn check(call: &'static str, code: i32) -> Result<()> {
    if code == SUCCESS { Ok(()) } else { Err(error(call, code)) }
}
