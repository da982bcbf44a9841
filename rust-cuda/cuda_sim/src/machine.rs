//! A simulated device: memory and launches.

use crate::error::{Kind, SimError};
use crate::launch::Launch;
use crate::memory::{Memory, Snapshot};
use crate::options::Options;
use crate::state::{LaunchStats, Printed, Shape};
use std::sync::{Mutex, MutexGuard};

/// Properties of a simulated device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineInfo {
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Number of multiprocessors. Informational; the number of resident blocks is an option.
    pub num_sms: u32,
    /// Bytes of global memory.
    pub memory_bytes: u64,
    /// Largest shared memory of a block.
    pub max_shared_bytes: usize,
}

impl Default for MachineInfo {
    /// A mid-range device with 4 GiB.
    fn default() -> Self {
        Self { capability: (9, 0), num_sms: 8, memory_bytes: 4 << 30, max_shared_bytes: 227 << 10 }
    }
}

/// A simulated device. Calls from several OS threads are serialized.
///
/// If a launch fails and any check is on, the device's memory is restored to its state before the launch.
pub struct Machine {
    info: MachineInfo,
    inner: Mutex<Inner>,
}

struct Inner {
    memory: Memory,
    /// Memory before the last launch; its buffers are reused.
    before: Snapshot,
    options: Options,
    launches: u32,
    printed: Vec<Printed>,
}

/// A launch of a kernel.
#[derive(Clone, Copy)]
pub struct LaunchSpec<'a> {
    /// The kernel's name, for reports.
    pub kernel: &'a str,
    /// Blocks of the grid: x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block: x, y, z.
    pub block: [u32; 3],
    /// Bytes of launch-sized shared memory.
    pub shared_bytes: usize,
    /// Calls the kernel function for one thread. It must pass the same arguments each time and do nothing else, because
    /// the launch runs a second time to explain an error.
    pub run: &'a dyn Fn(),
}

impl<'a> LaunchSpec<'a> {
    /// Describes a one-dimensional launch.
    pub fn new(kernel: &'a str, blocks: u32, threads: u32, shared_bytes: usize, run: &'a dyn Fn()) -> Self {
        Self { kernel, grid: [blocks, 1, 1], block: [threads, 1, 1], shared_bytes, run }
    }
}

const _: () = {
    const fn usable_from_any_thread<T: Send + Sync>() {}
    usable_from_any_thread::<Machine>();
};

impl Machine {
    /// Creates a device with empty memory.
    pub fn new(info: MachineInfo, options: Options) -> Self {
        let memory = Memory::new(info.memory_bytes);
        let (before, printed) = (Snapshot::default(), Vec::new());
        Self { info, inner: Mutex::new(Inner { memory, before, options, launches: 0, printed }) }
    }

    /// Returns the device's properties.
    pub fn info(&self) -> &MachineInfo {
        &self.info
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns how launches are simulated.
    pub fn options(&self) -> Options {
        self.inner().options.clone()
    }

    /// Allocates memory, aligned to 256 bytes; the address is valid in this process. Reads before writes are errors.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`].
    pub fn alloc(&self, bytes: u64, label: &str) -> Result<u64, SimError> {
        self.inner().memory.alloc(bytes, label)
    }

    /// Allocates zeroed host memory that kernels can access; it takes no device memory. Alignment as
    /// [`alloc`](Self::alloc).
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`].
    pub fn alloc_host(&self, bytes: u64, label: &str) -> Result<u64, SimError> {
        self.inner().memory.alloc_host(bytes, label)
    }

    /// Frees memory of [`alloc`](Self::alloc) or [`alloc_host`](Self::alloc_host).
    ///
    /// # Errors
    /// [`Kind::HostAddress`] if the address is not of such memory, or was freed before.
    pub fn free(&self, address: u64) -> Result<(), SimError> {
        self.inner().memory.free(address)
    }

    /// Returns the bytes of all device allocations, each rounded up to its alignment.
    pub fn live_bytes(&self) -> u64 {
        self.inner().memory.live_bytes()
    }

    /// Returns the number of allocations.
    pub fn num_allocations(&self) -> usize {
        self.inner().memory.num_allocations()
    }

    /// Copies from the host.
    ///
    /// # Errors
    /// [`Kind::HostAddress`] if the range is not allocated.
    pub fn copy_to_device(&self, to: u64, from: &[u8]) -> Result<(), SimError> {
        self.inner().memory.write(to, from)
    }

    /// Copies to the host.
    ///
    /// # Errors
    /// [`Kind::HostAddress`] if the range is not allocated, [`Kind::HostRead`] if a byte of it was never written.
    pub fn copy_to_host(&self, to: &mut [u8], from: u64) -> Result<(), SimError> {
        let inner = &mut *self.inner();
        inner.memory.read(from, to, inner.options.checks.host_reads)
    }

    /// Copies within the device. Unwritten bytes stay unwritten in the copy.
    ///
    /// # Errors
    /// [`Kind::HostAddress`] if a range is not allocated.
    pub fn copy_on_device(&self, to: u64, from: u64, bytes: usize) -> Result<(), SimError> {
        self.inner().memory.copy(from, to, bytes)
    }

    /// Sets bytes.
    ///
    /// # Errors
    /// [`Kind::HostAddress`] if the range is not allocated.
    pub fn fill(&self, address: u64, value: u8, bytes: usize) -> Result<(), SimError> {
        self.inner().memory.fill(address, value, bytes)
    }

    /// Runs a kernel to its end.
    ///
    /// # Errors
    /// The first error that the checks find.
    pub fn launch(&self, spec: &LaunchSpec<'_>) -> Result<LaunchStats, SimError> {
        let inner = &mut *self.inner();
        let options = inner.options.clone();
        let replay = format!("SIM_SEED={} SIM_ORDER={}", options.seed, options.order_text());
        let fail = |kind| SimError::new(kind, spec.kernel, replay.clone());
        self.validate(spec).map_err(|what| fail(Kind::BadLaunch { what }))?;

        let mut launch = Launch {
            shape: Shape { grid: spec.grid, block: spec.block },
            shared_bytes: spec.shared_bytes,
            max_shared_bytes: self.info.max_shared_bytes,
            run: spec.run,
            options: &options,
            tag: inner.next_tag(),
            watch: None,
        };
        let restores = options.checks.any();
        if restores {
            inner.memory.snapshot(&mut inner.before);
        }
        let outcome = launch.simulate(&mut inner.memory);
        inner.printed = outcome.printed;
        let red_zone = inner.memory.broken_red_zone();
        let Some(mut kind) = outcome.error.or(red_zone) else { return Ok(outcome.stats) };
        if restores {
            inner.memory.restore(&inner.before);
        }
        if restores && outcome.rerun_to.is_some() {
            // Repeats the run up to the earlier access, to find its location.
            launch.watch = outcome.rerun_to;
            launch.tag = inner.next_tag();
            let watched = launch.simulate(&mut inner.memory).watched;
            inner.memory.restore(&inner.before);
            kind.set_earlier(watched);
        }
        Err(fail(kind))
    }

    /// Returns the texts that the kernel of the last launch printed, in their order.
    pub fn printed(&self) -> Vec<Printed> {
        self.inner().printed.clone()
    }

    fn validate(&self, spec: &LaunchSpec<'_>) -> Result<(), String> {
        let shape = Shape { grid: spec.grid, block: spec.block };
        let (blocks, threads) = (shape.blocks(), shape.threads());
        if blocks == 0 || threads == 0 {
            return Err(format!("{blocks} blocks of {threads} threads"));
        }
        if threads > 1024 {
            return Err(format!("{threads} threads a block, and 1024 is the limit"));
        }
        if blocks > 1 << 31 {
            return Err(format!("{blocks} blocks, and 2^31 is the limit"));
        }
        let (requested, limit) = (spec.shared_bytes, self.info.max_shared_bytes);
        if requested > limit {
            return Err(format!("{requested} bytes of shared memory, and a block can have {limit}"));
        }
        Ok(())
    }
}

impl Inner {
    fn next_tag(&mut self) -> u32 {
        self.launches += 1;
        self.launches
    }
}
