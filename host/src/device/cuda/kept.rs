//! Device memory that is kept for later allocations, in a memory pool of the driver. Without one, the driver needs milliseconds to allocate
//! and free large arrays, and does it for one device after another.

use super::modules::Handle;
use super::{CudaDriver, pointer, raw};
use crate::device::driver::{Driver, RawStream};
use crate::error::Result;
use crate::threads::lock;
use std::ptr::null_mut;
use std::sync::Mutex;

/// The memory pool of a device; none unless memory is kept.
#[derive(Default)]
pub(super) struct KeptMemory(Mutex<Option<Pool>>);

/// A memory pool, and the stream of its allocations, on which nothing else runs.
#[derive(Clone, Copy)]
struct Pool {
    handle: Handle,
    stream: RawStream,
}

impl CudaDriver {
    fn pool(&self) -> Option<Pool> {
        *lock(&self.kept_memory.0)
    }

    /// Carries out [`Driver::keep_memory`]. The context is current.
    pub(super) fn keep_in_pool(&self, bytes: u64) -> Result<()> {
        let mut kept = lock(&self.kept_memory.0);
        let pool = match *kept {
            Some(pool) => pool,
            None => {
                let Some(pool) = self.create_pool()? else { return Ok(()) };
                *kept.insert(pool)
            }
        };
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

    /// Returns a new pool; none on a device without pools.
    fn create_pool(&self) -> Result<Option<Pool>> {
        let (mut stream, mut pool) = (null_mut(), null_mut());
        // SAFETY: each call writes one handle.
        unsafe {
            match raw::cuMemPoolCreate(&mut pool, &raw::PoolProperties::of_device(self.context.device)) {
                raw::NOT_SUPPORTED => return Ok(None),
                code => self.check("cuMemPoolCreate", code)?,
            }
            let created =
                self.check("cuStreamCreate", raw::cuStreamCreate(&mut stream, raw::STREAM_NON_BLOCKING));
            if created.is_err() {
                raw::cuMemPoolDestroy(pool);
            }
            created?;
        }
        Ok(Some(Pool { handle: Handle(pool), stream: RawStream(stream as usize) }))
    }

    /// Allocates device memory, in the pool if there is one. Returns the name of the call with the driver's code. The context is current.
    pub(super) fn alloc_device(&self, address: &mut u64, bytes: usize) -> (&'static str, i32) {
        let Some(pool) = self.pool() else {
            // SAFETY: writes one address.
            return ("cuMemAlloc", unsafe { raw::cuMemAlloc_v2(address, bytes) });
        };
        let (handle, stream) = (pool.handle.0, pointer(pool.stream.0));
        // SAFETY: live handles; writes one address.
        let code = unsafe {
            let mut code = raw::cuMemAllocFromPoolAsync(address, bytes, handle, stream);
            if code == raw::OUT_OF_MEMORY {
                raw::cuMemPoolTrimTo(handle, 0);
                code = raw::cuMemAllocFromPoolAsync(address, bytes, handle, stream);
            }
            // Other streams use the memory.
            if code == raw::SUCCESS { raw::cuStreamSynchronize(stream) } else { code }
        };
        ("cuMemAllocFromPoolAsync", code)
    }

    /// Waits for all work that may use device memory, unless `cuMemFree` does: it does not for memory of a pool.
    pub(super) fn wait_before_free(&self) {
        if self.pool().is_some() {
            // SAFETY: the call takes no pointer.
            let _ = self.call("cuCtxSynchronize", || unsafe { raw::cuCtxSynchronize() });
        }
    }

    /// Returns the bytes of the pool that no allocation uses. The context is current.
    pub(super) fn idle_pool_bytes(&self) -> Result<u64> {
        let Some(pool) = self.pool() else { return Ok(0) };
        let bytes = |attribute| {
            let mut bytes = 0u64;
            // SAFETY: a live pool; writes one integer.
            let code =
                unsafe { raw::cuMemPoolGetAttribute(pool.handle.0, attribute, (&raw mut bytes).cast()) };
            self.check("cuMemPoolGetAttribute", code).map(|()| bytes)
        };
        Ok(bytes(raw::POOL_RESERVED)?.saturating_sub(bytes(raw::POOL_USED)?))
    }

    /// Lets another device reach the memory of the pool.
    pub(super) fn open_pool_to(&self, peer: &Self) -> Result<()> {
        let Some(pool) = self.pool() else { return Ok(()) };
        let access = raw::PoolAccess::of_device(peer.context.device);
        // SAFETY: a live pool; reads one description.
        self.check("cuMemPoolSetAccess", unsafe { raw::cuMemPoolSetAccess(pool.handle.0, &access, 1) })
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
