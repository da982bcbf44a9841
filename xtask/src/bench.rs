//! `bench`: runs the benchmarks' program.

use crate::cargo::{self, cargo};
use crate::demo::build_kernels_for_gpu;
use crate::workspace::Workspace;
use anyhow::Result;
use std::process::{Command, Stdio};

/// Run a suite of benchmarks: results as a table, and as JSON with --out FILE
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Bench {
    /// Arguments for the benchmarks' program, such as --suite kdtree; --help shows them all
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

impl Bench {
    pub(crate) fn run(self) -> Result<()> {
        let workspace = Workspace::find()?;
        let mut command = cargo();
        command.args(["run", "--release", "--package", "kauri-benches", "--bin", "kauri-bench"]);
        if is_on_sim(&self.args) {
            // The simulator runs the kernels as they are compiled for the CPU.
            command.args(["--features", "kauri/sim"]);
        } else {
            build_kernels_for_gpu(&workspace)?;
        }
        command.arg("--").args(&self.args);
        cargo::run(command.env("KAURI_GIT_REVISION", git_revision(&workspace)))
    }
}

/// True if arguments choose the simulator.
fn is_on_sim(args: &[String]) -> bool {
    args.windows(2).any(|pair| pair == ["--device", "sim"]) || args.iter().any(|arg| arg == "--device=sim")
}

/// Returns the commit that is checked out, with a mark if files differ from it; for the results.
pub(crate) fn git_revision(workspace: &Workspace) -> String {
    let mut command = Command::new("git");
    command
        .args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
        .current_dir(&workspace.root);
    let output = command.stderr(Stdio::null()).output();
    let revision = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let revision = String::from_utf8(revision.unwrap_or_default()).unwrap_or_default();
    if revision.is_empty() { "unknown".to_owned() } else { revision.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_choose_the_simulator() {
        let is_on_sim = |line: &str| is_on_sim(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(is_on_sim("--suite join --device sim --n 1e4") && is_on_sim("--device=sim"));
        assert!(!is_on_sim("--suite sim --device cpu"));
    }
}
