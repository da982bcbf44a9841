//! Prepares a toolchain step by step, and describes the steps.

use std::fs;
use std::time::{Duration, Instant};

use super::find::{self, rustup};
use super::{Base, Options, PINNED, Prepared, Toolchain, debian, private};
use crate::{CudaBuilderError, Result, files, process};

/// Time limit of a download. A component has 3 MB, a toolchain 200 MB; a slower download is assumed to hang.
const COMPONENT_LIMIT: Duration = Duration::from_secs(180);
const TOOLCHAIN_LIMIT: Duration = Duration::from_secs(900);

pub(super) fn prepare(options: &Options) -> Result<Prepared> {
    let mut steps = Vec::new();
    let bases = match find::candidates(options) {
        Err(CudaBuilderError::NoToolchain { .. }) if installable(options) => {
            install_toolchain(options, &mut steps);
            find::candidates(options)
        }
        found => found,
    }?;

    if let Some(source) = &options.rust_src {
        let base = &bases[0];
        let (toolchain, made) = private::make(options, base, source)?;
        let verb = if made { "made" } else { "found" };
        steps.push(format!(
            "{verb} a private toolchain of {} with the sources of {}: {}",
            base.label,
            source.display(),
            toolchain.sysroot.display()
        ));
        return Ok(Prepared { toolchain, steps });
    }
    if let Some(toolchain) = bases.iter().find_map(|base| base.ready(options)) {
        steps.push(format!("found {toolchain} with its sources: {}", toolchain.sysroot.display()));
        return Ok(Prepared { toolchain, steps });
    }

    let base = &bases[0];
    if let Some(toolchain) = add_component(options, base, &mut steps) {
        return Ok(Prepared { toolchain, steps });
    }
    if let Some(toolchain) = from_debian(options, base, &mut steps) {
        return Ok(Prepared { toolchain, steps });
    }
    Err(base.no_rust_src(&steps))
}

/// True if the pinned toolchain may be installed: only if the user named none.
fn installable(options: &Options) -> bool {
    !options.offline && options.toolchain.as_deref().is_none_or(|name| name == PINNED)
}

fn install_toolchain(options: &Options, steps: &mut Vec<String>) {
    let mut command = rustup(options);
    command.args([
        "toolchain",
        "install",
        PINNED,
        "--profile",
        "minimal",
        "-c",
        "rust-src",
        "--no-self-update",
    ]);
    steps.push(outcome(&mut command, TOOLCHAIN_LIMIT).1);
}

fn add_component(options: &Options, base: &Base, steps: &mut Vec<String>) -> Option<Toolchain> {
    if !base.in_rustup {
        steps.push(format!("{} is not a toolchain of rustup, which could add rust-src", base.label));
        return None;
    }
    if options.offline {
        steps.push("offline: rustup was not asked for rust-src".to_owned());
        return None;
    }
    let mut command = rustup(options);
    command.args(["component", "add", "rust-src", "--toolchain", &base.label]);
    let (success, step) = outcome(&mut command, COMPONENT_LIMIT);
    steps.push(step);
    if success { base.ready(options) } else { None }
}

fn from_debian(options: &Options, base: &Base, steps: &mut Vec<String>) -> Option<Toolchain> {
    if options.offline {
        steps.push("offline: Debian was not asked for rust-src".to_owned());
        return None;
    }
    options.private_root()?;
    match fetch_from_debian(options, base, steps) {
        Ok(toolchain) => {
            let folder = toolchain.sysroot.display();
            steps.push(format!("made a private toolchain of {} with these sources: {folder}", base.label));
            Some(toolchain)
        }
        Err(error) => {
            steps.push(error.to_string());
            None
        }
    }
}

fn fetch_from_debian(options: &Options, base: &Base, steps: &mut Vec<String>) -> Result<Toolchain> {
    let root = options.private_root().ok_or_else(|| base.no_rust_src(&[]))?;
    let _lock = files::Lock::acquire(&root.join("debian.lock"))?;
    // Another process may have prepared it while this one waited for the lock.
    if let Some(toolchain) = base.ready(options) {
        return Ok(toolchain);
    }
    let downloads = root.join("debian");
    let made = debian::fetch(&downloads, &base.version).and_then(|package| {
        steps.push(format!(
            "fetched Debian's {} (the system's package lists and folders untouched)",
            package.name
        ));
        private::make(options, base, &package.folder)
    });
    let _ = fs::remove_dir_all(&downloads);
    made.map(|(toolchain, _)| toolchain)
}

/// Runs a command that may fail. Returns whether it succeeded, and a description of the step.
fn outcome(command: &mut std::process::Command, limit: Duration) -> (bool, String) {
    let begin = Instant::now();
    let result = process::run_ok(command, limit);
    let seconds = begin.elapsed().as_secs_f32();
    match result {
        Ok(_) => (true, format!("ran `{}` ({seconds:.1} s)", process::describe(command))),
        Err(error) => (false, format!("{error} ({seconds:.1} s)")),
    }
}
