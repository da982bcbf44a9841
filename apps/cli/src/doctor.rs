//! `kauri doctor`: shows what kauri finds on this machine. Missing parts are not a failure.

use clap::Args;
use std::env;
use std::io::Write;
use std::time::Instant;

use super::Result;
use super::text::table;
use kauri::Device;
use kauri::device::{DeviceInfo, Family, KernelForm, embedded_kernels};

#[derive(Args)]
pub(super) struct Doctor {
    /// Load all kernels on each GPU: the driver compiles those without machine code, and its cache keeps them for later runs
    #[arg(long)]
    warm: bool,
}

impl Doctor {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<()> {
        let mut rows = vec![["kauri".to_owned(), env!("CARGO_PKG_VERSION").to_owned()]];
        rows.extend(kernels().into_iter().map(|line| ["kernels".to_owned(), line]));
        match Device::list_cuda() {
            Err(error) => rows.push(["driver".to_owned(), error.to_string()]),
            Ok(devices) => {
                let version = devices.first().map(|device| device.driver_version);
                let version =
                    version.map_or("no device".to_owned(), |(major, minor)| format!("CUDA {major}.{minor}"));
                rows.push(["driver".to_owned(), version]);
                for (ordinal, info) in devices.iter().enumerate() {
                    let device = Device::cuda(ordinal);
                    rows.push([info.id.clone(), describe(&device, info)]);
                    if let Ok(device) = device {
                        rows.push([format!("{} first call", info.id), first_call(&device, info)]);
                        if self.warm {
                            rows.push([format!("{} warm", info.id), warm(&device)]);
                        }
                    }
                }
            }
        }
        rows.push(["cpu".to_owned(), format!("{} threads", rayon::current_num_threads())]);
        let best = match Device::best() {
            Ok(device) => format!("{device}; {}", device.reason()),
            Err(error) => error.to_string(),
        };
        rows.push(["best".to_owned(), best]);
        Ok(out.write_all(table(&rows).as_bytes())?)
    }
}

/// Describes the kernels of this build, and the folder that replaces them if one is set.
fn kernels() -> Vec<String> {
    let describe = |(form, arch, n): (KernelForm, u32, usize)| format!("{n} as {} of sm_{arch}", name(form));
    let mut lines: Vec<String> = embedded_kernels().map(describe).collect();
    if lines.is_empty() {
        lines.push(
            "none in this build, so it cannot use a GPU; run `cargo xtask ptx` and build again".to_owned(),
        );
    }
    if let Some(folder) = env::var_os("KAURI_PTX_DIR") {
        lines.push(format!("KAURI_PTX_DIR is set: kernels are loaded from {}", folder.display()));
    }
    lines
}

fn name(form: KernelForm) -> &'static str {
    if form == KernelForm::MachineCode { "machine code" } else { "PTX" }
}

/// Describes what a first call costs on a GPU, and how to make it fast.
fn first_call(device: &Device, info: &DeviceInfo) -> String {
    let forms: kauri::Result<Vec<_>> = Family::ALL.iter().map(|family| device.kernel_form(*family)).collect();
    let (major, minor) = info.capability;
    match forms {
        Err(error) => error.to_string(),
        Ok(forms) if forms.iter().all(|form| *form == Some(KernelForm::MachineCode)) => {
            "all kernels are machine code: the driver loads them in milliseconds".to_owned()
        }
        Ok(_) => {
            let cache = if env::var_os("CUDA_CACHE_DISABLE").is_some_and(|value| value == "1") {
                "its cache is off (CUDA_CACHE_DISABLE)"
            } else {
                "its cache keeps them, and `kauri doctor --warm` fills it now"
            };
            format!(
                "the driver compiles PTX, up to seconds for each operation; {cache}. With machine code it takes milliseconds: \
                 `cargo xtask ptx --cubin {major}{minor}`, and build again"
            )
        }
    }
}

/// Loads all kernels.
fn warm(device: &Device) -> String {
    let begin = Instant::now();
    match device.prepare(&Family::ALL) {
        Ok(()) => format!("all kernels are loaded, in {:.2} s", begin.elapsed().as_secs_f64()),
        Err(error) => error.to_string(),
    }
}

fn describe(device: &kauri::Result<Device>, info: &DeviceInfo) -> String {
    let (major, minor) = info.capability;
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let free = match device.as_ref().map(|device| device.gpu().map(|gpu| gpu.free_memory())) {
        Ok(Some(Ok(bytes))) => format!("{:.1} GiB free", gib(bytes)),
        Ok(Some(Err(error))) => format!("not usable: {error}"),
        Err(error) => format!("not usable: {error}"),
        Ok(None) => "not usable".to_owned(),
    };
    format!(
        "{}, compute capability {major}.{minor}, {} SMs, {:.1} GiB, {free}",
        info.name,
        info.num_sms,
        gib(info.memory_bytes)
    )
}
