//! Finds installed compilers.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{Base, Options, PINNED, RustcVersion, program};
use crate::{CudaBuilderError, Result, process};

/// Returns the compilers that can build device code, best first; never empty.
///
/// A compiler named by the user must be suitable; otherwise its fault is the error. Unsuitable others are skipped.
pub(super) fn candidates(options: &Options) -> Result<Vec<Base>> {
    if let Some(name) = &options.toolchain {
        let Some(base) = named_by_user(options, name)? else {
            return Err(no_toolchain(vec![format!("{name} (not installed)")]));
        };
        return Ok(vec![base]);
    }
    let mut found: Vec<Base> = Vec::new();
    let mut searched = Vec::new();
    for name in [PINNED, "nightly"] {
        match by_name(options, name) {
            Ok(Some(base)) => found.push(base),
            Ok(None) => searched.push(format!("{name} (not installed)")),
            Err(error) => searched.push(error.to_string()),
        }
    }
    if found.is_empty() {
        match on_path() {
            Ok(base) => found.push(base),
            Err(error) => searched.push(format!("rustc on the PATH ({error})")),
        }
    }
    if found.is_empty() { Err(no_toolchain(searched)) } else { Ok(found) }
}

fn no_toolchain(searched: Vec<String>) -> CudaBuilderError {
    CudaBuilderError::NoToolchain { searched: searched.join("; "), pinned: PINNED }
}

fn named_by_user(options: &Options, name: &str) -> Result<Option<Base>> {
    let path = Path::new(name);
    if path.components().count() > 1 || path.is_absolute() {
        let sysroot = path.canonicalize().map_err(CudaBuilderError::io("read", path))?;
        return base(name.to_owned(), false, sysroot).map(Some);
    }
    by_name(options, name)
}

/// Returns the rustup toolchain of this name, `None` if there is none.
fn by_name(options: &Options, name: &str) -> Result<Option<Base>> {
    // If the options name a rustup, no other source is used.
    let sysroot = ask_rustup(options, name)
        .or_else(|| if options.rustup.is_none() { in_rustup_home(name) } else { None });
    sysroot.map(|sysroot| base(name.to_owned(), true, sysroot)).transpose()
}

fn base(label: String, in_rustup: bool, sysroot: PathBuf) -> Result<Base> {
    let version = RustcVersion::of(&sysroot.join("bin").join(program("rustc")))?;
    version.check(&label)?;
    Ok(Base { label, in_rustup, sysroot, version })
}

/// Returns a rustup command that installs nothing and ignores the toolchain of the calling process.
pub(super) fn rustup(options: &Options) -> Command {
    let mut command = Command::new(options.rustup.as_deref().unwrap_or(Path::new("rustup")));
    command.env("RUSTUP_AUTO_INSTALL", "0").env_remove("RUSTUP_TOOLCHAIN").env("RUST_BACKTRACE", "0");
    command
}

fn ask_rustup(options: &Options, name: &str) -> Option<PathBuf> {
    let mut command = rustup(options);
    command.args(["which", "--toolchain", name, "rustc"]);
    let output = process::run_ok(&mut command, Duration::from_secs(60)).ok()?;
    sysroot_of(Path::new(output.stdout.trim()))
}

/// `<sysroot>/bin/rustc` -> `<sysroot>`
fn sysroot_of(rustc: &Path) -> Option<PathBuf> {
    Some(rustc.canonicalize().ok()?.parent()?.parent()?.to_owned())
}

/// Finds a toolchain in rustup's folder, for machines without rustup on the PATH.
fn in_rustup_home(name: &str) -> Option<PathBuf> {
    let home =
        env::var_os("RUSTUP_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".rustup")))?;
    let entries = fs::read_dir(home.join("toolchains")).ok()?;
    let mut folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    folders.into_iter().find(|folder| {
        let folder = folder.file_name().unwrap_or_default().to_string_lossy();
        // `nightly` is the folder `nightly-x86_64-…`, and `nightly-2026-05-20-x86_64-…` is another one.
        match folder.strip_prefix(name) {
            Some("") => true,
            Some(rest) => rest.starts_with('-') && !rest[1..].starts_with(|c: char| c.is_ascii_digit()),
            None => false,
        }
    })
}

fn on_path() -> Result<Base> {
    let mut command = Command::new("rustc");
    command.args(["--print", "sysroot"]).env("RUSTUP_AUTO_INSTALL", "0").env_remove("RUSTUP_TOOLCHAIN");
    let output = process::run_ok(&mut command, Duration::from_secs(60))?;
    let sysroot = PathBuf::from(output.stdout.trim());
    base(sysroot.display().to_string(), false, sysroot)
}
