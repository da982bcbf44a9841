//! `test`: runs every test that this machine can run.

use crate::cargo::{self, FEATURES, Failed, cargo};
use crate::ptx::{self, Built};
use crate::schedules::{self, Schedules, number_of_commit};
use crate::workspace::Workspace;
use crate::{assemble, consumer, cuda_crates, new_kernel, outside, setup};
use anyhow::Result;
use cuda_builder::Ptxas;
use cuda_lazy::Status;
use std::env;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

/// Run every test; prepares the tools that they need, and prints a line for each part that this machine cannot run
#[derive(clap::Args)]
pub(crate) struct Test {
    /// Rewrite the budget of the kernels' resources
    #[arg(long)]
    bless: bool,
    /// Run the simulator's tests under all schedules and check each feature, not only some that depend on the commit
    #[arg(long)]
    thorough: bool,
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
        let schedules = Schedules::choose(&workspace, self.thorough);
        let mut parts = Parts::default();
        let mut kernels = None;
        parts.run("kernels", || {
            let outcome;
            (kernels, outcome) = build_kernels(&workspace);
            outcome
        });
        // Much of the compilation is one crate on one core, so the assembler runs beside it.
        thread::scope(|scope| {
            let assembler = scope.spawn(|| {
                timed(|| match &kernels {
                    None => Skipped("there is no PTX".to_owned()),
                    Some(built) => assemble_kernels(&workspace, built, self.bless),
                })
            });
            // Arguments may choose what is compiled.
            if self.args.is_empty() {
                parts.run("compile", || outcome_of(&mut compile_command()));
            }
            let (seconds, outcome) =
                assembler.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            parts.0.push(("ptxas".to_owned(), seconds, outcome));
        });
        self.cargo_test(&workspace, &schedules, &mut parts);
        // Each compiles much anew, so a run for one change does one of them.
        let turn = number_of_commit(&workspace) % 4;
        let has_turn = |part: usize| self.thorough || part == turn;
        let later = || Skipped("in turn with other commits; `--thorough` does it".to_owned());
        parts.run("outside", || {
            if !has_turn(0) {
                return later();
            }
            match outside::check(&workspace, self.thorough) {
                Ok(summary) => Passed(summary),
                Err(error) => Bad(format!("a crate outside of the workspace: {error:#}")),
            }
        });
        parts.run("new kernel", || match &kernels {
            _ if !has_turn(1) => later(),
            // The project compiles its kernels.
            None => Skipped("there is no PTX".to_owned()),
            Some(_) => match new_kernel::check(&workspace) {
                Ok(summary) => Passed(summary),
                Err(error) => Bad(format!("the template of `new-kernel`: {error:#}")),
            },
        });
        parts.run("packages", || {
            if !has_turn(2) {
                return later();
            }
            match consumer::check(&workspace, kernels.is_some()) {
                Ok(detail) => Passed(detail),
                Err(error) => Bad(format!("{error:#}")),
            }
        });
        parts.run("rust-cuda", || {
            if !has_turn(3) {
                return later();
            }
            match cuda_crates::check(&workspace) {
                Ok(crates) => Passed(format!("each crate by itself: {crates}")),
                Err(error) => Bad(format!("{error:#}")),
            }
        });
        parts.run("GPU", gpu);
        parts.finish()
    }

    /// Runs the tests; each test program is a part of its own in the summary.
    fn cargo_test(&self, workspace: &Workspace, schedules: &Schedules, parts: &mut Parts) {
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
        schedules.set(&mut command);
        let (begin, mut programs) = (Instant::now(), Vec::new());
        let result = cargo::run_watched(&mut command, |line| {
            programs.extend(program_of(line).map(|name| (name, begin.elapsed().as_secs_f32())));
        });
        let end = begin.elapsed().as_secs_f32();
        let ends = programs.iter().skip(1).map(|(_, begin)| *begin).chain([end]);
        let seconds: Vec<f32> = programs.iter().zip(ends).map(|((_, begin), end)| end - begin).collect();
        for ((name, _), seconds) in programs.into_iter().zip(seconds).filter(|(_, seconds)| *seconds >= 1.0) {
            parts.0.push((format!("  {name}"), seconds, Passed(String::new())));
        }
        let detail = format!("{}; schedules: {}", cargo::shown(&command), schedules.describe(workspace));
        let outcome = match result.and_then(|()| self.record(workspace)) {
            Ok(()) => Passed(detail),
            Err(error) => Bad(format!("{error:#}: {detail}")),
        };
        parts.0.push(("cargo test".to_owned(), end, outcome));
    }

    fn record(&self, workspace: &Workspace) -> Result<()> {
        if self.thorough && self.args.is_empty() { schedules::record(workspace) } else { Ok(()) }
    }
}

/// Returns the command that compiles everything that `cargo test` runs.
fn compile_command() -> Command {
    let mut command = cargo();
    command.args(["test", FEATURES, "--workspace", "--no-run"]);
    command
}

fn outcome_of(command: &mut Command) -> Outcome {
    match cargo::run(command) {
        Ok(()) => Passed(cargo::shown(command)),
        Err(error) => Bad(format!("{}: {error:#}", cargo::shown(command))),
    }
}

/// Returns the name of the test program that cargo is about to run, if this line of its output says so.
fn program_of(line: &str) -> Option<String> {
    if let Some(krate) = line.trim().strip_prefix("Doc-tests ") {
        return Some(format!("{krate}, documentation"));
    }
    let path = line.trim().strip_prefix("Running ")?.rsplit_once('(')?.1.strip_suffix(')')?;
    let name = Path::new(path).file_stem()?.to_str()?;
    Some(name.rsplit_once('-').map_or(name, |(name, _hash)| name).to_owned())
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

/// Reports whether tests on a GPU ran; without a GPU each test program prints only a line.
fn gpu() -> Outcome {
    match cuda_lazy::status() {
        Status::Loaded { .. } => Passed("the tests that use one were part of `cargo test`".to_owned()),
        _ => Skipped("no CUDA driver on this machine: tests on a GPU were skipped".to_owned()),
    }
}

pub(crate) fn is_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true")
}

fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn timed<T>(part: impl FnOnce() -> T) -> (f32, T) {
    let begin = Instant::now();
    let result = part();
    (begin.elapsed().as_secs_f32(), result)
}

/// The finished parts, for the summary.
#[derive(Default)]
struct Parts(Vec<(String, f32, Outcome)>);

impl Parts {
    fn run(&mut self, name: &str, part: impl FnOnce() -> Outcome) {
        let (seconds, outcome) = timed(part);
        self.0.push((name.to_owned(), seconds, outcome));
    }

    fn finish(self) -> Result<()> {
        println!();
        for (name, seconds, outcome) in &self.0 {
            let (state, detail) = match outcome {
                Passed(detail) => ("passed", detail),
                Bad(detail) => ("FAILED", detail),
                Skipped(detail) => ("skipped", detail),
            };
            // A test program has a time; its result is part of `cargo test`.
            let state = if name.starts_with(' ') { "" } else { state };
            println!("{name:<30} {state:<7} {seconds:>6.1} s  {detail}");
        }
        let failed = self.0.iter().any(|(_, _, outcome)| matches!(outcome, Bad(_)));
        if failed { Err(Failed(1).into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_in_cargo_s_output() {
        let line = "     Running tests/sim/main.rs (target/debug/deps/sim-0123456789abcdef)";
        assert_eq!(program_of(line).as_deref(), Some("sim"));
        assert_eq!(program_of("   Doc-tests kauri").as_deref(), Some("kauri, documentation"));
        assert_eq!(program_of("   Compiling kauri v0.1.0"), None);
    }
}
