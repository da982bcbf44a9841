//! `demo`: the program's demonstrations on real data.

use crate::cargo::{self, cargo};
use crate::test::is_ci;
use crate::workspace::Workspace;
use crate::{ptx, setup};
use anyhow::{Result, bail};
use cuda_lazy::Status;
use std::env;
use std::process::Command;

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
        let args = self.args.strip_prefix(&["--".to_owned()]).unwrap_or(&self.args);
        let mut command = program_of_tests(&workspace).unwrap_or_else(|| kauri(&workspace, &features(args)));
        cargo::run(command.arg("demo").args(args))
    }
}

/// The program as the tests run it, if they have just compiled it, and the library with it.
fn program_of_tests(workspace: &Workspace) -> Option<Command> {
    let program = workspace.target.join("debug/kauri-program");
    let mut command = Command::new(&program);
    with_data(workspace, &mut command);
    (is_ci() && program.is_file()).then_some(command)
}

/// The program `kauri` with these features, built if need be, with the workspace's data.
pub(crate) fn kauri(workspace: &Workspace, features: &str) -> Command {
    let mut command = cargo();
    command.args(["run", "--package", "kauri-cli", "--no-default-features", "--features", features]);
    // Optimized, the library takes minutes to compile, and a demonstration runs for less than a second without that.
    for package in ["kauri", "kauri-cli"] {
        for setting in ["opt-level=0", "debug=false"] {
            command.arg("--config").arg(format!("profile.dev.package.{package}.{setting}"));
        }
    }
    command.args(["--bin", "kauri", "--"]);
    with_data(workspace, &mut command);
    command
}

fn with_data(workspace: &Workspace, command: &mut Command) {
    if env::var_os("KAURI_DATA").is_none() {
        command.env("KAURI_DATA", workspace.root.join("data"));
    }
}

/// Returns the features that a demonstration with these arguments needs; Parquet, files of point clouds and the simulator have
/// many dependencies.
fn features(args: &[String]) -> String {
    let mut features = vec!["cuda"];
    features.extend(args.iter().any(|arg| arg.ends_with("sim")).then_some("sim"));
    features.extend(args.iter().any(|arg| arg.ends_with("parquet")).then_some("parquet"));
    features.extend(args.iter().any(|arg| arg == "terrain").then_some("terrain"));
    features.join(",")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_arguments() {
        let features = |line: &str| features(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(features("nearest --k 3"), "cuda");
        assert_eq!(features("nearest --device=sim --out a.geoparquet"), "cuda,sim,parquet");
        assert_eq!(features("terrain --points 1000"), "cuda,terrain");
    }
}
