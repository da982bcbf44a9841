//! A GPU: what it is, its memory, its kernels.

use super::driver::{DeviceInfo, Driver};
use super::ptx;
use super::watch::{FaultPlan, MemoryUse, Rules, Watch, limit_from_env};
use crate::error::{Error, Result};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A GPU. A handle: clones are the same device and share the account of its memory.
#[derive(Clone)]
pub struct Gpu {
    driver: Arc<Watch>,
}

impl Gpu {
    pub(super) fn new(driver: Arc<dyn Driver>) -> Result<Self> {
        let rules = Rules { limit: limit_from_env()?, plan: None, peers: true };
        Ok(Self { driver: Arc::new(Watch::new(driver, rules)) })
    }

    /// Another handle of this device, with an account of its own, that gives at most `bytes` of memory. The environment
    /// variable `KAURI_MEMORY_LIMIT` does the same for every device.
    pub fn with_memory_limit(&self, bytes: u64) -> Self {
        self.with_rules(Rules { limit: bytes, plan: None, ..self.driver.rules() })
    }

    /// Another handle of this device, with an account of its own, on which calls fail by plan: for tests of what an
    /// application does then.
    pub fn with_faults(&self, plan: FaultPlan) -> Self {
        self.with_rules(Rules { plan: Some(plan), ..self.driver.rules() })
    }

    /// Another handle of this device, with an account of its own, that copies what lies on other devices through host memory also
    /// where there is a shorter way: for tests, and to measure what that way is worth.
    pub fn without_peers(&self) -> Self {
        self.with_rules(Rules { peers: false, ..self.driver.rules() })
    }

    fn with_rules(&self, rules: Rules) -> Self {
        Self { driver: Arc::new(Watch::new(self.driver.inner().clone(), rules)) }
    }

    /// What the device is.
    pub fn info(&self) -> &DeviceInfo {
        self.driver.info()
    }

    /// Bytes of device memory that can still be had at this moment.
    ///
    /// # Errors
    /// The driver's.
    pub fn free_memory(&self) -> Result<u64> {
        self.driver.free_memory()
    }

    /// Memory allocated through this handle and its clones.
    pub fn memory_use(&self) -> MemoryUse {
        self.driver.memory_use()
    }

    /// Makes the kernels of your own PTX text launchable; `family` is what their `#[kernel(family = …)]` says, or "".
    /// kauri's own families are loaded by themselves when first used; loading one here replaces it.
    ///
    /// # Errors
    /// [`BadModule`](crate::Error::BadModule) with the compiler's log.
    ///
    /// # Safety
    /// A text of one of kauri's families has kernels that do what kauri's do: safe calls launch them.
    pub unsafe fn load_module(&self, family: &'static str, ptx: &str) -> Result<()> {
        self.driver.load_module(family, &|| Ok(ptx.into()))
    }

    /// Loads a family of this build if it is not loaded yet. Of threads that need one at the same time the first loads it, and the others
    /// wait: a driver takes up to 20 seconds for a family, and loads one after another.
    pub(super) fn require_module(&self, family: &'static str) -> Result<()> {
        if self.driver.has_module(family) {
            return Ok(());
        }
        static LOADING: Mutex<()> = Mutex::new(());
        let _one = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
        if self.driver.has_module(family) {
            return Ok(());
        }
        self.driver.load_module(family, &|| ptx::find(family, self.info().capability))
    }

    pub(super) fn driver(&self) -> &dyn Driver {
        &*self.driver
    }

    /// The driver of the device itself, as the peer of another's.
    pub(super) fn peer(&self) -> &dyn Driver {
        &**self.driver.inner()
    }

    /// [`Error::WrongDevice`] unless this, the device of some memory or event, is also that of a stream.
    pub(crate) fn check_same(&self, other: &Self) -> Result<()> {
        self.check(other, self.same(other))
    }

    /// [`Error::WrongDevice`] unless a stream of the other can know of events of this.
    pub(super) fn check_one_driver(&self, other: &Self) -> Result<()> {
        let kind = |gpu: &Self| (gpu.peer() as &dyn Any).type_id();
        self.check(other, kind(self) == kind(other))
    }

    fn check(&self, other: &Self, fit: bool) -> Result<()> {
        if fit {
            return Ok(());
        }
        Err(Error::WrongDevice { buffer: self.info().id.clone(), stream: other.info().id.clone() })
    }

    /// True if both are handles of one device.
    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.driver.inner(), other.driver.inner())
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gpu({})", self.info())
    }
}
