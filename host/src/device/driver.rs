//! The driver interface of a GPU backend.

use crate::error::Result;
use cuda_std::kernel::Params;
use std::any::Any;
use std::borrow::Cow;
use std::fmt;

/// The properties of a GPU.
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

/// The source of a family's PTX, for drivers that need it.
pub(crate) type PtxSource<'a> = dyn Fn() -> Result<Cow<'a, str>> + 'a;

/// The driver's handle of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawStream(pub(crate) usize);

/// The driver's handle of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawEvent(pub(crate) usize);

/// The arguments of a launch.
pub(crate) struct Launch<'a> {
    pub(crate) name: &'a str,
    pub(crate) family: &'static str,
    pub(crate) blocks: u32,
    pub(crate) threads_per_block: u32,
    pub(crate) shared_bytes: usize,
    pub(crate) params: &'a Params,
    /// Runs the kernel function as one simulated thread.
    #[cfg_attr(
        not(feature = "sim"),
        expect(dead_code, reason = "only the simulator runs kernels as functions")
    )]
    pub(crate) run: &'a dyn Fn(),
}

/// A GPU backend. Addresses are device addresses; sizes are bytes, and never 0.
///
/// # Safety
/// `alloc` and `alloc_pinned` return memory of the requested size, valid until it is freed.
pub(crate) unsafe trait Driver: Any + Send + Sync {
    fn info(&self) -> &DeviceInfo;
    /// Returns the free bytes of device memory.
    fn free_memory(&self) -> Result<u64>;

    fn alloc(&self, bytes: usize, label: &'static str) -> Result<u64>;
    /// Frees memory after all work that may use it; silent if the context is lost.
    ///
    /// # Safety
    /// `address` comes from `alloc`.
    unsafe fn free(&self, address: u64);
    fn alloc_pinned(&self, bytes: usize, label: &'static str) -> Result<*mut u8>;
    /// # Safety
    /// `pointer` comes from `alloc_pinned`, and no running copy uses it.
    unsafe fn free_pinned(&self, pointer: *mut u8);

    fn create_stream(&self) -> Result<RawStream>;
    fn destroy_stream(&self, stream: RawStream);
    fn synchronize(&self, stream: RawStream) -> Result<()>;
    fn create_event(&self) -> Result<RawEvent>;
    fn destroy_event(&self, event: RawEvent);
    fn record(&self, event: RawEvent, stream: RawStream) -> Result<()>;
    fn wait(&self, stream: RawStream, event: RawEvent) -> Result<()>;
    fn synchronize_event(&self, event: RawEvent) -> Result<()>;
    fn elapsed_ms(&self, start: RawEvent, end: RawEvent) -> Result<f32>;

    /// # Safety
    /// Both sides are valid for `bytes`, which are initialized in `from`, until the stream has done the copy.
    unsafe fn copy_to_device(&self, to: u64, from: *const u8, bytes: usize, stream: RawStream) -> Result<()>;
    /// # Safety
    /// Both sides are valid for `bytes` until the stream has done the copy; `to` may be uninitialized.
    unsafe fn copy_to_host(&self, to: *mut u8, from: u64, bytes: usize, stream: RawStream) -> Result<()>;
    /// # Safety
    /// Like `copy_to_device`.
    unsafe fn copy_on_device(&self, to: u64, from: u64, bytes: usize, stream: RawStream) -> Result<()>;
    /// Enables direct copies from the memory of `peer`, and returns whether they are possible.
    fn can_reach(&self, peer: &dyn Driver) -> Result<bool>;
    /// Copies from the memory of a peer for which [`can_reach`](Self::can_reach) returned true.
    ///
    /// # Safety
    /// Like `copy_to_device`; all work that writes the source has been waited for.
    unsafe fn copy_from_peer(
        &self,
        to: u64,
        peer: &dyn Driver,
        from: u64,
        bytes: usize,
        stream: RawStream,
    ) -> Result<()>;
    /// # Safety
    /// Like `copy_to_device`.
    unsafe fn fill(&self, to: u64, byte: u8, bytes: usize, stream: RawStream) -> Result<()>;

    /// Returns true if the kernels of a family are loaded.
    fn has_module(&self, family: &str) -> bool;
    /// Loads the kernels of a PTX text as a family, and replaces those that the family had.
    fn load_module(&self, family: &'static str, ptx: &PtxSource<'_>) -> Result<()>;
    /// # Safety
    /// The safety conditions of the kernel.
    unsafe fn launch(&self, launch: &Launch<'_>, stream: RawStream) -> Result<()>;
}
