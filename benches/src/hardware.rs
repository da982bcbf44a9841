//! The machine and program of a result.

use kauri::Device;
use serde::Serialize;
use std::{env, fs};

/// The machine and the program.
#[derive(Clone, Debug, Serialize)]
pub struct Hardware {
    /// The device, as kauri describes it.
    pub device: String,
    /// Properties of the GPU, if the device is one.
    pub gpu: Option<GpuInfo>,
    /// The CPU's name, if the system reports it.
    pub cpu: Option<String>,
    /// Threads that rayon uses.
    pub threads: usize,
    /// Version of kauri.
    pub kauri: &'static str,
    /// The commit, from the environment variable `KAURI_GIT_REVISION`, with `-dirty` if files differed from it.
    pub git_revision: String,
    /// Whether the program was built with optimizations and without debug assertions.
    pub release_build: bool,
}

/// A GPU.
#[derive(Clone, Debug, Serialize)]
pub struct GpuInfo {
    /// The vendor's name.
    pub name: String,
    /// Compute capability.
    pub capability: String,
    /// Multiprocessors.
    pub num_sms: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The newest CUDA that the driver supports.
    pub cuda: String,
    /// Version of the driver, if the system reports it.
    pub driver: Option<String>,
}

impl Hardware {
    /// Returns the description of this machine, with `device`.
    pub fn of(device: &Device) -> Hardware {
        let dotted = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        let gpu = device.gpu().map(|gpu| {
            let info = gpu.info();
            GpuInfo {
                name: info.name.clone(),
                capability: dotted(info.capability),
                num_sms: info.num_sms,
                memory_bytes: info.memory_bytes,
                cuda: dotted(info.driver_version),
                driver: driver_version(),
            }
        });
        Hardware {
            device: device.to_string(),
            gpu,
            cpu: cpu_name(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            kauri: env!("CARGO_PKG_VERSION"),
            git_revision: env::var("KAURI_GIT_REVISION").unwrap_or_else(|_| "unknown".to_owned()),
            release_build: !cfg!(debug_assertions),
        }
    }
}

/// Parses `580.159.04` from `NVRM version: NVIDIA UNIX … Kernel Module  580.159.04  Release Build …`.
fn driver_version() -> Option<String> {
    let text = fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let is_version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
}

fn cpu_name() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
