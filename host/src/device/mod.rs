//! Devices, streams, events, buffers and launches.
//!
//! | concept | type |
//! |---|---|
//! | the CPU or a GPU, chosen by name or automatically | [`Device`] |
//! | a GPU with its memory and kernels | [`Gpu`] |
//! | an in-order queue of GPU work | [`Stream`], [`Event`] |
//! | memory | [`Buffer`], [`PinnedBuffer`], [`Workspace`] |
//! | all of these of the crate `cust` | `cust_bridge`, with the feature `cust` |
//!
//! Calls that need a GPU take a [`Gpu`], which [`Device::gpu`] returns. Behind a `Gpu` is a driver: CUDA's, or the
//! simulator. Everything is `Send` and `Sync`, and a program can use several devices at once.
//!
//! # Copies
//! A copy of 8 MiB or more between pageable host memory and a GPU passes through page-locked memory, on up to 16 threads, no more
//! than the CPU has. Copies at the same time share the threads of the CPU. The process keeps a pool of 64 threads for later copies. A copy
//! takes 2 MiB of page-locked memory for each thread of the CPU, at most 32 MiB. The device keeps this memory of up to four copies for later
//! ones. No memory limit counts it.
//! The memory of a [`PinnedBuffer`], or page-locked memory of another library, is copied directly.
//!
//! # Repeated calls
//! The driver needs 0.1 to 0.3 ms to allocate or free an array of 130 to 270 MB, and 5 ms to free 8 GB. A program that builds or joins
//! again and again saves this time: it keeps workspaces and buffers, for the calls `…_on` and `rebuild_on`, or it calls
//! [`Gpu::keep_memory`] once.
//!
//! # Your own kernels
//! A kernel is a function with `#[kernel]` of the crate `cuda_std`. Its type launches it, so the compiler checks the
//! arguments. This one runs in the simulator; on a GPU, [`Gpu::load_module`] first loads the PTX that `cuda_builder` makes
//! of the kernel crate.
//!
//! ```
//! use cuda_std::prelude::*;
//! use kauri::Device;
//! use kauri::device::{Buffer, Stream};
//!
//! /// Samples, and the factor that scales them.
//! #[derive(Clone, Copy, KernelArgs)]
//! pub struct Samples<'a, T> {
//!     pub values: Slice<'a, T>,
//!     pub factor: f64,
//! }
//!
//! /// Scales one sample a thread.
//! ///
//! /// # Safety
//! /// `scaled` is at most as long as the samples.
//! #[kernel(block = 128)]
//! #[instances(T = [f32, u32])]
//! pub unsafe fn scale<T: Copy + Into<f64> + 'static>(samples: Samples<'_, T>, scaled: SliceMut<f64>) {
//!     let i = thread::index_1d() as usize;
//!     if i < scaled.len() {
//!         scaled.store(i, samples.factor * samples.values.load(i).into());
//!     }
//! }
//!
//! # if !cfg!(feature = "sim") {
//! #     return Ok(());
//! # }
//! let device = Device::from_name("sim")?;
//! let gpu = device.gpu().expect("the simulator is a GPU");
//! let stream = Stream::new(gpu)?;
//! let values = Buffer::from_slice(&stream, &[1.0f32, 2.0, 3.0], "values")?;
//! let mut scaled = Buffer::uninitialized(gpu, 3, "scaled values")?;
//! let samples = Samples { values: values.slice(), factor: 2.0 };
//! // SAFETY: both buffers have three items, and live until the result is read.
//! unsafe { stream.launch_items::<scale<f32>>(3, (samples, scaled.slice_mut()))? };
//! assert_eq!(scaled.to_vec(&stream)?, [2.0, 4.0, 6.0]);
//! # Ok::<(), kauri::Error>(())
//! ```

#![cfg_attr(
    not(any(feature = "cuda", feature = "sim")),
    allow(dead_code, reason = "a build without GPUs has no driver")
)]

mod buffer;
#[cfg(feature = "cuda")]
mod cuda;
mod driver;
mod event;
mod family;
mod gpu;
mod growable_buffer;
mod images;
mod instrumented;
mod peers;
mod pieces;
mod pinned;
mod readers;
#[cfg(feature = "sim")]
mod sim;
mod stream;
mod workspace;

pub use buffer::Buffer;
#[cfg(feature = "cust")]
pub use cuda::cust_bridge;
pub use driver::DeviceInfo;
pub use event::Event;
pub use family::Family;
pub use gpu::Gpu;
pub(crate) use growable_buffer::GrowableBuffer;
pub use images::embedded_kernels;
pub use instrumented::{FaultCall, FaultPlan, MemoryUse};
pub(crate) use pieces::LARGE_BYTES;
pub use pinned::PinnedBuffer;
pub(crate) use readers::Readers;
#[cfg(feature = "sim")]
pub use sim::{Schedule, SimOptions};
pub use stream::Stream;
pub use workspace::{Layout, Region, Temp, Workspace};

/// False in a build without GPUs.
pub(crate) const HAS_GPUS: bool = cfg!(any(feature = "cuda", feature = "sim"));

/// Returns the GPU of a device, if it is one. In a build without GPUs this is the constant `None`, so that the code for GPUs is not
/// compiled.
macro_rules! gpu_of {
    ($device:expr) => {
        if $crate::device::HAS_GPUS { $device.gpu() } else { None }
    };
}
pub(crate) use gpu_of;

/// Most devices of a list for one call.
pub(crate) const MAX_DEVICES: usize = 8;

/// Returns the GPUs of a list of devices for one call.
///
/// # Errors
/// [`Error::Shape`] if the list is empty, [`Error::TooManyItems`] if it has more than [`MAX_DEVICES`], [`Error::NotOnGpu`] if a device is
/// the CPU, [`Error::CudaDisabled`].
pub(crate) fn gpus_of(what: &'static str, devices: &[Device]) -> Result<Vec<Gpu>> {
    if devices.is_empty() {
        check_len(what, 1, 0)?;
    }
    check_count(what, devices.len() as u64, MAX_DEVICES as u64)?;
    let gpus = devices.iter().map(|device| device.gpu().cloned().ok_or(Error::NotOnGpu));
    let gpus = gpus.collect::<Result<Vec<_>>>()?;
    if HAS_GPUS { Ok(gpus) } else { Err(Error::CudaDisabled) }
}

use crate::error::{Error, Result, check_count, check_len};
use std::fmt;
use std::sync::Arc;

/// The device that holds an index and runs its queries: the CPU, a GPU, or a simulated GPU. A cheap handle: clones
/// refer to the same device.
///
/// ```
/// use kauri::Device;
///
/// let cpu = Device::cpu();
/// assert!(cpu.is_cpu());
/// let best = Device::best()?;
/// println!("{best}: {}", best.reason());
/// let same = Device::from_name("cpu")?;
/// assert!(same.gpu().is_none());
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Device {
    /// `None` for the CPU.
    gpu: Option<Gpu>,
    reason: Arc<str>,
}

/// The form in which a build has kernels for a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KernelForm {
    /// Machine code: the driver loads it as it is, in less than a millisecond for most kernels.
    MachineCode,
    /// PTX: the driver compiles it at the first use, unless the driver's cache has it from an earlier run. Takes up to a second for a
    /// kernel.
    Ptx,
}

impl Device {
    /// Returns this machine's CPU. Work runs on the threads of the current rayon pool.
    pub fn cpu() -> Self {
        Self { gpu: None, reason: "requested".into() }
    }

    /// Returns the first CUDA device, or the CPU if there is no driver or no device. [`reason`](Self::reason) tells
    /// which.
    ///
    /// # Errors
    /// A device that exists but cannot be used is an error; the CPU does not replace it.
    pub fn best() -> Result<Self> {
        let reason = match Self::cuda(0) {
            Ok(device) => return Ok(device.with_reason("the first CUDA device".into())),
            Err(Error::NoDevice) => "the CUDA driver finds no device",
            Err(Error::DriverMissing { .. }) => "there is no CUDA driver",
            Err(Error::CudaDisabled) => "this build has no CUDA support",
            Err(other) => return Err(other),
        };
        Ok(Self::cpu().with_reason(reason.into()))
    }

    /// Opens CUDA device `ordinal`, counted from 0 as by the driver (`CUDA_VISIBLE_DEVICES` applies).
    ///
    /// # Errors
    /// [`Error::DriverMissing`], [`Error::NoDevice`], [`Error::NoSuchDevice`], [`Error::CudaDisabled`], and errors of
    /// the driver.
    pub fn cuda(ordinal: usize) -> Result<Self> {
        #[cfg(feature = "cuda")]
        {
            let driver = cuda::CudaDriver::open(ordinal)?;
            images::warn_if_none();
            Ok(Self::from_gpu(Gpu::new(Arc::new(driver))?))
        }
        #[cfg(not(feature = "cuda"))]
        {
            let _ = ordinal;
            Err(Error::CudaDisabled)
        }
    }

    /// Wraps a handle of a GPU, such as one with a memory limit.
    pub fn from_gpu(gpu: Gpu) -> Self {
        Self { gpu: Some(gpu), reason: "requested".into() }
    }

    /// Creates a simulated GPU, whose kernels run on this CPU and are checked. It is slow: for small cases, tests and
    /// debugging.
    #[cfg(feature = "sim")]
    pub fn sim(options: SimOptions) -> Result<Self> {
        Ok(Self::from_gpu(Gpu::new(Arc::new(sim::SimDriver::new(options)))?))
    }

    /// Creates a simulated GPU with the schedule of the environment variables `SIM_SEED`, `SIM_ORDER` and `SIM_CHECKS`.
    fn sim_from_env() -> Result<Self> {
        #[cfg(feature = "sim")]
        {
            let schedule = Schedule::from_env().map_err(|expected| Error::SimEnvironment { expected })?;
            Self::sim(SimOptions { schedule, ..SimOptions::default() })
        }
        #[cfg(not(feature = "sim"))]
        {
            Err(Error::SimDisabled)
        }
    }

    /// Opens the device of a name: `best`, `cpu`, `cuda`, `cuda:N`, or `sim` for a simulated one.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`], and the errors of [`best`](Self::best) and [`cuda`](Self::cuda).
    pub fn from_name(name: &str) -> Result<Self> {
        let unknown = || Error::UnknownDevice { name: name.into() };
        match name {
            "best" => Self::best(),
            "cpu" => Ok(Self::cpu()),
            "cuda" => Self::cuda(0),
            "sim" => Self::sim_from_env(),
            _ => {
                let ordinal = name.strip_prefix("cuda:").ok_or_else(unknown)?;
                Self::cuda(ordinal.parse().map_err(|_| unknown())?)
            }
        }
    }

    /// Returns the device with another [`reason`](Self::reason), which [`Stats`](crate::Stats) contain.
    pub fn with_reason(self, reason: String) -> Self {
        Self { reason: reason.into(), ..self }
    }

    /// Returns the CUDA devices of this machine, in the driver's order.
    ///
    /// # Errors
    /// Like [`cuda`](Self::cuda).
    pub fn list_cuda() -> Result<Vec<DeviceInfo>> {
        #[cfg(feature = "cuda")]
        {
            cuda::list()
        }
        #[cfg(not(feature = "cuda"))]
        {
            Err(Error::CudaDisabled)
        }
    }

    /// Returns true if this is the CPU.
    pub fn is_cpu(&self) -> bool {
        self.gpu.is_none()
    }

    /// Returns the GPU, if this is one.
    pub fn gpu(&self) -> Option<&Gpu> {
        self.gpu.as_ref()
    }

    /// Loads the kernels of these operations now, so that first calls find them loaded. Machine code takes milliseconds; PTX takes up to a
    /// second for each kernel that the driver's cache does not have, which [`kernel_form`](Self::kernel_form) tells apart. Does nothing on the
    /// CPU and on a simulated GPU.
    ///
    /// ```
    /// use kauri::Device;
    /// use kauri::device::Family;
    ///
    /// Device::cpu().prepare(&[Family::KdTree, Family::Joins])?;
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoPtx`] if this build has no kernels for the device; [`Error::BadModule`]; errors of the driver.
    pub fn prepare(&self, families: &[Family]) -> Result<()> {
        self.gpu.as_ref().map_or(Ok(()), |gpu| gpu.prepare(families))
    }

    /// Returns the form in which this device gets the kernels of a family: [`KernelForm::MachineCode`] if it has all of them as machine code.
    /// `None` for the CPU and a simulated GPU, which load none.
    ///
    /// # Errors
    /// [`Error::NoPtx`] if this build has no kernels for the device.
    pub fn kernel_form(&self, family: Family) -> Result<Option<KernelForm>> {
        self.gpu.as_ref().map_or(Ok(None), |gpu| gpu.kernel_form(family))
    }

    /// Returns the reason for the choice of this device.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.gpu {
            None => write!(f, "cpu ({} threads)", rayon::current_num_threads()),
            Some(gpu) => write!(f, "{}", gpu.info()),
        }
    }
}
