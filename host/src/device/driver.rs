//! The driver interface of a GPU backend.

use super::images::KernelId;
use crate::error::{Error, Result};
use cuda_std::kernel::Params;
use std::any::Any;
use std::fmt;
use std::mem::MaybeUninit;

/// The properties of a GPU: name, compute capability, memory.
///
/// ```
/// if let Some(gpu) = kauri::Device::best()?.gpu() {
///     let info = gpu.info();
///     println!("{}: {} multiprocessors, {} bytes", info.name, info.num_sms, info.memory_bytes);
/// }
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The name for [`Device::from_name`](super::Device::from_name), such as `cuda:0`.
    pub id: String,
    /// The vendor's name of the device.
    pub name: String,
    /// The compute capability, major and minor.
    pub capability: (u32, u32),
    /// The number of multiprocessors.
    pub num_sms: u32,
    /// The bytes of device memory.
    pub memory_bytes: u64,
    /// The most bytes of shared memory that a block can use.
    pub max_shared_bytes: usize,
    /// The CUDA version of the driver, major and minor.
    pub driver_version: (u32, u32),
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.capability;
        let gib = self.memory_bytes as f64 / f64::from(1 << 30);
        write!(
            f,
            "{} ({}, compute capability {major}.{minor}, {} SMs, {gib:.0} GiB)",
            self.id, self.name, self.num_sms
        )
    }
}

/// The driver's handle of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawStream(pub(crate) usize);

/// The driver's handle of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawEvent(pub(crate) usize);

/// The arguments of a launch.
pub(crate) struct Launch<'a> {
    pub(crate) name: &'a str,
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only CUDA loads modules"))]
    pub(crate) family: &'static str,
    pub(crate) blocks: u32,
    pub(crate) threads_per_block: u32,
    pub(crate) shared_bytes: usize,
    /// The most bytes of shared memory in launches of the kernel.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only CUDA sets limits"))]
    pub(crate) max_shared_bytes: usize,
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only CUDA takes scalars"))]
    pub(crate) params: &'a Params,
    /// Runs the kernel function as one simulated thread.
    #[cfg(feature = "sim")]
    pub(crate) run: &'a dyn Fn(),
}

/// A kind of memory that a GPU reaches.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Memory {
    Device,
    PinnedHost,
}

impl Memory {
    /// Returns the error of an allocation that fails with `free` bytes of this memory.
    pub(crate) fn exhausted(self, requested: u64, free: u64, label: &'static str) -> Error {
        let memory = match self {
            Self::Device => "device",
            Self::PinnedHost => "pinned host",
        };
        Error::OutOfMemory { memory, requested, free, label }
    }
}

/// The most bytes of a unit of a copy in pieces.
pub(crate) const MAX_UNIT: usize = 64 << 10;

/// Writes all bytes of a piece of a copy, given the offset of the piece.
pub(crate) type PieceWriter<'a> = dyn Fn(usize, &mut [MaybeUninit<u8>]) -> Result<()> + Sync + 'a;
/// Reads a piece of a copy, given its offset.
pub(crate) type PieceReader<'a> = dyn Fn(usize, &[u8]) -> Result<()> + Sync + 'a;

/// A copy or a fill of memory.
#[derive(Clone, Copy)]
pub(crate) enum Transfer<'a> {
    ToDevice {
        to: u64,
        from: *const u8,
    },
    /// `to` may be uninitialized.
    ToHost {
        to: *mut u8,
        from: u64,
    },
    /// A copy in pieces of whole units of bytes, which several threads write; done when the call returns. A unit has at most
    /// [`MAX_UNIT`] bytes.
    ToDeviceBy {
        to: u64,
        unit: usize,
        write: &'a PieceWriter<'a>,
    },
    /// A copy in pieces of whole units of bytes, which several threads read; done when the call returns. A unit has at most
    /// [`MAX_UNIT`] bytes.
    ToHostBy {
        from: u64,
        unit: usize,
        read: &'a PieceReader<'a>,
    },
    OnDevice {
        to: u64,
        from: u64,
    },
    /// From a peer for which [`Driver::can_reach`] has returned true.
    FromPeer {
        to: u64,
        peer: &'a dyn Driver,
        from: u64,
    },
    Fill {
        to: u64,
        byte: u8,
    },
}

/// A GPU backend. Addresses are device addresses; sizes are bytes, and never 0.
///
/// # Safety
/// `alloc` returns memory of the requested size, valid until it is freed.
pub(crate) unsafe trait Driver: Any + Send + Sync {
    fn info(&self) -> &DeviceInfo;
    /// Returns the free bytes of device memory.
    fn free_memory(&self) -> Result<u64>;
    /// Keeps freed device memory for later allocations: with the memory in use, at most `bytes`.
    fn keep_memory(&self, bytes: u64) -> Result<()>;

    fn alloc(&self, memory: Memory, bytes: usize, label: &'static str) -> Result<u64>;
    /// Frees memory. Silent if the context is lost. Device memory waits for all work that may use it.
    ///
    /// # Safety
    /// `address` comes from `alloc` of that memory. No running copy uses pinned memory.
    unsafe fn free(&self, memory: Memory, address: u64);

    fn create_stream(&self) -> Result<RawStream>;
    fn destroy_stream(&self, stream: RawStream);
    fn synchronize(&self, stream: RawStream) -> Result<()>;
    fn create_event(&self) -> Result<RawEvent>;
    fn destroy_event(&self, event: RawEvent);
    fn record(&self, event: RawEvent, stream: RawStream) -> Result<()>;
    fn wait(&self, stream: RawStream, event: RawEvent) -> Result<()>;
    fn synchronize_event(&self, event: RawEvent) -> Result<()>;
    fn elapsed_ms(&self, start: RawEvent, end: RawEvent) -> Result<f32>;

    /// Enables direct copies from the memory of `peer`, and returns whether they are possible.
    fn can_reach(&self, peer: &dyn Driver) -> Result<bool>;
    /// Enqueues a transfer of `bytes` bytes. Large copies of pageable memory are done when the call returns.
    ///
    /// # Safety
    /// Until the stream has done the transfer, the source is initialized and both sides are valid for `bytes`. All work
    /// that writes the memory of a peer has been waited for.
    unsafe fn transfer(&self, transfer: Transfer<'_>, bytes: usize, stream: RawStream) -> Result<()>;

    /// Returns true if kernels are loaded from the images of this build.
    fn loads_images(&self) -> bool;
    /// Returns true if a kernel is loaded, by itself or with its family.
    fn has_kernel(&self, kernel: KernelId<'_>) -> bool;
    /// Loads a kernel of this build.
    fn load_kernel(&self, kernel: KernelId<'_>) -> Result<()>;
    /// Loads the kernels of a PTX text as a family. They replace those that the family had, and kauri's.
    fn load_family(&self, family: &'static str, ptx: &str) -> Result<()>;
    /// # Safety
    /// The safety conditions of the kernel.
    unsafe fn launch(&self, launch: &Launch<'_>, stream: RawStream) -> Result<()>;
}

/// Returns a peer of the same backend, or [`Error::WrongDevice`].
pub(super) fn peer_of<'a, D: Driver>(driver: &D, peer: &'a dyn Driver) -> Result<&'a D> {
    let wrong = || Error::WrongDevice { buffer: peer.info().id.clone(), stream: driver.info().id.clone() };
    (peer as &dyn Any).downcast_ref().ok_or_else(wrong)
}
