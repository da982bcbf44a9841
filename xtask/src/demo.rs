//! `demo`: the program's demonstrations on real data.

use crate::cargo::{self, FEATURES, cargo};
use crate::workspace::Workspace;
use crate::{ptx, setup};
use anyhow::{Result, bail};
use cuda_lazy::Status;
use std::env;

/// Run a demonstration, `nearest` if none is named, on this machine's best device
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Demo {
    /// Arguments for `kauri demo`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

impl Demo {
    pub(crate) fn run(self) -> Result<()> {
        let workspace = Workspace::find()?;
        build_kernels_for_gpu(&workspace)?;
        // `cargo xtask demo -- --k 3` and `cargo xtask demo --k 3` are equal.
        let args = self
            .args
            .iter()
            .enumerate()
            .filter(|(index, arg)| *index > 0 || *arg != "--")
            .map(|(_, arg)| arg);
        cargo::run(kauri(&workspace).arg("demo").args(args))
    }
}

/// The program `kauri`, built if need be, with the workspace's data.
pub(crate) fn kauri(workspace: &Workspace) -> std::process::Command {
    let mut command = cargo();
    command.args(["run", "--package", "kauri-cli", FEATURES, "--bin", "kauri", "--"]);
    if env::var_os("KAURI_DATA").is_none() {
        command.env("KAURI_DATA", workspace.root.join("data"));
    }
    command
}

/// Builds the kernels if there is a GPU. Without one the build would take minutes for nothing; without a device toolchain
/// the program runs on the CPU. Either case prints a line.
pub(crate) fn build_kernels_for_gpu(workspace: &Workspace) -> Result<()> {
    if !matches!(cuda_lazy::status(), Status::Loaded { .. }) {
        eprintln!("skipped: building kernels for a GPU, there is no CUDA driver on this machine");
        return Ok(());
    }
    let toolchain = match setup::device_toolchain(workspace) {
        Ok(toolchain) => toolchain,
        Err(error) => {
            let text = error.to_string();
            eprintln!("skipped: building kernels for the GPU, {}", text.lines().next().unwrap_or_default());
            return Ok(());
        }
    };
    match ptx::build_all(workspace, &toolchain, false, &[])? {
        (_, 0) => Ok(()),
        (_, findings) => bail!("{findings} findings in the PTX"),
    }
}
