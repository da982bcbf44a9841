//! `kauri doctor`: shows what kauri finds on this machine. Missing parts are not a failure.

use clap::Args;
use std::collections::BTreeMap;
use std::env;
use std::io::Write;

use super::Result;
use super::text::table;
use kauri::Device;
use kauri::device::{DeviceInfo, embedded_kernels};

#[derive(Args)]
pub(super) struct Doctor {}

impl Doctor {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<()> {
        let mut rows = vec![["kauri".to_owned(), env!("CARGO_PKG_VERSION").to_owned()]];
        rows.extend(kernels().map(|line| ["kernels".to_owned(), line]));
        match Device::list_cuda() {
            Err(error) => rows.push(["driver".to_owned(), error.to_string()]),
            Ok(devices) => {
                let version = devices.first().map(|device| device.driver_version);
                let version =
                    version.map_or("no device".to_owned(), |(major, minor)| format!("CUDA {major}.{minor}"));
                rows.push(["driver".to_owned(), version]);
                rows.extend(
                    devices
                        .iter()
                        .enumerate()
                        .map(|(ordinal, info)| [info.id.clone(), describe(ordinal, info)]),
                );
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

/// Describes the kernels of this build: the architectures of each family, and the folder that replaces them if one is set.
fn kernels() -> impl Iterator<Item = String> {
    let mut families: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (family, arch) in embedded_kernels() {
        families.entry(family).or_default().push(format!("sm_{arch}"));
    }
    let mut lines: Vec<String> =
        families.into_iter().map(|(family, archs)| format!("{family} for {}", archs.join(", "))).collect();
    if lines.is_empty() {
        lines.push(
            "none in this build, so it cannot use a GPU; run `cargo xtask ptx` and build again".to_owned(),
        );
    }
    if let Some(folder) = env::var_os("KAURI_PTX_DIR") {
        lines.push(format!("KAURI_PTX_DIR is set: kernels are loaded from {}", folder.display()));
    }
    lines.into_iter()
}

fn describe(ordinal: usize, info: &DeviceInfo) -> String {
    let (major, minor) = info.capability;
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let free = match Device::cuda(ordinal).map(|device| device.gpu().map(|gpu| gpu.free_memory())) {
        Ok(Some(Ok(bytes))) => format!("{:.1} GiB free", gib(bytes)),
        Ok(Some(Err(error))) | Err(error) => format!("not usable: {error}"),
        Ok(None) => "not usable".to_owned(),
    };
    format!(
        "{}, compute capability {major}.{minor}, {} SMs, {:.1} GiB, {free}",
        info.name,
        info.num_sms,
        gib(info.memory_bytes)
    )
}
