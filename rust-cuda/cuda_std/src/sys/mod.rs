//! The target-dependent part: only this module knows the target that it is compiled for.
//!
//! `nvptx` is instructions, `cpu` is calls to the current [`Simt`](crate::simt::Simt); both offer the same functions.

#[cfg(target_arch = "nvptx64")]
mod nvptx;
#[cfg(target_arch = "nvptx64")]
mod nvptx_atomic;
#[cfg(target_arch = "nvptx64")]
pub use {nvptx::*, nvptx_atomic::*};

#[cfg(not(target_arch = "nvptx64"))]
mod cpu;
#[cfg(not(target_arch = "nvptx64"))]
pub use cpu::*;

/// Global memory, as the address space of a view.
#[derive(Clone, Copy, Debug)]
pub struct Global;

/// Shared memory, as the address space of a view.
#[derive(Clone, Copy, Debug)]
pub struct Shared;

/// An address space: [`Global`] or [`Shared`].
pub trait SpaceOf: Copy {
    /// True for shared memory.
    const IS_SHARED: bool;
}
impl SpaceOf for Global {
    const IS_SHARED: bool = false;
}
impl SpaceOf for Shared {
    const IS_SHARED: bool = true;
}

/// How an access uses the caches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CacheHint {
    /// As usual.
    None,
    /// Evict first.
    Streaming,
    /// Through the read-only cache.
    ReadOnly,
}

/// Record that a kernel of a `checked` build writes to host memory before it stops at an invalid access. The host stores
/// the address of a record in the module's global `CUDA_STD_FAULT_RECORD`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaultRecord {
    /// 0 while nothing happened; the first fault sets it to 1 and then to 2 when the record is whole.
    pub state: u32,
    /// Line of the access.
    pub line: u32,
    /// x of the block index.
    pub block: u32,
    /// x of the thread index.
    pub thread: u32,
    /// Index used.
    pub index: u64,
    /// Length of the view.
    pub len: u64,
    /// Length of the file name.
    pub file_len: u32,
    /// The end of the file name, as far as it fits.
    pub file: [u8; 116],
}

/// How a checked access starts: the first fault in a launch claims the record.
pub const FAULT_CLAIMED: u32 = 1;
/// The record is whole.
pub const FAULT_WRITTEN: u32 = 2;

/// Operation of a warp-wide reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ReduceOp {
    AddU32,
    MinU32,
    MaxU32,
    MinI32,
    MaxI32,
    And,
    Or,
    Xor,
}
