//! The GPU of a comparison, by the driver: its architecture, and the resources that the driver gives a kernel.

use super::library::Launch;
use anyhow::{Context, Result, bail};
use cuda_lazy::driver as cuda;
use std::ffi::{CString, c_void};
use std::ptr::null_mut;

/// `CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR`, `…_COMPUTE_CAPABILITY_MAJOR` and `…_MINOR`.
const MAX_THREADS: i32 = 39;
const MAJOR: i32 = 75;
const MINOR: i32 = 76;

/// `CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES`, `…_LOCAL_SIZE_BYTES`, `…_NUM_REGS` and `…_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const SHARED_BYTES: i32 = 1;
const LOCAL_BYTES: i32 = 3;
const REGISTERS: i32 = 4;
const MAX_DYNAMIC_SHARED_BYTES: i32 = 8;

/// The resources of a kernel; `None` where they are not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) threads: Option<u32>,
    pub(super) registers: Option<u32>,
    /// Bytes of a thread: spills and arrays.
    pub(super) local: Option<u32>,
    /// Bytes of a block, static and dynamic.
    pub(super) shared: Option<u32>,
    /// Threads of full multiprocessors, of the most that they can hold.
    pub(super) occupancy: Option<f64>,
    pub(super) ptx_bytes: Option<usize>,
    pub(super) code_bytes: Option<usize>,
    /// Identifies the PTX.
    pub(super) hash: Option<u64>,
}

pub(super) struct Gpu {
    device: i32,
}

/// A module that is unloaded when dropped.
struct Module(*mut c_void);

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded once, unloaded once.
        unsafe { cuda::cuModuleUnload(self.0) };
    }
}

fn check(call: &str, code: i32) -> Result<()> {
    match code {
        0 => Ok(()),
        code => bail!("{call} returned {code}"),
    }
}

/// Returns the number of the GPU of a device's name; `None` for the CPU.
pub(super) fn ordinal(device: &str) -> Result<Option<u16>> {
    match device {
        "cpu" => Ok(None),
        "best" | "cuda" => Ok(Some(0)),
        _ => {
            let ordinal = device.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok());
            let ordinal = ordinal
                .with_context(|| format!("there is no device `{device}`, only best, cpu, cuda and cuda:N"));
            ordinal.map(Some)
        }
    }
}

impl Gpu {
    /// Opens the GPU of a device's name; `None` for the CPU, and for `best` without a GPU.
    pub(super) fn of(device: &str) -> Result<Option<Gpu>> {
        let Some(ordinal) = ordinal(device)? else { return Ok(None) };
        let (mut gpu, mut count) = (0, 0);
        // SAFETY: each call writes one number.
        let found = unsafe { cuda::cuInit(0) == 0 && cuda::cuDeviceGetCount(&mut count) == 0 };
        if !found || i32::from(ordinal) >= count {
            if device == "best" {
                return Ok(None);
            }
            bail!(
                "this machine has no device `{device}`: `--device cpu` measures without a GPU, `--prepare FOLDER` for another machine"
            );
        }
        // SAFETY: writes one number.
        check("cuDeviceGet", unsafe { cuda::cuDeviceGet(&mut gpu, ordinal.into()) })?;
        Ok(Some(Gpu { device: gpu }))
    }

    fn attribute(&self, attribute: i32) -> i32 {
        let mut value = 0;
        // SAFETY: writes one number.
        let code = unsafe { cuda::cuDeviceGetAttribute(&mut value, attribute, self.device) };
        if code == 0 { value } else { 0 }
    }

    /// Returns ten times the compute capability.
    pub(super) fn arch(&self) -> u32 {
        (10 * self.attribute(MAJOR) + self.attribute(MINOR)) as u32
    }

    /// Returns the resources of a kernel, from its machine code or PTX.
    pub(super) fn resources(&self, image: &[u8], launch: &Launch) -> Result<Figures> {
        let mut image = image.to_vec();
        image.push(0);
        let name = CString::new(launch.kernel.as_str())?;
        let (mut context, mut module, mut function) = (null_mut(), null_mut(), null_mut());
        // SAFETY: each call writes one handle; the image is machine code or a zero-terminated text. The context stays retained until
        // the process ends.
        let module = unsafe {
            check("cuDevicePrimaryCtxRetain", cuda::cuDevicePrimaryCtxRetain(&mut context, self.device))?;
            check("cuCtxSetCurrent", cuda::cuCtxSetCurrent(context))?;
            let load = cuda::cuModuleLoadDataEx;
            let code = load(&mut module, image.as_ptr().cast(), 0, null_mut(), null_mut());
            check("cuModuleLoadDataEx", code).with_context(|| launch.kernel.clone())?;
            Module(module)
        };
        // SAFETY: a loaded module and a zero-terminated name.
        check("cuModuleGetFunction", unsafe {
            cuda::cuModuleGetFunction(&mut function, module.0, name.as_ptr())
        })?;
        let attribute = |attribute: i32| -> Result<u32> {
            let mut value = 0;
            // SAFETY: writes one number.
            check("cuFuncGetAttribute", unsafe {
                cuda::cuFuncGetAttribute(&mut value, attribute, function)
            })?;
            Ok(value as u32)
        };
        let mut blocks = 0;
        // SAFETY: a function of the module; writes one number.
        unsafe {
            cuda::cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED_BYTES, launch.shared as i32);
            let code = cuda::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                function,
                launch.threads as i32,
                launch.shared as usize,
            );
            check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
        }
        let most = f64::from(self.attribute(MAX_THREADS).max(1));
        Ok(Figures {
            threads: Some(launch.threads),
            registers: Some(attribute(REGISTERS)?),
            local: Some(attribute(LOCAL_BYTES)?),
            shared: Some(attribute(SHARED_BYTES)? + launch.shared),
            occupancy: Some(f64::from(blocks) * f64::from(launch.threads) / most),
            ..Figures::default()
        })
    }
}

/// Begins or ends the collection of a profiler that was started with `--profile-from-start off`.
pub(super) fn profile(on: bool) {
    // SAFETY: the calls take nothing. Without a profiler they have no effect.
    unsafe {
        if on {
            cuda::cuProfilerStart()
        } else {
            cuda::cuProfilerStop()
        };
    }
}
