//! Conversions from and to the types of the crate [`cust`](https://docs.rs/cust), without a copy (feature `cust`).
//!
//! | `cust` | to kauri | from kauri |
//! |---|---|---|
//! | `Context` | [`Device::from_cust`] | [`Gpu::cust_context`] |
//! | `Stream` | [`Stream::from_cust`], shared | [`Stream::as_cust`], borrowed |
//! | `Event` | [`Event::from_cust`], moved | [`Event::as_cust`], borrowed; [`Event::into_cust`], moved |
//! | `DeviceBuffer` | [`Buffer::from_cust`], moved | [`Buffer::as_cust`], borrowed; [`Buffer::into_cust`], moved |
//! | `DeviceSlice` | [`Buffer::borrow_cust`], borrowed | [`Buffer::as_cust`], to which `DeviceBuffer` dereferences |
//! | `Module`, `Function` | | [`kernel_image`], [`KernelImage::function`] |
//!
//! Both libraries have one trait of items, `cust_core::DeviceCopy`. A mutable output of kauri is a [`Buffer`]: move a
//! `DeviceBuffer` in, and out again after the call.
//!
//! # Ownership
//! - **Contexts.** Both libraries use the primary context of a device, which counts its users. A [`Gpu`] keeps it alive, also for
//!   the streams, events and buffers of kauri. The types of `cust` do not: keep a `Context`, or the [`Gpu`], longer than them.
//!   `cust` works in the context that is current on the thread. [`Gpu::cust_context`] makes it current, and so does each call of
//!   kauri with its device: with several devices, make the right one current before calls of `cust`.
//! - **Moved** values belong to the other library, which destroys or frees them. [`Gpu::memory_use`] counts the buffers that
//!   belong to kauri.
//! - **Borrowed** values must outlive the borrow, which the compiler checks, and the work that uses them: finish or order it
//!   before the owner frees memory by `DeviceBuffer::drop_async`. The ordinary drops of both libraries wait for the device. Memory that
//!   was allocated after [`Gpu::keep_memory`] is copied for `cust`, whose drops would not wait for it.
//! - **Order.** Work of one stream is ordered, whichever library enqueues it. Streams that [`Stream::new`] and `cust` create are
//!   ordered with CUDA's default stream, so also with the synchronous copies of `cust`.
//!
//! # Linking
//! The build script of `cust` searches a CUDA folder. Without CUDA, set the environment variable `CUDA_LIBRARY_PATH` as
//! the page of the crate `kauri-cuda-trampolines` says; the symbols of the driver come from that crate.
//!
//! ```no_run
//! use kauri::Device;
//! use kauri::device::{Buffer, Stream};
//! use kauri::primitives::generate;
//! use std::sync::Arc;
//!
//! // A context, a stream and memory of cust.
//! let context = cust::quick_init()?;
//! let stream = Arc::new(cust::stream::Stream::new(cust::stream::StreamFlags::DEFAULT, None)?);
//! let numbers = cust::memory::DeviceBuffer::<u32>::zeroed(100)?;
//!
//! // kauri writes the memory on the stream.
//! let device = Device::from_cust(&context)?;
//! let gpu = device.gpu().expect("a context belongs to a GPU");
//! let mut buffer = Buffer::from_cust(gpu, numbers)?;
//! generate::iota(&Stream::from_cust(gpu, stream)?, 0, 3, &mut buffer)?;
//!
//! // cust reads it.
//! let numbers = buffer.into_cust()?;
//! assert_eq!(numbers.as_host_vec()?[33], 99);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// The linker takes the driver's symbols from this crate.
use cuda_trampolines as _;

use super::kept::is_of_pool;
use super::{CudaDriver, init, raw};
use crate::device::driver::{RawEvent, RawStream};
use crate::device::images::{self, KernelId};
use crate::device::stream::Owner;
use crate::device::{Buffer, Device, Event, Gpu, Stream};
use crate::error::{Error, Result};
use cuda_std::kernel::Kernel;
use cust::context::Context;
use cust::error::CudaError;
use cust::function::Function;
use cust::memory::{CopyDestination, DeviceBuffer, DevicePointer, DeviceSlice};
use cust::module::Module;
use cust_core::DeviceCopy;
use std::any::Any;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::Arc;

/// A value of `cust` that kauri owns. It dereferences to the value, and does not destroy it.
#[derive(Debug)]
pub struct CustRef<'a, T> {
    value: ManuallyDrop<T>,
    owner: PhantomData<&'a T>,
}

impl<T> CustRef<'_, T> {
    fn new(value: T) -> Self {
        Self { value: ManuallyDrop::new(value), owner: PhantomData }
    }
}

impl<T> Deref for CustRef<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A kauri buffer over memory that `cust` owns. It dereferences to the buffer, and does not free the memory.
#[derive(Debug)]
pub struct BufferRef<'a, T> {
    buffer: Buffer<T>,
    owner: PhantomData<&'a T>,
}

impl<T> Deref for BufferRef<'_, T> {
    type Target = Buffer<T>;

    fn deref(&self) -> &Buffer<T> {
        &self.buffer
    }
}

/// The image and the launch of one of kauri's kernels, from [`kernel_image`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KernelImage {
    /// The PTX of the kernel, for `Module::from_ptx`.
    pub ptx: String,
    /// The machine code of the kernel for this device, for `Module::from_cubin`, if the build has it: it loads faster.
    pub machine_code: Option<Vec<u8>>,
    /// The family's name.
    pub family: &'static str,
    /// The name of the kernel in the PTX.
    pub entry: String,
    /// The threads of a block; 0 if the kernel does not declare the number.
    pub block_threads: u32,
    /// The bytes of dynamic shared memory of a launch.
    pub shared_bytes: u32,
}

/// Returns what a launch of kernel `K` by `cust` needs on this device.
///
/// The parameters of the launch are scalars: a `Slice` or `SliceMut` is the address of its first item and its number of items
/// (`DevicePointer` and `usize`), a number is itself, a struct with `#[derive(KernelArgs)]` is its fields in order.
///
/// # Errors
/// [`Error::NotCuda`], [`Error::NoPtx`], and errors of reading the PTX.
pub fn kernel_image<K: Kernel>(gpu: &Gpu) -> Result<KernelImage> {
    driver(gpu)?;
    let entry = K::name();
    let images = images::find(KernelId { family: K::FAMILY, name: &entry }, gpu.info().capability)?;
    Ok(KernelImage {
        ptx: String::from_utf8_lossy(&images.ptx.read()?).into_owned(),
        machine_code: images.machine_code.map(|image| image.read()).transpose()?,
        family: K::FAMILY,
        entry,
        block_threads: K::BLOCK,
        shared_bytes: K::SHARED_BYTES as u32,
    })
}

impl KernelImage {
    /// Returns the kernel's function in a module that was loaded from [`ptx`](Self::ptx), and allows it to use
    /// [`shared_bytes`](Self::shared_bytes) of shared memory, for which `cust` has no call.
    ///
    /// # Errors
    /// [`Error::MissingKernel`], and errors of the driver.
    pub fn function<'m>(&self, module: &'m Module) -> Result<Function<'m>> {
        let function = module.get_function(&self.entry).map_err(|error| match error {
            CudaError::NotFound => Error::MissingKernel { kernel: self.entry.clone(), family: self.family },
            other => from_cust("cuModuleGetFunction")(other),
        })?;
        // SAFETY: a function of a loaded module.
        let code = unsafe {
            let shared_bytes = self.shared_bytes as i32;
            raw::cuFuncSetAttribute(function.to_raw().cast(), raw::MAX_DYNAMIC_SHARED_SIZE, shared_bytes)
        };
        raw::check("cuFuncSetAttribute", code)?;
        Ok(function)
    }
}

impl Device {
    /// Opens the device of a context of `cust`. Each call loads kernels of its own: call it once, and clone the result, which
    /// keeps the context alive.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if the context is not the primary one of its device, and errors of the driver.
    pub fn from_cust(context: &Context) -> Result<Self> {
        let (mut device, mut popped) = (0, null_mut());
        // SAFETY: a live context, which is current for one call; writes an integer and a handle.
        let [found, popped] = unsafe {
            raw::check("cuCtxPushCurrent", raw::cuCtxPushCurrent_v2(context.as_raw().cast()))?;
            [raw::cuCtxGetDevice(&mut device), raw::cuCtxPopCurrent_v2(&mut popped)]
        };
        raw::check("cuCtxGetDevice", found)?;
        raw::check("cuCtxPopCurrent", popped)?;
        let driver = CudaDriver::open(ordinal(device)?)?;
        if driver.context.raw != context.as_raw().cast() {
            return Err(other_context(&driver.info.id));
        }
        Ok(Self::from_gpu(Gpu::new(Arc::new(driver))?))
    }
}

impl Gpu {
    /// Returns the device's primary context for `cust`, and makes it current on this thread, as the calls of `cust` need it.
    /// Call it once on each thread that uses `cust`.
    ///
    /// # Errors
    /// [`Error::NotCuda`], and errors of the driver.
    pub fn cust_context(&self) -> Result<Context> {
        let driver = driver(self)?;
        driver.enter()?;
        let ordinal = ordinal(driver.context.device)? as u32;
        let device = cust::device::Device::get_device(ordinal).map_err(from_cust("cuDeviceGet"))?;
        Context::new(device).map_err(from_cust("cuDevicePrimaryCtxRetain"))
    }
}

impl Stream {
    /// Uses a stream of `cust`. The result, its clones, and what is built with it keep the stream alive.
    ///
    /// # Errors
    /// [`Error::NotCuda`]; [`Error::WrongDevice`] if the stream does not belong to the primary context of `gpu`; errors of the
    /// driver.
    pub fn from_cust(gpu: &Gpu, stream: Arc<cust::stream::Stream>) -> Result<Self> {
        let driver = driver(gpu)?;
        let raw_stream = stream.as_inner().cast::<c_void>();
        let mut context = null_mut();
        // SAFETY: a live stream; writes one handle.
        driver.call("cuStreamGetCtx", || unsafe { raw::cuStreamGetCtx(raw_stream, &mut context) })?;
        if context != driver.context.raw {
            return Err(other_context(&driver.info.id));
        }
        Ok(Self::of(gpu, RawStream(raw_stream as usize), Owner::Shared(stream)))
    }

    /// Borrows the stream for `cust`.
    ///
    /// # Errors
    /// [`Error::NotCuda`].
    pub fn as_cust(&self) -> Result<CustRef<'_, cust::stream::Stream>> {
        driver(self.gpu())?;
        // SAFETY: the stream lives as long as the result.
        Ok(CustRef::new(unsafe { with_handle(self.raw().0) }))
    }
}

impl Event {
    /// Takes an event of `cust` that was created in the primary context of `gpu`. One without timing serves to wait.
    ///
    /// # Errors
    /// [`Error::NotCuda`]; the event is destroyed then.
    pub fn from_cust(gpu: &Gpu, event: cust::event::Event) -> Result<Self> {
        driver(gpu)?;
        Ok(Self::from_raw(gpu, RawEvent(into_handle(event))))
    }

    /// Borrows the event for `cust`.
    ///
    /// # Errors
    /// [`Error::NotCuda`].
    pub fn as_cust(&self) -> Result<CustRef<'_, cust::event::Event>> {
        driver(self.gpu())?;
        // SAFETY: the event lives as long as the result.
        Ok(CustRef::new(unsafe { with_handle(self.raw.0) }))
    }

    /// Gives the event to `cust`, such as for `Stream::wait_event`, which takes it.
    ///
    /// # Errors
    /// [`Error::NotCuda`].
    pub fn into_cust(self) -> Result<cust::event::Event> {
        driver(self.gpu())?;
        // SAFETY: the event has one owner, the result.
        Ok(unsafe { with_handle(self.into_raw().0) })
    }
}

impl<T: DeviceCopy> Buffer<T> {
    /// Takes the memory of a buffer of `cust`.
    ///
    /// # Errors
    /// [`Error::NotCuda`]; [`Error::WrongDevice`] if the memory belongs to another device than `gpu`; [`Error::Unaligned`];
    /// errors of the driver. The memory is freed then.
    pub fn from_cust(gpu: &Gpu, buffer: DeviceBuffer<T>) -> Result<Self> {
        // SAFETY: the result takes the ownership of the memory next.
        let taken = unsafe { borrowed(gpu, &buffer) }?.adopt();
        let _ = ManuallyDrop::new(buffer);
        Ok(taken)
    }

    /// Borrows memory of `cust`: a `DeviceSlice`, to which a `DeviceBuffer` dereferences, that begins as an allocation does.
    ///
    /// # Errors
    /// [`Error::NotCuda`]; [`Error::WrongDevice`] if the memory belongs to another device than `gpu`; [`Error::Unaligned`]; errors of
    /// the driver.
    pub fn borrow_cust<'a>(gpu: &Gpu, slice: &'a DeviceSlice<T>) -> Result<BufferRef<'a, T>> {
        // SAFETY: the slice stays borrowed while the result lives.
        Ok(BufferRef { buffer: unsafe { borrowed(gpu, slice) }?, owner: PhantomData })
    }

    /// Borrows the memory for `cust`.
    ///
    /// # Errors
    /// [`Error::NotCuda`].
    pub fn as_cust(&self) -> Result<CustRef<'_, DeviceBuffer<T>>> {
        driver(self.gpu())?;
        // SAFETY: the memory lives as long as the result, which does not free it.
        Ok(CustRef::new(unsafe {
            DeviceBuffer::from_raw_parts(DevicePointer::from_raw(self.as_raw()), self.len())
        }))
    }

    /// Gives the memory to `cust`.
    ///
    /// # Errors
    /// [`Error::NotCuda`], and [`Error::NotOwned`] for a buffer that borrows its memory. For memory that was allocated after
    /// [`Gpu::keep_memory`] also errors of a copy.
    pub fn into_cust(self) -> Result<DeviceBuffer<T>> {
        let driver = driver(self.gpu())?;
        driver.enter()?;
        if is_of_pool(self.as_raw()) {
            driver.wait_for_context()?;
            // SAFETY: the copy writes all items.
            let mut moved =
                unsafe { DeviceBuffer::uninitialized(self.len()) }.map_err(from_cust("cuMemAlloc"))?;
            moved.copy_from(&**self.as_cust()?).map_err(from_cust("cuMemcpyDtoD"))?;
            return Ok(moved);
        }
        let len = self.len();
        let address = DevicePointer::from_raw(self.into_raw()?);
        // SAFETY: the memory has one owner, the result; it comes from cuMemAlloc, and cust frees it by cuMemFree.
        Ok(unsafe { DeviceBuffer::from_raw_parts(address, len) })
    }
}

/// Returns a buffer over memory of `cust`.
///
/// # Safety
/// The memory outlives the result.
unsafe fn borrowed<T: DeviceCopy>(gpu: &Gpu, slice: &DeviceSlice<T>) -> Result<Buffer<T>> {
    let driver = driver(gpu)?;
    let address = slice.as_device_ptr().as_raw();
    if !slice.is_empty() {
        let mut owner = 0i32;
        // SAFETY: writes one integer.
        driver.call("cuPointerGetAttribute", || unsafe {
            raw::cuPointerGetAttribute((&raw mut owner).cast(), raw::POINTER_DEVICE_ORDINAL, address)
        })?;
        if owner as usize != ordinal(driver.context.device)? {
            let stream = driver.info.id.clone();
            return Err(Error::WrongDevice { buffer: format!("cuda:{owner}"), stream });
        }
    }
    // SAFETY: memory of this device, of which cust says that it is initialized; the rest is passed on to the caller.
    unsafe { Buffer::from_raw(gpu, address, slice.len()) }
}

fn driver(gpu: &Gpu) -> Result<&CudaDriver> {
    let not_cuda = || Error::NotCuda { device: gpu.info().id.clone() };
    (gpu.peer() as &dyn Any).downcast_ref().ok_or_else(not_cuda)
}

/// Returns the position of a device in the driver's list.
fn ordinal(device: i32) -> Result<usize> {
    let available = init()?;
    for ordinal in 0..available {
        let mut candidate = 0;
        // SAFETY: writes one integer.
        raw::check("cuDeviceGet", unsafe { raw::cuDeviceGet(&mut candidate, ordinal as i32) })?;
        if candidate == device {
            return Ok(ordinal);
        }
    }
    Err(Error::NoSuchDevice { ordinal: device as usize, available })
}

fn other_context(device: &str) -> Error {
    Error::WrongDevice { buffer: device.into(), stream: "another context".into() }
}

/// Converts an error of `cust`. Only its number is used: its text would call the driver.
fn from_cust(call: &'static str) -> impl Fn(CudaError) -> Error {
    move |error| raw::error(call, error as i32)
}

/// Returns a value of `cust` with a handle.
///
/// # Safety
/// `T` is a stream or an event of `cust`, newtypes of a handle for which it has no constructor, and the handle one of a live
/// object of this type.
unsafe fn with_handle<T>(handle: usize) -> T {
    const { assert!(size_of::<T>() == size_of::<usize>()) };
    // SAFETY: passed on to the caller.
    unsafe { std::mem::transmute_copy(&handle) }
}

/// Returns the handle of an event of `cust`, which has no getter for it, and does not destroy the event.
fn into_handle(event: cust::event::Event) -> usize {
    const { assert!(size_of::<cust::event::Event>() == size_of::<usize>()) };
    // SAFETY: the event is a newtype of the driver's handle.
    unsafe { std::mem::transmute_copy(&ManuallyDrop::new(event)) }
}
