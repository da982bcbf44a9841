//! Streams: an order of work on a GPU.

use super::driver::{Launch, RawStream};
use super::event::Event;
use super::gpu::Gpu;
use crate::error::{Error, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use cuda_std::kernel::{Kernel, Params};
use cuda_std::mem::{Slice, SliceMut};
use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

/// Most blocks of a launch.
const MAX_BLOCKS: u64 = i32::MAX as u64;

/// Work on a GPU that is done in order. Streams run beside each other. A clone is the same stream.
#[derive(Clone, Debug)]
pub struct Stream {
    handle: Arc<Handle>,
}

/// The driver's stream, which lives as long as something may still have to wait for it.
#[derive(Debug)]
struct Handle {
    gpu: Gpu,
    raw: RawStream,
    owned: bool,
    /// For work beside this stream's, from the first on.
    side: OnceLock<Side>,
}

/// A stream beside another one.
#[derive(Debug)]
struct Side {
    stream: Stream,
    forked: Event,
    done: Event,
}

impl Stream {
    /// A new stream, not ordered with any other.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(gpu: &Gpu) -> Result<Self> {
        Ok(Self::of(gpu, gpu.driver().create_stream()?, true))
    }

    /// The caller's own stream (a `CUstream`, of any library), borrowed: it is not destroyed here.
    ///
    /// # Safety
    /// `stream` must be a stream of the primary context of `gpu`, and outlive the result and every
    /// [`Workspace`](super::Workspace) that was last used with it, index that was last built on it, [`SahTree`](crate::sah::SahTree) that was
    /// asked with it, and [`Frames`](crate::render::Frames) that drew with it.
    pub unsafe fn from_raw(gpu: &Gpu, stream: *mut c_void) -> Self {
        Self::of(gpu, RawStream(stream as usize), false)
    }

    fn of(gpu: &Gpu, raw: RawStream, owned: bool) -> Self {
        Self { handle: Arc::new(Handle { gpu: gpu.clone(), raw, owned, side: OnceLock::new() }) }
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        &self.handle.gpu
    }

    /// Waits until all work of the stream is done.
    ///
    /// # Errors
    /// The driver's, also from that work.
    pub fn synchronize(&self) -> Result<()> {
        self.gpu().driver().synchronize(self.raw())
    }

    /// Sets `event` behind all work so far.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], or the driver's.
    pub fn record(&self, event: &Event) -> Result<()> {
        event.gpu().check_same(self.gpu())?;
        self.gpu().driver().record(event.raw(), self.raw())
    }

    /// Lets further work of this stream wait for `event`, which may be of another GPU.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] where one of them is simulated, or the driver's.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.gpu().check_one_driver(self.gpu())?;
        self.gpu().driver().wait(self.raw(), event.raw())
    }

    /// Launches kernel `K` with one thread an item, rounded up to whole blocks; no item, no launch.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    ///
    /// # Safety
    /// As [`launch`](Self::launch).
    pub unsafe fn launch_items<K: Kernel>(&self, num_items: u64, args: K::Args<'_>) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.launch::<K>(num_items.div_ceil(u64::from(K::BLOCK.max(1))), args) }
    }

    /// Launches kernel `K` with `num_blocks` blocks of the size that the kernel declares; no block, no launch.
    ///
    /// The arguments are checked by the compiler: their number, their types, and which buffers are written.
    ///
    /// # Errors
    /// [`Error::InvalidLaunch`], [`Error::MissingKernel`], [`Error::NoPtx`], [`Error::BadModule`], or the driver's.
    ///
    /// # Safety
    /// The kernel's own conditions; the buffers must stay alive until the work is done, and no other work may write what
    /// this one uses at the same time.
    pub unsafe fn launch<K: Kernel>(&self, num_blocks: u64, args: K::Args<'_>) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.launch_sized::<K>(num_blocks, K::BLOCK, args) }
    }

    /// Launches a kernel that declares no block size.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    ///
    /// # Safety
    /// As [`launch`](Self::launch).
    pub unsafe fn launch_sized<K: Kernel>(
        &self,
        num_blocks: u64,
        threads_per_block: u32,
        args: K::Args<'_>,
    ) -> Result<()> {
        if num_blocks == 0 {
            return Ok(());
        }
        let name = K::name();
        let refuse = |reason: String| {
            Err(Error::InvalidLaunch {
                kernel: K::name(),
                grid: num_blocks,
                block: threads_per_block,
                reason,
            })
        };
        if num_blocks > MAX_BLOCKS {
            return refuse(format!("at most {MAX_BLOCKS} blocks"));
        }
        if threads_per_block == 0 {
            return refuse("the kernel declares no block size: use launch_sized".into());
        }
        if threads_per_block > 1024 || (K::BLOCK != 0 && threads_per_block > K::BLOCK) {
            return refuse(format!(
                "at most {} threads in a block",
                if K::BLOCK == 0 { 1024 } else { K::BLOCK }
            ));
        }
        let max_shared = self.gpu().info().max_shared_bytes;
        if K::SHARED_BYTES > max_shared {
            return refuse(format!(
                "needs {} bytes of shared memory, the device has {max_shared}",
                K::SHARED_BYTES
            ));
        }
        let mut params = Params::default();
        K::push(&args, &mut params);
        let launch = Launch {
            name: &name,
            family: K::FAMILY,
            blocks: num_blocks as u32,
            threads_per_block,
            shared_bytes: K::SHARED_BYTES,
            params: &params,
            // SAFETY: passed on to the caller; drivers call this only as a thread of a simulated launch.
            run: &|| unsafe { K::call(&args) },
        };
        self.gpu().require_module(K::FAMILY)?;
        tracing::trace!(kernel = name, blocks = num_blocks, "launch");
        // SAFETY: passed on to the caller.
        unsafe { self.gpu().driver().launch(&launch, self.raw()) }
    }

    /// Sets every byte of a view, in the order of the stream.
    ///
    /// # Safety
    /// The view must be of device memory that stays alive until the work is done.
    pub(crate) unsafe fn fill_bytes<T>(&self, to: SliceMut<'_, T>, byte: u8) -> Result<()> {
        if to.is_empty() {
            return Ok(());
        }
        // SAFETY: passed on to the caller.
        unsafe { self.gpu().driver().fill(to.as_ptr() as u64, byte, to.len() * size_of::<T>(), self.raw()) }
    }

    /// Copies `items` to a view; returns when the copy is done.
    ///
    /// # Errors
    /// [`Error::Shape`] if the lengths differ, or the driver's.
    ///
    /// # Safety
    /// The view must be of live device memory, which no other work uses.
    pub(crate) unsafe fn upload<T: NoUninit>(&self, to: SliceMut<'_, T>, items: &[T]) -> Result<()> {
        if to.len() != items.len() {
            let (expected, got) = (to.len() as u64, items.len() as u64);
            return Err(Error::Shape { what: "items copied to device memory", expected, got });
        }
        if items.is_empty() {
            return Ok(());
        }
        let (address, bytes) = (to.as_ptr() as u64, size_of_val(items));
        // SAFETY: passed on to the caller; the copy is waited for while `items` is borrowed.
        unsafe { self.gpu().driver().copy_to_device(address, items.as_ptr().cast(), bytes, self.raw()) }?;
        self.synchronize()
    }

    /// Copies one view to another of the same length, in the order of the stream.
    ///
    /// # Safety
    /// As [`fill_bytes`](Self::fill_bytes), for both.
    pub(crate) unsafe fn copy<T>(&self, to: SliceMut<'_, T>, from: Slice<'_, T>) -> Result<()> {
        debug_assert_eq!(to.len(), from.len());
        if to.is_empty() {
            return Ok(());
        }
        let (to_address, bytes) = (to.as_ptr() as u64, to.len() * size_of::<T>());
        // SAFETY: passed on to the caller.
        unsafe { self.gpu().driver().copy_on_device(to_address, from.as_ptr() as u64, bytes, self.raw()) }
    }

    /// The items of a view, after the work of the stream so far; returns when the copy is done.
    ///
    /// # Safety
    /// The view must be of device memory that the work so far has written.
    pub(crate) unsafe fn read<T: AnyBitPattern>(&self, from: Slice<'_, T>) -> Result<Vec<T>> {
        let mut items: Vec<T> = crate::memory::vec_with_capacity(from.len(), "a copy of device memory")?;
        if !from.is_empty() {
            let (to, bytes) = (items.as_mut_ptr(), from.len() * size_of::<T>());
            // SAFETY: there is room, the copy is waited for, and any bits are an item; the rest is passed on to the caller.
            unsafe {
                self.gpu().driver().copy_to_host(to.cast(), from.as_ptr() as u64, bytes, self.raw())?;
                self.synchronize()?;
                items.set_len(from.len());
            }
        }
        Ok(items)
    }

    /// Copies a view to as many items of host memory, in the order of the stream. Does not wait if these are pinned.
    ///
    /// # Safety
    /// Both stay alive, and nobody looks at the items, until the work is done.
    pub(crate) unsafe fn start_reading<T: AnyBitPattern>(
        &self,
        from: Slice<'_, T>,
        to: &mut [T],
    ) -> Result<()> {
        debug_assert_eq!(from.len(), to.len());
        if from.is_empty() {
            return Ok(());
        }
        let (to, bytes) = (to.as_mut_ptr().cast(), size_of_val(to));
        // SAFETY: passed on to the caller.
        unsafe { self.gpu().driver().copy_to_host(to, from.as_ptr() as u64, bytes, self.raw()) }
    }

    /// Copies bytes of pinned memory to a view of as many, in the order of the stream, and does not wait.
    ///
    /// # Safety
    /// Both stay alive and as they are until the work is done; the view is of device memory that no other work uses.
    pub(crate) unsafe fn start_writing<T>(&self, to: SliceMut<'_, T>, bytes: &[u8]) -> Result<()> {
        debug_assert_eq!(to.len() * size_of::<T>(), bytes.len());
        if bytes.is_empty() {
            return Ok(());
        }
        let to = to.as_ptr() as u64;
        // SAFETY: passed on to the caller.
        unsafe { self.gpu().driver().copy_to_device(to, bytes.as_ptr(), bytes.len(), self.raw()) }
    }

    pub(super) fn raw(&self) -> RawStream {
        self.handle.raw
    }

    /// True if both are one stream.
    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.handle, &other.handle)
    }

    /// Lets later work wait for all work of another stream so far; of the same stream it does in any case.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        if self.same(other) {
            return Ok(());
        }
        let done = Event::new(other.gpu())?;
        other.record(&done)?;
        self.wait(&done)
    }

    /// Puts work on this stream and other work on one beside it, after all work so far; later work waits for both.
    pub(crate) fn fork<A, B>(
        &self,
        here: impl FnOnce(&Self) -> Result<A>,
        beside: impl FnOnce(&Self) -> Result<B>,
    ) -> Result<(A, B)> {
        let side = match self.handle.side.get() {
            Some(side) => side,
            None => {
                let gpu = self.gpu();
                let side = Side { stream: Self::new(gpu)?, forked: Event::new(gpu)?, done: Event::new(gpu)? };
                // Another thread may have been faster.
                self.handle.side.get_or_init(|| side)
            }
        };
        self.record(&side.forked)?;
        side.stream.wait(&side.forked)?;
        let other = beside(&side.stream);
        let own = here(self);
        // In any case: what comes next may use the same memory.
        let joined = side.stream.record(&side.done).and_then(|()| self.wait(&side.done));
        joined.or_else(|_| side.stream.synchronize())?;
        Ok((own?, other?))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.owned {
            self.gpu.driver().destroy_stream(self.raw);
        }
    }
}
