//! A handle of a GPU.

use super::driver::{DeviceInfo, Driver};
use super::images::{self, KernelId};
use super::instrumented::{FaultPlan, InstrumentedDriver, MemoryUse, Restrictions, limit_from_env};
use super::{Family, KernelForm};
use crate::error::{Error, Result};
use crate::threads::lock;
use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};

/// A handle of a GPU, real or simulated: the device of streams, buffers and your own kernels. Clones refer to the same
/// device and share its memory accounting.
///
/// ```
/// use kauri::device::{Buffer, Stream};
///
/// if let Some(gpu) = kauri::Device::best()?.gpu() {
///     // At most a gigabyte for the buffers of this handle.
///     let gpu = gpu.with_memory_limit(1 << 30);
///     let buffer = Buffer::from_slice(&Stream::new(&gpu)?, &[1u32, 2, 3], "numbers")?;
///     assert_eq!(gpu.memory_use().live_bytes, 12);
/// }
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone)]
pub struct Gpu {
    pub(super) driver: Arc<InstrumentedDriver>,
    /// Kernels that are loaded or being loaded; the lock of a kernel is held while it is.
    loads: Arc<Mutex<HashMap<String, Arc<Mutex<()>>>>>,
}

impl Gpu {
    pub(super) fn new(driver: Arc<dyn Driver>) -> Result<Self> {
        let restrictions =
            Restrictions { memory_limit: limit_from_env()?, fault_plan: None, peer_copies: true };
        Ok(Self { driver: Arc::new(InstrumentedDriver::new(driver, restrictions)), loads: Arc::default() })
    }

    /// Returns another handle of this device, with its own memory accounting, that allocates at most `bytes`. The
    /// environment variable `KAURI_MEMORY_LIMIT` sets a limit for every device.
    pub fn with_memory_limit(&self, bytes: u64) -> Self {
        self.with_restrictions(Restrictions {
            memory_limit: bytes,
            fault_plan: None,
            ..self.driver.restrictions
        })
    }

    /// Returns another handle of this device, with its own memory accounting, on which calls fail by plan: for tests of
    /// an application's error handling.
    pub fn with_faults(&self, plan: FaultPlan) -> Self {
        self.with_restrictions(Restrictions { fault_plan: Some(plan), ..self.driver.restrictions })
    }

    /// Returns another handle of this device, with its own memory accounting, that copies from other devices through
    /// host memory even if a direct copy is possible: for tests, and to measure the benefit of direct copies.
    pub fn without_peer_copies(&self) -> Self {
        self.with_restrictions(Restrictions { peer_copies: false, ..self.driver.restrictions })
    }

    fn with_restrictions(&self, restrictions: Restrictions) -> Self {
        let driver = InstrumentedDriver::new(self.driver.inner.clone(), restrictions);
        Self { driver: Arc::new(driver), loads: self.loads.clone() }
    }

    /// Returns the properties of the device.
    pub fn info(&self) -> &DeviceInfo {
        self.driver.info()
    }

    /// Returns the bytes of device memory that are free at this moment.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn free_memory(&self) -> Result<u64> {
        self.driver.free_memory()
    }

    /// Keeps freed device memory for later allocations, which then take microseconds, not a tenth of a millisecond and more. 0 ends this, and
    /// frees the kept memory.
    ///
    /// - `bytes` is the most that the device keeps, together with the memory in use. It does not limit allocations. Memory beyond it goes back
    ///   to the driver when the device is next waited for.
    /// - This holds for all handles that share the memory of this one: clones, and handles with a limit. A device that is opened a second
    ///   time does not use the kept memory, nor do other libraries and processes. [`free_memory`](Self::free_memory) counts it as free.
    /// - Freeing kept memory waits for all work in the context of the device. CUDA forbids that while work of any stream of the context is
    ///   captured for a graph.
    /// - All devices that can access this one directly get access to the kept memory.
    /// - A simulated device, and one without memory pools, keeps nothing.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn keep_memory(&self, bytes: u64) -> Result<()> {
        self.driver.keep_memory(bytes)
    }

    /// Returns the memory allocated through this handle and its clones.
    pub fn memory_use(&self) -> MemoryUse {
        self.driver.memory_use()
    }

    /// Loads the kernels of your own PTX text. `family` is the name in their `#[kernel(family = …)]`, or "" if they have none.
    /// A simulated GPU ignores the PTX. kauri loads each of its own kernels at its first
    /// launch; a family of kauri that is loaded here replaces them.
    ///
    /// # Errors
    /// [`BadModule`](crate::Error::BadModule) with the compiler's log.
    ///
    /// # Safety
    /// If `family` is one of kauri's, its kernels must behave like kauri's: safe calls launch them.
    pub unsafe fn load_module(&self, family: &'static str, ptx: &str) -> Result<()> {
        self.driver.load_family(family, ptx)
    }

    /// Loads a kernel of this build if it is not loaded yet. Threads that need the same kernel wait while one of them loads it, because a
    /// driver takes up to seconds to compile PTX; other kernels and devices do not wait.
    pub(super) fn require_kernel(&self, kernel: KernelId<'_>) -> Result<()> {
        if self.driver.has_kernel(kernel) {
            return Ok(());
        }
        let load = lock(&self.loads).entry(kernel.name.into()).or_default().clone();
        let _guard = lock(&load);
        if self.driver.has_kernel(kernel) {
            return Ok(());
        }
        self.driver.load_kernel(kernel)
    }

    pub(super) fn prepare(&self, families: &[Family]) -> Result<()> {
        self.kernels(families)?.into_iter().try_for_each(|kernel| self.require_kernel(kernel))
    }

    pub(super) fn kernel_form(&self, family: Family) -> Result<Option<KernelForm>> {
        let kernels = self.kernels(&[family])?;
        let mut form = (!kernels.is_empty()).then_some(KernelForm::MachineCode);
        for kernel in kernels {
            if images::find(kernel, self.info().capability)?.machine_code.is_none() {
                form = Some(KernelForm::Ptx);
            }
        }
        Ok(form)
    }

    /// Returns the kernels of families; none on a simulated device.
    fn kernels(&self, families: &[Family]) -> Result<Vec<KernelId<'static>>> {
        if !self.driver.loads_images() {
            return Ok(Vec::new());
        }
        let names: BTreeSet<_> = families.iter().flat_map(|family| family.kernel_families()).collect();
        let of_family = |name| images::of_family(name, self.info().capability);
        let kernels: Result<Vec<_>> = names.into_iter().map(of_family).collect();
        Ok(kernels?.concat())
    }

    /// Returns the driver itself, without instrumentation, as a peer of another one.
    pub(super) fn peer(&self) -> &dyn Driver {
        &*self.driver.inner
    }

    /// Returns [`Error::WrongDevice`] unless this device, of some memory or event, is also the device of a stream.
    pub(crate) fn check_same(&self, other: &Self) -> Result<()> {
        self.check(other, self.same(other))
    }

    /// Returns [`Error::WrongDevice`] unless both devices have the same backend, so that streams of `other` can wait
    /// for events of `self`.
    pub(super) fn check_same_backend(&self, other: &Self) -> Result<()> {
        let kind = |gpu: &Self| (gpu.peer() as &dyn Any).type_id();
        self.check(other, kind(self) == kind(other))
    }

    fn check(&self, other: &Self, fit: bool) -> Result<()> {
        if fit {
            return Ok(());
        }
        Err(Error::WrongDevice { buffer: self.info().id.clone(), stream: other.info().id.clone() })
    }

    /// Returns true if both are handles of the same device.
    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.driver.inner, &other.driver.inner)
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gpu({})", self.info())
    }
}
