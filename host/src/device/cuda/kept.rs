//! Device memory that is kept for later allocations, in a memory pool of the driver.

use super::modules::Handle;
use super::{CudaDriver, pointer, raw};
use crate::device::driver::{Driver, RawStream};
use crate::error::Result;
use crate::threads::lock;
use std::ptr::null_mut;
use std::sync::Mutex;

/// The memory pool of a device; none until memory is kept.
#[derive(Default)]
pub(super) struct KeptMemory(Mutex<Option<Pool>>);

/// A memory pool, and the stream of its allocations, on which nothing else runs.
#[derive(Clone, Copy)]
struct Pool {
    handle: Handle,
    stream: RawStream,
    /// False after [`Driver::keep_memory`] of 0 bytes: then memory comes from the driver again.
    keeps: bool,
    /// A bit for each other device that reaches the memory.
    reached_by: u64,
}

impl CudaDriver {
    /// Carries out [`Driver::keep_memory`]. The context is current.
    pub(super) fn keep_in_pool(&self, bytes: u64) -> Result<()> {
        let mut kept = lock(&self.kept_memory.0);
        let pool = match &mut *kept {
            Some(pool) => pool,
            None => {
                let Some(pool) = self.create_pool()? else { return Ok(()) };
                kept.insert(pool)
            }
        };
        pool.keeps = bytes > 0;
        let mut threshold = bytes;
        // SAFETY: a live pool; reads one integer.
        unsafe {
            let code = raw::cuMemPoolSetAttribute(
                pool.handle.0,
                raw::POOL_RELEASE_THRESHOLD,
                (&raw mut threshold).cast(),
            );
            self.check("cuMemPoolSetAttribute", code)?;
            self.check("cuMemPoolTrimTo", raw::cuMemPoolTrimTo(pool.handle.0, bytes as usize))
        }
    }

    /// Returns a new pool; none if the device or the driver has no pools.
    fn create_pool(&self) -> Result<Option<Pool>> {
        let (mut stream, mut pool) = (null_mut(), null_mut());
        // SAFETY: each call writes one handle.
        unsafe {
            match raw::cuMemPoolCreate(&mut pool, &raw::PoolProperties::of_device(self.context.device)) {
                raw::NOT_SUPPORTED | raw::NOT_FOUND => return Ok(None),
                code => self.check("cuMemPoolCreate", code)?,
            }
            let code = raw::cuStreamCreate(&mut stream, raw::STREAM_NON_BLOCKING);
            self.check("cuStreamCreate", code).inspect_err(|_| {
                raw::cuMemPoolDestroy(pool);
            })?;
        }
        let (handle, stream) = (Handle(pool), RawStream(stream as usize));
        Ok(Some(Pool { handle, stream, keeps: true, reached_by: self.open_to_others(handle) }))
    }

    /// Opens a new pool to all other devices that can access it. Returns a bit for each of them. The pool has no memory yet: when a pool in
    /// use was opened, builds on two H200s sometimes failed with `CUDA_ERROR_LAUNCH_FAILED`.
    fn open_to_others(&self, pool: Handle) -> u64 {
        let (mut num, mut reached_by) = (0, 0);
        // SAFETY: writes one number, unless it fails.
        unsafe { raw::cuDeviceGetCount(&mut num) };
        for other in (0..num.min(u64::BITS as i32)).filter(|&other| other != self.context.device) {
            let mut can = 0;
            // SAFETY: writes one integer; both devices exist. The pool is live; reads one description.
            let is_open = unsafe {
                raw::cuDeviceCanAccessPeer(&mut can, other, self.context.device) == raw::SUCCESS
                    && can != 0
                    && raw::cuMemPoolSetAccess(pool.0, &raw::PoolAccess::of_device(other), 1) == raw::SUCCESS
            };
            tracing::debug!(other, is_open, "memory pool of device {}", self.context.device);
            reached_by |= u64::from(is_open) << other;
        }
        reached_by
    }

    /// Allocates device memory, in the pool if memory is kept. Returns the name of the last call with the driver's code. The context is
    /// current.
    pub(super) fn alloc_device(&self, address: &mut u64, bytes: usize) -> (&'static str, i32) {
        let pool = *lock(&self.kept_memory.0);
        let Some(pool) = pool.filter(|pool| pool.keeps) else {
            // SAFETY: writes one address.
            return ("cuMemAlloc", unsafe { raw::cuMemAlloc_v2(address, bytes) });
        };
        let (handle, stream) = (pool.handle.0, pointer(pool.stream.0));
        // SAFETY: live handles; writes one address.
        unsafe {
            let mut code = raw::cuMemAllocFromPoolAsync(address, bytes, handle, stream);
            if code == raw::OUT_OF_MEMORY {
                raw::cuMemPoolTrimTo(handle, 0);
                code = raw::cuMemAllocFromPoolAsync(address, bytes, handle, stream);
            }
            if code != raw::SUCCESS {
                return ("cuMemAllocFromPoolAsync", code);
            }
            // Other streams may use the memory before this one has run the allocation.
            let code = raw::cuStreamSynchronize(stream);
            if code != raw::SUCCESS {
                raw::cuMemFree_v2(*address);
            }
            ("cuStreamSynchronize", code)
        }
    }

    /// Frees device memory after all work that may use it.
    ///
    /// # Safety
    /// Like [`Driver::free`].
    pub(super) unsafe fn free_device(&self, address: u64) -> Result<()> {
        self.enter()?;
        if !is_of_pool(address) {
            // SAFETY: passed on to the caller. The call waits for all work of the device.
            return self.check("cuMemFree", unsafe { raw::cuMemFree_v2(address) });
        }
        self.wait_for_context()?;
        let stream = lock(&self.kept_memory.0).map_or(null_mut(), |pool| pointer(pool.stream.0));
        // Not `cuMemFree`: compute-sanitizer does not notice it for memory of a pool, and then reports accesses to memory that is used again.
        // SAFETY: passed on to the caller. A live stream, on which nothing else runs, or the default stream.
        unsafe {
            self.check("cuMemFreeAsync", raw::cuMemFreeAsync(address, stream))?;
            self.check("cuStreamSynchronize", raw::cuStreamSynchronize(stream))
        }
    }

    /// Waits for all work of the context, which is current.
    pub(super) fn wait_for_context(&self) -> Result<()> {
        // SAFETY: the call takes no pointer.
        self.check("cuCtxSynchronize", unsafe { raw::cuCtxSynchronize() })
    }

    /// Returns the bytes of the pool that no allocation uses. The context is current.
    pub(super) fn idle_pool_bytes(&self) -> Result<u64> {
        let Some(pool) = *lock(&self.kept_memory.0) else { return Ok(0) };
        let bytes = |attribute| {
            let mut bytes = 0u64;
            // SAFETY: a live pool; writes one integer.
            let code =
                unsafe { raw::cuMemPoolGetAttribute(pool.handle.0, attribute, (&raw mut bytes).cast()) };
            self.check("cuMemPoolGetAttribute", code).map(|()| bytes)
        };
        Ok(bytes(raw::POOL_RESERVED)?.saturating_sub(bytes(raw::POOL_USED)?))
    }

    /// Returns true if another device reaches the memory of the pool, or there is none.
    pub(super) fn pool_is_open_to(&self, other: &Self) -> bool {
        let bit = 1u64.checked_shl(other.context.device as u32).unwrap_or(0);
        lock(&self.kept_memory.0).is_none_or(|pool| pool.reached_by & bit != 0)
    }

    /// Returns the memory of the pool to the driver. The context is current, and all memory of the pool has been freed.
    pub(super) fn destroy_pool(&self) {
        if let Some(pool) = lock(&self.kept_memory.0).take() {
            self.destroy_stream(pool.stream);
            // SAFETY: taken out, so destroyed once.
            unsafe { raw::cuMemPoolDestroy(pool.handle.0) };
        }
    }
}

/// Returns true for memory of any pool, also of another library. The context is current.
pub(super) fn is_of_pool(address: u64) -> bool {
    let mut pool = null_mut::<std::ffi::c_void>();
    // SAFETY: writes one handle.
    let code = unsafe { raw::cuPointerGetAttribute((&raw mut pool).cast(), raw::POINTER_POOL, address) };
    // Drivers without pools do not know the attribute.
    code == raw::SUCCESS && !pool.is_null()
}
