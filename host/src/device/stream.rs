//! Streams: in-order queues of GPU work.

use super::driver::{Launch, RawStream, Transfer};
use super::event::Event;
use super::gpu::Gpu;
use super::images::KernelId;
use crate::error::{Error, Result, check_len};
use crate::once::Once;
use bytemuck::{AnyBitPattern, NoUninit};
use cuda_std::kernel::{Kernel, Params};
use cuda_std::mem::{Slice, SliceMut};
#[cfg(feature = "cust")]
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

/// The most blocks of a launch.
const MAX_BLOCKS: u64 = i32::MAX as u64;

/// An in-order queue of work on a GPU. Work of different streams can overlap. A clone refers to the same stream.
///
/// Calls return as soon as their work is enqueued, except those that return results to the host.
///
/// ```
/// use kauri::device::{Buffer, Stream};
///
/// if let Some(gpu) = kauri::Device::best()?.gpu() {
///     let (first, second) = (Stream::new(gpu)?, Stream::new(gpu)?);
///     let mut buffer = Buffer::<u32>::uninitialized(gpu, 4, "zeros")?;
///     buffer.fill_bytes(&first, 0)?;
///     second.wait_for(&first)?;
///     assert_eq!(buffer.to_vec(&second)?, [0; 4]);
/// }
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    handle: Arc<Handle>,
}

/// The driver's stream. It lives as long as anything may have to wait for it.
#[derive(Debug)]
struct Handle {
    /// Before the device, whose context it may need when it is dropped.
    owner: Owner,
    gpu: Gpu,
    raw: RawStream,
    /// The stream of [`fork`](Stream::fork), created at first use.
    side: Once<SideStream>,
}

/// The owner of a driver's stream.
#[derive(Debug)]
pub(super) enum Owner {
    /// The handle, which destroys the stream.
    Handle,
    /// The caller.
    Caller,
    /// A value of another library that destroys the stream when the last reference to it is dropped.
    #[cfg(feature = "cust")]
    Shared(#[expect(dead_code, reason = "only dropped")] Arc<dyn Any + Send + Sync>),
}

/// The grid of a launch, and the kernel's needs.
struct LaunchShape {
    num_blocks: u64,
    threads_per_block: u32,
    /// Threads of a block that the kernel declares; 0 if the launch chooses.
    max_threads: u32,
    shared_bytes: usize,
    /// Bytes of shared memory that the kernel declares.
    max_shared_bytes: usize,
    family: &'static str,
    /// Names of all entries of the kernel function.
    #[cfg(feature = "sim")]
    entries: &'static [&'static str],
}

/// A second stream for concurrent work, with the events that join it.
#[derive(Debug)]
struct SideStream {
    stream: Stream,
    forked: Event,
    done: Event,
}

impl Stream {
    /// Creates a stream, which is not ordered with any other except CUDA's default stream, with which the synchronous copies
    /// of other libraries work.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn new(gpu: &Gpu) -> Result<Self> {
        Ok(Self::of(gpu, gpu.driver.create_stream()?, Owner::Handle))
    }

    /// Borrows the caller's stream (a `CUstream` of any library), which is not destroyed here.
    ///
    /// # Safety
    /// `stream` is a stream of the primary context of `gpu`. It outlives the result and every
    /// [`Workspace`](super::Workspace) last used with it, index last built on it, [`SahTree`](crate::sah::SahTree)
    /// queried with it, and [`Frames`](crate::render::Frames) that drew with it.
    pub unsafe fn from_raw(gpu: &Gpu, stream: *mut c_void) -> Self {
        Self::of(gpu, RawStream(stream as usize), Owner::Caller)
    }

    pub(super) fn of(gpu: &Gpu, raw: RawStream, owner: Owner) -> Self {
        Self { handle: Arc::new(Handle { owner, gpu: gpu.clone(), raw, side: Once::new() }) }
    }

    /// Returns the device.
    pub fn gpu(&self) -> &Gpu {
        &self.handle.gpu
    }

    /// Waits until all work of the stream is done.
    ///
    /// # Errors
    /// Errors of the driver, including those of the work.
    pub fn synchronize(&self) -> Result<()> {
        self.gpu().driver.synchronize(self.raw())
    }

    /// Records `event` after all work enqueued so far.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], and errors of the driver.
    pub fn record(&self, event: &Event) -> Result<()> {
        event.gpu().check_same(self.gpu())?;
        self.gpu().driver.record(event.raw, self.raw())
    }

    /// Makes later work of this stream wait for `event`, which may belong to another GPU.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if only one of them is simulated, and errors of the driver.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.gpu().check_same_backend(self.gpu())?;
        self.gpu().driver.wait(self.raw(), event.raw)
    }

    /// Launches kernel `K` with one thread per item, rounded up to whole blocks. 0 items launch nothing.
    ///
    /// # Errors
    /// Like [`launch`](Self::launch).
    ///
    /// # Safety
    /// Like [`launch`](Self::launch).
    pub unsafe fn launch_items<K: Kernel>(&self, num_items: u64, args: K::Args<'_>) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.launch::<K>(num_items.div_ceil(u64::from(K::BLOCK.max(1))), args) }
    }

    /// Launches kernel `K` with a one-dimensional grid of `num_blocks` blocks of the size that the kernel declares. 0 blocks launch
    /// nothing. The first launch of a kernel loads it.
    ///
    /// The compiler checks the arguments: their number, their types, and which buffers are written.
    ///
    /// # Errors
    /// [`Error::InvalidLaunch`], [`Error::MissingKernel`], [`Error::NoPtx`], [`Error::BadModule`], and errors of the
    /// driver.
    ///
    /// # Safety
    /// The safety conditions of the kernel hold. The buffers stay alive until the work is done, and no other work
    /// writes what this work uses at the same time.
    pub unsafe fn launch<K: Kernel>(&self, num_blocks: u64, args: K::Args<'_>) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.launch_sized::<K>(num_blocks, K::BLOCK, args) }
    }

    /// Launches kernel `K` with blocks of `threads_per_block` threads: at most the block size that the kernel declares, or 1024 if it
    /// declares none.
    ///
    /// # Errors
    /// Like [`launch`](Self::launch).
    ///
    /// # Safety
    /// Like [`launch`](Self::launch).
    pub unsafe fn launch_sized<K: Kernel>(
        &self,
        num_blocks: u64,
        threads_per_block: u32,
        args: K::Args<'_>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.launch_shaped::<K>(num_blocks, threads_per_block, K::SHARED_BYTES, args) }
    }

    /// Launches kernel `K` with one thread per item, and blocks with `shared_bytes` bytes of
    /// [`dynamic_shared_slice`](cuda_std::shared::dynamic_shared_slice): at most the shared memory that the kernel declares.
    ///
    /// # Errors
    /// Like [`launch`](Self::launch).
    ///
    /// # Safety
    /// Like [`launch`](Self::launch), and the kernel accesses no more shared memory.
    #[cfg(feature = "research")]
    pub(crate) unsafe fn launch_items_with_shared<K: Kernel>(
        &self,
        num_items: u64,
        shared_bytes: usize,
        args: K::Args<'_>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            self.launch_shaped::<K>(num_items.div_ceil(u64::from(K::BLOCK)), K::BLOCK, shared_bytes, args)
        }
    }

    /// # Safety
    /// Like [`launch`](Self::launch), and the kernel accesses no more shared memory.
    unsafe fn launch_shaped<K: Kernel>(
        &self,
        num_blocks: u64,
        threads_per_block: u32,
        shared_bytes: usize,
        args: K::Args<'_>,
    ) -> Result<()> {
        let shape = LaunchShape {
            num_blocks,
            threads_per_block,
            max_threads: K::BLOCK,
            shared_bytes,
            max_shared_bytes: K::SHARED_BYTES,
            family: K::FAMILY,
            #[cfg(feature = "sim")]
            entries: K::ENTRIES,
        };
        let name = &|| K::name();
        let push = &|params: &mut Params| K::push(&args, params);
        // SAFETY: passed on to the caller; drivers call `run` only as a thread of a simulated launch.
        unsafe {
            self.enqueue(
                &shape,
                name,
                push,
                #[cfg(feature = "sim")]
                &|| K::call(&args),
            )
        }
    }

    /// Checks and enqueues a launch. This function is compiled once; each kernel adds only a thin call of it.
    ///
    /// # Safety
    /// Like [`launch_sized`](Self::launch_sized). `push` appends the kernel's arguments, and `run` calls its function.
    unsafe fn enqueue(
        &self,
        shape: &LaunchShape,
        name: &dyn Fn() -> String,
        push: &dyn Fn(&mut Params),
        #[cfg(feature = "sim")] run: &dyn Fn(),
    ) -> Result<()> {
        let &LaunchShape { num_blocks, threads_per_block, max_threads, family, .. } = shape;
        let &LaunchShape { shared_bytes, max_shared_bytes, .. } = shape;
        if num_blocks == 0 {
            return Ok(());
        }
        let name = name();
        let refuse = |reason: String| {
            let (grid, block) = (num_blocks, threads_per_block);
            Err(Error::InvalidLaunch { kernel: name.clone(), grid, block, reason })
        };
        if num_blocks > MAX_BLOCKS {
            return refuse(format!("at most {MAX_BLOCKS} blocks"));
        }
        if threads_per_block == 0 {
            return refuse("the kernel declares no block size: use launch_sized".into());
        }
        let max_threads = if max_threads == 0 { 1024 } else { max_threads.min(1024) };
        if threads_per_block > max_threads {
            return refuse(format!("at most {max_threads} threads in a block"));
        }
        let max_shared = self.gpu().info().max_shared_bytes;
        if max_shared_bytes > max_shared {
            return refuse(format!(
                "needs {max_shared_bytes} bytes of shared memory, the device has {max_shared}"
            ));
        }
        if shared_bytes > max_shared_bytes {
            return refuse(format!("at most {max_shared_bytes} bytes of shared memory"));
        }
        // The simulator can run any instance; a GPU has those that are compiled. A kernel that lists none is not for a GPU yet.
        #[cfg(feature = "sim")]
        if !shape.entries.is_empty() && !shape.entries.contains(&name.as_str()) {
            return Err(Error::MissingKernel { kernel: name, family });
        }
        let mut params = Params::default();
        push(&mut params);
        let launch = Launch {
            name: &name,
            family,
            blocks: num_blocks as u32,
            threads_per_block,
            shared_bytes,
            max_shared_bytes,
            params: &params,
            #[cfg(feature = "sim")]
            run,
        };
        self.gpu().require_kernel(KernelId { family, name: &name })?;
        tracing::trace!(
            kernel = name,
            blocks = num_blocks,
            threads = threads_per_block,
            shared = shared_bytes,
            "launch"
        );
        // SAFETY: passed on to the caller.
        unsafe { self.gpu().driver.launch(&launch, self.raw()) }
    }

    /// Enqueues a transfer of `bytes` bytes, which may be 0.
    ///
    /// # Safety
    /// That of [`Driver::transfer`](super::driver::Driver::transfer).
    pub(super) unsafe fn transfer(&self, transfer: Transfer<'_>, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: passed on to the caller.
        unsafe { self.gpu().driver.transfer(transfer, bytes, self.raw()) }
    }

    /// Sets every byte of a view, in stream order.
    ///
    /// # Safety
    /// The view must be of device memory that stays alive until the work is done.
    pub(crate) unsafe fn fill_bytes<T>(&self, to: SliceMut<'_, T>, byte: u8) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.transfer(Transfer::Fill { to: to.as_ptr() as u64, byte }, to.len() * size_of::<T>()) }
    }

    /// Copies `items` to a view; returns when the copy is done.
    ///
    /// # Errors
    /// [`Error::Shape`] if the lengths differ, and errors of the driver.
    ///
    /// # Safety
    /// The view is in live device memory, which no other work uses.
    pub(crate) unsafe fn upload<T: NoUninit>(&self, to: SliceMut<'_, T>, items: &[T]) -> Result<()> {
        check_len("items copied to device memory", to.len(), items.len())?;
        if items.is_empty() {
            return Ok(());
        }
        let copy = Transfer::ToDevice { to: to.as_ptr() as u64, from: items.as_ptr().cast() };
        // SAFETY: passed on to the caller; the copy is waited for while `items` is borrowed.
        unsafe { self.transfer(copy, size_of_val(items)) }?;
        self.synchronize()
    }

    /// Copies a view to another of the same length, in stream order.
    ///
    /// # Safety
    /// Like [`fill_bytes`](Self::fill_bytes), for both views.
    pub(crate) unsafe fn copy<T>(&self, to: SliceMut<'_, T>, from: Slice<'_, T>) -> Result<()> {
        debug_assert_eq!(to.len(), from.len());
        let copy = Transfer::OnDevice { to: to.as_ptr() as u64, from: from.as_ptr() as u64 };
        // SAFETY: passed on to the caller.
        unsafe { self.transfer(copy, to.len() * size_of::<T>()) }
    }

    /// Returns the items of a view, after all earlier work of the stream.
    ///
    /// # Safety
    /// The view is in device memory that earlier work has written.
    pub(crate) unsafe fn read<T: AnyBitPattern>(&self, from: Slice<'_, T>) -> Result<Vec<T>> {
        let mut items = crate::memory::vec_with_capacity(from.len(), "a copy of device memory")?;
        // SAFETY: passed on to the caller.
        unsafe { self.read_to(from, &mut items) }?;
        Ok(items)
    }

    /// Appends the items of a view to `items`, which has the capacity, after all earlier work of the stream.
    ///
    /// # Safety
    /// The view is in device memory that earlier work has written.
    pub(super) unsafe fn read_to<T: AnyBitPattern>(
        &self,
        from: Slice<'_, T>,
        items: &mut Vec<T>,
    ) -> Result<()> {
        if from.is_empty() {
            return Ok(());
        }
        let to = &mut items.spare_capacity_mut()[..from.len()];
        let copy = Transfer::ToHost { to: to.as_mut_ptr().cast(), from: from.as_ptr() as u64 };
        // SAFETY: the copy is waited for, and all bits are a valid item; the rest is passed on to the caller.
        unsafe {
            self.transfer(copy, size_of_val(to))?;
            self.synchronize()?;
            items.set_len(items.len() + from.len());
        }
        Ok(())
    }

    /// Enqueues a copy of a view to host memory of the same length. Does not wait if the host memory is pinned.
    ///
    /// # Safety
    /// Both stay alive, and nothing reads the items, until the work is done.
    pub(crate) unsafe fn start_reading<T: AnyBitPattern>(
        &self,
        from: Slice<'_, T>,
        to: &mut [T],
    ) -> Result<()> {
        debug_assert_eq!(from.len(), to.len());
        let copy = Transfer::ToHost { to: to.as_mut_ptr().cast(), from: from.as_ptr() as u64 };
        // SAFETY: passed on to the caller.
        unsafe { self.transfer(copy, size_of_val(to)) }
    }

    /// Enqueues a copy of pinned memory to a view of the same size, without waiting.
    ///
    /// # Safety
    /// Both stay alive, and the bytes do not change, until the work is done. The view is in device memory that no other
    /// work uses.
    pub(crate) unsafe fn start_writing<T>(&self, to: SliceMut<'_, T>, bytes: &[u8]) -> Result<()> {
        debug_assert_eq!(to.len() * size_of::<T>(), bytes.len());
        let copy = Transfer::ToDevice { to: to.as_ptr() as u64, from: bytes.as_ptr() };
        // SAFETY: passed on to the caller.
        unsafe { self.transfer(copy, bytes.len()) }
    }

    pub(super) fn raw(&self) -> RawStream {
        self.handle.raw
    }

    /// Returns true if both are the same stream.
    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.handle, &other.handle)
    }

    /// Makes later work wait for all work enqueued so far on another stream. Work of the same stream is ordered anyway.
    ///
    /// # Errors
    /// Like [`wait`](Self::wait).
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        if self.same(other) {
            return Ok(());
        }
        let done = Event::new(other.gpu())?;
        other.record(&done)?;
        self.wait(&done)
    }

    /// Returns the second stream of [`fork`](Self::fork).
    fn side(&self) -> Result<&SideStream> {
        let gpu = self.gpu();
        self.handle.side.get_or_try_init(|| {
            Ok(SideStream { stream: Self::new(gpu)?, forked: Event::new(gpu)?, done: Event::new(gpu)? })
        })
    }

    /// Enqueues work on this stream and concurrent work on a second stream, both after all earlier work. Later work
    /// waits for both.
    pub(crate) fn fork<A, B>(
        &self,
        here: impl FnOnce(&Self) -> Result<A>,
        beside: impl FnOnce(&Self) -> Result<B>,
    ) -> Result<(A, B)> {
        let side = self.side()?;
        self.record(&side.forked)?;
        side.stream.wait(&side.forked)?;
        let other = beside(&side.stream);
        let own = here(self);
        // Also after an error: later work may use the same memory.
        let joined = side.stream.record(&side.done).and_then(|()| self.wait(&side.done));
        joined.or_else(|_| side.stream.synchronize())?;
        Ok((own?, other?))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Owner::Handle = self.owner {
            self.gpu.driver.destroy_stream(self.raw);
        }
    }
}
