//! A layer over every driver that accounts for memory, enforces a memory limit, and injects faults.
//!
//! Tests use it to cover exhausted memory and failing calls on any device.

use super::driver::{Driver, Launch, Memory, RawEvent, RawStream, Transfer};
use super::images::KernelId;
use crate::error::{Error, Result};
use crate::threads::lock;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A kind of driver call that a [`FaultPlan`] lets fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultCall {
    /// Allocations of device memory and of pinned host memory.
    Alloc,
    /// Copies and fills.
    Copy,
    /// Kernel launches.
    Launch,
    /// Waiting for a stream or an event.
    Synchronize,
    /// Loading a kernel, or the kernels of a family.
    LoadModule,
    /// Any of these.
    Any,
}

/// The driver calls that fail on the handle of [`Gpu::with_faults`](super::Gpu::with_faults): the `nth` call of a kind, counted
/// from 1, and, with `repeat`, all later ones.
///
/// ```
/// use kauri::device::{Buffer, FaultCall, FaultPlan, Stream};
///
/// if let Some(gpu) = kauri::Device::best()?.gpu() {
///     let gpu = gpu.with_faults(FaultPlan { call: FaultCall::Alloc, nth: 1, repeat: false });
///     let stream = Stream::new(&gpu)?;
///     assert!(Buffer::from_slice(&stream, &[1u32], "first").is_err());
///     assert!(Buffer::from_slice(&stream, &[1u32], "second").is_ok());
/// }
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// The kind of calls.
    pub call: FaultCall,
    /// The number of the first call that fails, from 1.
    pub nth: u64,
    /// True if all later calls of the kind fail too.
    pub repeat: bool,
}

/// The memory that a device handle uses, from [`Gpu::memory_use`](super::Gpu::memory_use): device memory and page-locked host
/// memory together.
///
/// ```
/// use kauri::device::{Buffer, Stream};
///
/// if let Some(gpu) = kauri::Device::best()?.gpu() {
///     let before = gpu.memory_use();
///     let _numbers = Buffer::from_slice(&Stream::new(gpu)?, &[1u32; 1000], "numbers")?;
///     assert!(gpu.memory_use().live_bytes >= before.live_bytes + 4000);
/// }
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// The bytes of device and pinned memory allocated now. The [memory of copies](super#copies) does
    /// not count.
    pub live_bytes: u64,
    /// The peak of these bytes.
    pub peak_bytes: u64,
    /// The number of allocations so far.
    pub allocations: u64,
}

/// The restrictions of a device handle.
#[derive(Clone, Copy)]
pub(super) struct Restrictions {
    /// The most bytes of memory.
    pub(super) memory_limit: u64,
    /// The calls that fail.
    pub(super) fault_plan: Option<FaultPlan>,
    /// False to copy from other devices through host memory, even if the driver can copy directly.
    pub(super) peer_copies: bool,
}

pub(super) struct InstrumentedDriver {
    /// The driver without instrumentation.
    pub(super) inner: Arc<dyn Driver>,
    pub(super) restrictions: Restrictions,
    calls: AtomicU64,
    account: Mutex<MemoryAccount>,
}

#[derive(Default)]
struct MemoryAccount {
    used: MemoryUse,
    /// The bytes of allocations in progress, which other threads cannot use.
    pending_bytes: u64,
    /// The bytes of each allocation.
    sizes: HashMap<(Memory, u64), u64>,
}

impl InstrumentedDriver {
    pub(super) fn new(inner: Arc<dyn Driver>, restrictions: Restrictions) -> Self {
        Self { inner, restrictions, calls: AtomicU64::new(0), account: Mutex::default() }
    }

    pub(super) fn memory_use(&self) -> MemoryUse {
        self.account().used
    }

    fn account(&self) -> MutexGuard<'_, MemoryAccount> {
        lock(&self.account)
    }

    /// Counts a call, and returns true if the fault plan lets it fail.
    fn fails(&self, call: FaultCall) -> bool {
        let Some(plan) = self.restrictions.fault_plan else { return false };
        if plan.call != call && plan.call != FaultCall::Any {
            return false;
        }
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        number == plan.nth || (plan.repeat && number > plan.nth)
    }

    fn inject_fault(&self, kind: FaultCall, call: &'static str) -> Result<()> {
        if self.fails(kind) {
            let (name, meaning, advice) =
                ("INJECTED", "a fault plan let this call fail", "remove the fault plan");
            return Err(Error::Driver { call, code: 999, name, meaning, advice });
        }
        Ok(())
    }
}

/// Overrides the calls of a [`Driver`] that are counted or may fail, and forwards all other calls to the driver.
impl InstrumentedDriver {
    pub(super) fn free_memory(&self) -> Result<u64> {
        let allowed = self.restrictions.memory_limit.saturating_sub(self.account().used.live_bytes);
        Ok(self.inner.free_memory()?.min(allowed))
    }

    pub(super) fn alloc(&self, memory: Memory, bytes: usize, label: &'static str) -> Result<u64> {
        let requested = bytes as u64;
        let fails = self.fails(FaultCall::Alloc);
        {
            let mut account = self.account();
            let used = account.used.live_bytes + account.pending_bytes;
            let free = self.restrictions.memory_limit.saturating_sub(used);
            if fails || requested > free {
                return Err(memory.exhausted(requested, free, label));
            }
            account.pending_bytes += requested;
        }
        let allocated = self.inner.alloc(memory, bytes, label);
        let mut account = self.account();
        account.pending_bytes -= requested;
        let address = allocated?;
        account.used.live_bytes += requested;
        account.used.peak_bytes = account.used.peak_bytes.max(account.used.live_bytes);
        account.used.allocations += 1;
        account.sizes.insert((memory, address), requested);
        Ok(address)
    }

    /// # Safety
    /// Like [`Driver::free`].
    pub(super) unsafe fn free(&self, memory: Memory, address: u64) {
        self.disown(memory, address);
        // SAFETY: passed on to the caller.
        unsafe { self.inner.free(memory, address) }
    }

    /// Removes an allocation from the account.
    pub(super) fn disown(&self, memory: Memory, address: u64) {
        let mut account = self.account();
        let bytes = account.sizes.remove(&(memory, address)).unwrap_or(0);
        account.used.live_bytes -= bytes;
    }

    /// Adds the allocation of another library to the account. It is not refused: the memory is in use already.
    #[cfg(feature = "cust")]
    pub(super) fn adopt(&self, memory: Memory, address: u64, bytes: u64) {
        let mut account = self.account();
        account.used.live_bytes += bytes;
        account.used.peak_bytes = account.used.peak_bytes.max(account.used.live_bytes);
        account.sizes.insert((memory, address), bytes);
    }

    pub(super) fn synchronize(&self, stream: RawStream) -> Result<()> {
        // Waits even if the call is to fail: memory that the work uses may be freed after the error.
        let done = self.inner.synchronize(stream);
        self.inject_fault(FaultCall::Synchronize, "synchronize")?;
        done
    }

    pub(super) fn synchronize_event(&self, event: RawEvent) -> Result<()> {
        let done = self.inner.synchronize_event(event);
        self.inject_fault(FaultCall::Synchronize, "synchronize")?;
        done
    }

    pub(super) fn can_reach(&self, peer: &dyn Driver) -> Result<bool> {
        if self.restrictions.peer_copies { self.inner.can_reach(peer) } else { Ok(false) }
    }

    /// # Safety
    /// Like [`Driver::transfer`].
    pub(super) unsafe fn transfer(
        &self,
        transfer: Transfer<'_>,
        bytes: usize,
        stream: RawStream,
    ) -> Result<()> {
        self.inject_fault(FaultCall::Copy, "copy")?;
        // SAFETY: passed on to the caller.
        unsafe { self.inner.transfer(transfer, bytes, stream) }
    }

    pub(super) fn load_kernel(&self, kernel: KernelId<'_>) -> Result<()> {
        self.inject_fault(FaultCall::LoadModule, "load module")?;
        self.inner.load_kernel(kernel)
    }

    pub(super) fn load_family(&self, family: &'static str, ptx: &str) -> Result<()> {
        self.inject_fault(FaultCall::LoadModule, "load module")?;
        self.inner.load_family(family, ptx)
    }

    /// # Safety
    /// Like [`Driver::launch`].
    pub(super) unsafe fn launch(&self, launch: &Launch<'_>, stream: RawStream) -> Result<()> {
        self.inject_fault(FaultCall::Launch, "launch")?;
        // SAFETY: passed on to the caller.
        unsafe { self.inner.launch(launch, stream) }
    }
}

impl Deref for InstrumentedDriver {
    type Target = dyn Driver;

    fn deref(&self) -> &dyn Driver {
        &*self.inner
    }
}

/// Returns the limit of the environment variable `KAURI_MEMORY_LIMIT`: bytes, optionally with a suffix K, M or G.
pub(super) fn limit_from_env() -> Result<u64> {
    match std::env::var("KAURI_MEMORY_LIMIT") {
        Ok(text) => parse_bytes(&text).ok_or(Error::Environment {
            variable: "KAURI_MEMORY_LIMIT",
            value: text,
            expected: "a number of bytes, such as 4G, 512M or 1000000",
        }),
        Err(_) => Ok(u64::MAX),
    }
}

fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' | b'm' => (&text[..text.len() - 1], 20),
        b'G' | b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn sizes_are_parsed() {
        let cases = [
            ("0", Some(0)),
            ("17", Some(17)),
            ("4K", Some(4096)),
            ("512m", Some(512 << 20)),
            (" 4G ", Some(4 << 30)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_bytes(text), expected, "{text}");
        }
        for text in ["", "G", "4T", "-1", "1.5G", "99999999999999G", "4é"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }
}
