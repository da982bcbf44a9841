//! Where work runs: devices, streams, events, buffers and launches.
//!
//! | concept | type |
//! |---|---|
//! | a CPU or a GPU, by name or the best one | [`Device`] |
//! | a GPU, with memory and kernels | [`Gpu`] |
//! | an order of work on a GPU | [`Stream`], [`Event`] |
//! | memory | [`Buffer`], [`PinnedBuffer`], [`Workspace`] |
//!
//! Work that needs a GPU takes a [`Gpu`], which a [`Device`] gives where it is one. Behind a `Gpu` is a driver: CUDA through
//! `cust`, or the simulator. Everything is `Send` and `Sync`, and nothing is global: several devices can be used at once.

mod buffer;
#[cfg(feature = "cuda")]
mod cuda;
mod driver;
mod event;
mod gpu;
mod peers;
mod pinned;
pub(crate) mod ptx;
#[cfg(feature = "sim")]
mod sim;
mod staging;
mod stream;
mod watch;
mod workspace;

pub use buffer::Buffer;
pub use driver::DeviceInfo;
pub use event::Event;
pub use gpu::Gpu;
pub use pinned::PinnedBuffer;
pub use ptx::embedded_kernels;
#[cfg(feature = "sim")]
pub use sim::{Schedule, SimOptions};
pub(crate) use staging::Staging;
pub use stream::Stream;
pub use watch::{FaultCall, FaultPlan, MemoryUse};
pub use workspace::{Layout, Region, Temp, Workspace};

use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// Where an index lives and its queries run. A handle: clones are the same device.
#[derive(Clone, Debug)]
pub struct Device {
    kind: Kind,
    reason: Arc<str>,
}

#[derive(Clone, Debug)]
enum Kind {
    Cpu,
    Gpu(Gpu),
}

impl Device {
    /// This machine's CPU: rayon, on the threads of the current pool.
    pub fn cpu() -> Self {
        Self { kind: Kind::Cpu, reason: "asked for".into() }
    }

    /// The first CUDA device, or the CPU where there is no driver or no device; [`reason`](Self::reason) says which.
    ///
    /// # Errors
    /// A device that is there and cannot be used is an error, not a reason to take the CPU.
    pub fn best() -> Result<Self> {
        match Self::cuda(0) {
            Ok(device) => Ok(Self { reason: "the first CUDA device".into(), ..device }),
            Err(why @ (Error::NoDevice | Error::DriverMissing { .. } | Error::CudaDisabled)) => {
                let why = match why {
                    Error::NoDevice => "the CUDA driver finds no device",
                    Error::DriverMissing { .. } => "there is no CUDA driver",
                    _ => "this build has no CUDA support",
                };
                Ok(Self { kind: Kind::Cpu, reason: why.into() })
            }
            Err(other) => Err(other),
        }
    }

    /// CUDA device `ordinal`, counted from 0 as the driver does (`CUDA_VISIBLE_DEVICES` applies).
    ///
    /// # Errors
    /// [`Error::DriverMissing`], [`Error::NoDevice`], [`Error::NoSuchDevice`], [`Error::CudaDisabled`], or the driver's.
    pub fn cuda(ordinal: usize) -> Result<Self> {
        #[cfg(feature = "cuda")]
        {
            let driver = cuda::CudaDriver::open(ordinal)?;
            Ok(Self::from_gpu(Gpu::new(Arc::new(driver))?))
        }
        #[cfg(not(feature = "cuda"))]
        {
            let _ = ordinal;
            Err(Error::CudaDisabled)
        }
    }

    /// A device for a handle of a GPU, such as one with a memory limit.
    pub fn from_gpu(gpu: Gpu) -> Self {
        Self { kind: Kind::Gpu(gpu), reason: "asked for".into() }
    }

    /// A simulated device of its own, on which kernels run on this CPU and are checked. Slow: for small cases, for tests
    /// and for debugging.
    #[cfg(feature = "sim")]
    pub fn sim(options: SimOptions) -> Result<Self> {
        Ok(Self::from_gpu(Gpu::new(Arc::new(sim::SimDriver::new(options)))?))
    }

    /// A simulated device with the schedule that the environment asks for (`SIM_SEED`, `SIM_ORDER`, `SIM_CHECKS`).
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

    /// The device of that name: `best`, `cpu`, `cuda`, `cuda:N`, or `sim` for a simulated one.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`], and those of [`best`](Self::best) and [`cuda`](Self::cuda).
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

    /// The device with a text that says why it was chosen; [`Stats`](crate::Stats) show it.
    pub fn with_reason(self, reason: String) -> Self {
        Self { reason: reason.into(), ..self }
    }

    /// The CUDA devices of this machine, in the driver's order.
    ///
    /// # Errors
    /// As [`cuda`](Self::cuda).
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

    /// True if this is the CPU.
    pub fn is_cpu(&self) -> bool {
        matches!(self.kind, Kind::Cpu)
    }

    /// The GPU, if this is one.
    pub fn gpu(&self) -> Option<&Gpu> {
        match &self.kind {
            Kind::Cpu => None,
            Kind::Gpu(gpu) => Some(gpu),
        }
    }

    /// Why this device was taken.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Cpu => write!(f, "cpu ({} threads)", rayon::current_num_threads()),
            Kind::Gpu(gpu) => write!(f, "{}", gpu.info()),
        }
    }
}
