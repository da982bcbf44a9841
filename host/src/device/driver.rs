//! What a GPU backend offers to the rest of this folder: the narrow waist between kauri and a driver.

use crate::error::Result;
use cuda_std::kernel::Params;
use std::any::Any;
use std::borrow::Cow;
use std::fmt;

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The name to ask for it: `cuda:0`.
    pub id: String,
    /// The vendor's name.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Number of multiprocessors.
    pub num_sms: u32,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Most bytes of shared memory that a block can ask for.
    pub max_shared_bytes: usize,
    /// Version of the driver's CUDA, major and minor.
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

/// Where the PTX text of a family comes from, for drivers that need one.
pub(crate) type PtxSource<'a> = dyn Fn() -> Result<Cow<'a, str>> + 'a;

/// A driver's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawStream(pub(crate) usize);

/// A driver's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawEvent(pub(crate) usize);

/// One launch.
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
/// `alloc` and `alloc_pinned` must return memory of the size asked for, valid until it is freed.
pub(crate) unsafe trait Driver: Any + Send + Sync {
    fn info(&self) -> &DeviceInfo;
    /// Free bytes of device memory.
    fn free_memory(&self) -> Result<u64>;

    fn alloc(&self, bytes: usize, label: &'static str) -> Result<u64>;
    /// Frees after all work on the device that may use the memory; silent when the context is lost.
    ///
    /// # Safety
    /// `address` must come from `alloc`.
    unsafe fn free(&self, address: u64);
    fn alloc_pinned(&self, bytes: usize, label: &'static str) -> Result<*mut u8>;
    /// # Safety
    /// `pointer` must come from `alloc_pinned`, and no copy may use it any more.
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
    /// Both sides must be valid for `bytes`, which `from` has initialized, until the stream has done the copy.
    unsafe fn copy_to_device(&self, to: u64, from: *const u8, bytes: usize, stream: RawStream) -> Result<()>;
    /// # Safety
    /// Both sides must be valid for `bytes` until the stream has done the copy; `to` may be uninitialized.
    unsafe fn copy_to_host(&self, to: *mut u8, from: u64, bytes: usize, stream: RawStream) -> Result<()>;
    /// # Safety
    /// As `copy_to_device`.
    unsafe fn copy_on_device(&self, to: u64, from: u64, bytes: usize, stream: RawStream) -> Result<()>;
    /// True if memory of another device can be copied to this one without a stop in host memory, which it is made ready for.
    fn can_reach(&self, peer: &dyn Driver) -> Result<bool>;
    /// Copies from the memory of a device that this one can reach.
    ///
    /// # Safety
    /// As `copy_to_device`; what was to be written there has been waited for.
    unsafe fn copy_from_peer(
        &self,
        to: u64,
        peer: &dyn Driver,
        from: u64,
        bytes: usize,
        stream: RawStream,
    ) -> Result<()>;
    /// # Safety
    /// As `copy_to_device`.
    unsafe fn fill(&self, to: u64, byte: u8, bytes: usize, stream: RawStream) -> Result<()>;

    /// True if kernels of that family can be launched.
    fn has_module(&self, family: &str) -> bool;
    /// Makes the kernels of a PTX text launchable under the name of a family, in place of those it had.
    fn load_module(&self, family: &'static str, ptx: &PtxSource<'_>) -> Result<()>;
    /// # Safety
    /// The kernel's own conditions.
    unsafe fn launch(&self, launch: &Launch<'_>, stream: RawStream) -> Result<()>;
}
