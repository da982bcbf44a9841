//! `test`: runs every test that this machine can run.

use crate::cargo::{self, FEATURES, cargo};
use crate::outside;
use crate::ptx::{self, Built};
use crate::setup;
use crate::workspace::Workspace;
use crate::{assemble, cargo::Failed};
use anyhow::Result;
use cuda_builder::Ptxas;
use cuda_lazy::Status;
use std::env;
use std::time::Instant;

/// Run every test; prepares the tools that they need, and prints a line for each part that this machine cannot run
#[derive(clap::Args)]
pub(crate) struct Test {
    /// Rewrite the budget of the kernels' resources
    #[arg(long)]
    bless: bool,
    /// Arguments for `cargo test`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Result of a part.
enum Outcome {
    Passed(String),
    Failed(String),
    Skipped(String),
}

use Outcome::{Failed as Bad, Passed, Skipped};

impl Test {
    pub(crate) fn run(self) -> Result<()> {
        let workspace = Workspace::find()?;
        let mut parts = Parts::default();
        let mut kernels = None;
        parts.run("kernels", || {
            let outcome;
            (kernels, outcome) = build_kernels(&workspace);
            outcome
        });
        parts.run("cargo test", || self.cargo_test());
        parts.run("own kernel", || match &kernels {
            None => Skipped("there is no toolchain for kernels".to_owned()),
            Some(_) => own_kernel(&workspace),
        });
        parts.run("outside", || match outside::check(&workspace) {
            Ok(summary) => Passed(summary),
            Err(error) => Bad(format!("a crate outside of the workspace: {error:#}")),
        });
        parts.run("ptxas", || match &kernels {
            None => Skipped("there is no PTX".to_owned()),
            Some(built) => assemble_kernels(&workspace, built, self.bless),
        });
        parts.run("GPU", gpu);
        parts.finish()
    }

    fn cargo_test(&self) -> Outcome {
        let mut command = cargo();
        command.args(["test", FEATURES]);
        if !self.args.iter().any(|arg| arg.starts_with("-p") || arg.starts_with("--package")) {
            command.arg("--workspace");
        }
        // Show all failures in one run, unless the caller gives arguments.
        if self.args.is_empty() {
            command.arg("--no-fail-fast");
        }
        command.args(&self.args);
        match cargo::run(&mut command) {
            Ok(()) => Passed(cargo::shown(&command)),
            Err(error) => Bad(format!("{}: {error:#}", cargo::shown(&command))),
        }
    }
}

/// Builds the PTX, if this machine can. It is the first part, because the host's tests embed PTX.
fn build_kernels(workspace: &Workspace) -> (Option<Vec<Built>>, Outcome) {
    let toolchain = match setup::device_toolchain(workspace) {
        Ok(toolchain) => toolchain,
        Err(error) => {
            let text = error.to_string();
            // In CI nobody reads a line about a skipped part.
            return (None, if is_ci() { Bad(text) } else { Skipped(one_line(&text)) });
        }
    };
    match ptx::build_all(workspace, &toolchain, false, &[]) {
        Err(error) => (None, Bad(format!("{error:#}"))),
        Ok((built, 0)) => {
            let outcome = match ptx::totals_of_dir(&workspace.ptx_dir(false)).map(|t| ptx::over_limits(&t)) {
                Ok(over) if over.is_empty() => Passed(format!("{} files of PTX, lint clean", built.len())),
                Ok(over) => Bad(over.join("; ")),
                Err(error) => Bad(format!("{error:#}")),
            };
            (Some(built), outcome)
        }
        Ok((built, findings)) => (Some(built), Bad(format!("{findings} findings in the PTX"))),
    }
}

/// Runs the example project with its own kernels in the simulator.
fn own_kernel(workspace: &Workspace) -> Outcome {
    let mut command = cargo();
    command
        .args(["run", "--quiet", "--manifest-path"])
        .arg(workspace.root.join("host/examples/own-kernel/Cargo.toml"))
        .args(["--", "sim"])
        .env("CARGO_TARGET_DIR", workspace.target.join("own-kernel"))
        // The simulator runs kernels that are compiled for the CPU.
        .env("KAURI_EMBED_PTX", "0");
    match cargo::run(&mut command) {
        Ok(()) => Passed("host/examples/own-kernel".to_owned()),
        Err(error) => Bad(format!("host/examples/own-kernel: {error:#}")),
    }
}

fn assemble_kernels(workspace: &Workspace, built: &[Built], bless: bool) -> Outcome {
    let ptxas = match Ptxas::prepare(&workspace.target) {
        Ok((ptxas, _)) => ptxas,
        Err(error) => return Skipped(one_line(&error.to_string())),
    };
    match assemble::check(workspace, &ptxas, built, bless) {
        Err(error) => Bad(format!("{error:#}")),
        Ok(outcome) if outcome.failures.is_empty() => Passed(outcome.summary),
        Ok(outcome) => {
            outcome.failures.iter().for_each(|failure| println!("ptxas: {failure}"));
            Bad(format!("{} failures; `cargo xtask test --bless` if they are meant", outcome.failures.len()))
        }
    }
}

/// Reports whether tests on a GPU ran; the tests themselves print nothing without a GPU.
fn gpu() -> Outcome {
    match cuda_lazy::status() {
        Status::Loaded { .. } => Passed("the tests that use one were part of `cargo test`".to_owned()),
        _ => Skipped("no CUDA driver on this machine: tests on a GPU were skipped".to_owned()),
    }
}

fn is_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true")
}

fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// The finished parts, for the summary.
#[derive(Default)]
struct Parts(Vec<(&'static str, f32, Outcome)>);

impl Parts {
    fn run(&mut self, name: &'static str, part: impl FnOnce() -> Outcome) {
        let begin = Instant::now();
        let outcome = part();
        self.0.push((name, begin.elapsed().as_secs_f32(), outcome));
    }

    fn finish(self) -> Result<()> {
        println!();
        for (name, seconds, outcome) in &self.0 {
            let (state, detail) = match outcome {
                Passed(detail) => ("passed", detail),
                Bad(detail) => ("FAILED", detail),
                Skipped(detail) => ("skipped", detail),
            };
            println!("{name:<10} {state:<7} {seconds:>6.1} s  {detail}");
        }
        let failed = self.0.iter().any(|(_, _, outcome)| matches!(outcome, Bad(_)));
        if failed { Err(Failed(1).into()) } else { Ok(()) }
    }
}
