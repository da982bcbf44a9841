//! Runs programs, cargo and others, on this terminal, and keeps their exit codes.

use anyhow::{Context, Result};
use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};

/// A program failed and printed the reason; the task ends with its exit code and prints nothing more.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) u8);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}", self.0)
    }
}

impl std::error::Error for Failed {}

/// Features that every task builds the workspace with, so that one task's artefacts serve the next.
pub(crate) const FEATURES: &str = "--all-features";

/// Returns the cargo that runs this task, without the variables that describe this package.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a program on this terminal; [`Failed`] with its exit code if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(Failed(exit_code(status)).into()) }
}

/// Runs a program on this terminal, as [`run`], and passes each line of its error stream to `see`.
pub(crate) fn run_watched(command: &mut Command, mut see: impl FnMut(&str)) -> Result<()> {
    let mut child =
        command.stderr(Stdio::piped()).spawn().with_context(|| format!("cannot run {}", shown(command)))?;
    let stderr = child.stderr.take().context("the stream is a pipe")?;
    for line in BufReader::new(stderr).split(b'\n') {
        let line = line.context("cannot read the program's errors")?;
        let line = String::from_utf8_lossy(&line);
        eprintln!("{line}");
        see(&line);
    }
    let status = child.wait().with_context(|| format!("cannot wait for {}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(Failed(exit_code(status)).into()) }
}

/// Runs a program and returns its standard output; its error stream goes to this terminal.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {}", shown(command)))?;
    if !output.status.success() {
        return Err(Failed(exit_code(output.status)).into());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{} wrote no text", shown(command)))
}

fn exit_code(status: ExitStatus) -> u8 {
    // No code: a signal ended the program.
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Returns a command line for messages.
pub(crate) fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program()).file_stem().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args()).map(OsStr::to_string_lossy);
    format!("`{}`", words.collect::<Vec<_>>().join(" "))
}
