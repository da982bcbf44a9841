//! The nightly that compiles device code, and its library sources.
//!
//! Device code needs a nightly (kernels are an unstable ABI, `core` is built from source), the rest of a program does
//! not. So the nightly is chosen here and called by its path; no `rust-toolchain.toml` needs to know of it.

mod debian;
mod find;
mod prepare;
mod private;
mod source;
mod version;

use std::env;
use std::path::{Path, PathBuf};

use crate::{CudaBuilderError, Result};
pub use version::RustcVersion;

/// The nightly that kernels are tested with. Hidden LLVM options and intrinsics change between nightlies, so another
/// one may work and may not.
pub const PINNED: &str = "nightly-2026-05-20";

/// Where to look for a toolchain.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A toolchain's name for rustup, or the path of its folder. `None` takes [`PINNED`], else `nightly`, else the
    /// `rustc` on the PATH if it is a nightly.
    pub toolchain: Option<String>,
    /// Library sources to use in place of the toolchain's own: a folder, or an archive (.tar, .tar.gz, .tar.xz).
    pub rust_src: Option<PathBuf>,
    /// The cargo target folder, under which a private toolchain and downloads may be kept. `None` keeps nothing:
    /// then only a toolchain that has its sources will do.
    pub target_dir: Option<PathBuf>,
    /// The rustup program. `None` is `rustup` on the PATH.
    pub rustup: Option<PathBuf>,
    /// Refuses every step that would reach the network.
    pub offline: bool,
}

impl Options {
    /// The options that the environment gives: `KAURI_DEVICE_TOOLCHAIN` and `KAURI_RUST_SRC`.
    pub fn from_env(target_dir: impl Into<PathBuf>) -> Options {
        Options {
            toolchain: env::var("KAURI_DEVICE_TOOLCHAIN").ok().filter(|name| !name.is_empty()),
            rust_src: env::var_os("KAURI_RUST_SRC").filter(|path| !path.is_empty()).map(PathBuf::from),
            target_dir: Some(target_dir.into()),
            ..Options::default()
        }
    }

    /// The folder for private toolchains and what is downloaded for them.
    fn private_root(&self) -> Option<PathBuf> {
        self.target_dir.as_ref().map(|target| target.join("kauri-toolchain"))
    }
}

/// A nightly that is new enough and has its library sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    label: String,
    sysroot: PathBuf,
    version: RustcVersion,
}

/// A toolchain, and what was done to have it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The toolchain, ready to compile kernels.
    pub toolchain: Toolchain,
    /// Every step taken or tried, in order, in words.
    pub steps: Vec<String>,
}

impl Toolchain {
    /// Finds a toolchain that is ready. Changes nothing and reaches no network.
    ///
    /// # Errors
    /// `NoToolchain`, `NotNightly`, `TooOld` or `NoRustSrc`, each with what to run.
    pub fn locate(options: &Options) -> Result<Toolchain> {
        let mut without_sources = None;
        for base in find::candidates(options)? {
            if let Some(toolchain) = base.ready(options) {
                return Ok(toolchain);
            }
            without_sources.get_or_insert(base);
        }
        // `candidates` gives at least one or fails.
        let base = without_sources.expect("a candidate");
        Err(base.no_rust_src(&[]))
    }

    /// Makes a toolchain ready. In this order: the sources that the options name; what is there already;
    /// `rustup component add rust-src`; Debian's `rust-src` package. The system's folders stay as they are, rustup's
    /// are changed by rustup alone. Safe to call again and from several processes at once.
    ///
    /// # Errors
    /// As for [`Toolchain::locate`]; `NoRustSrc` then says what was tried. `BadSource` and `SourceMismatch` for
    /// sources that do not fit.
    pub fn prepare(options: &Options) -> Result<Prepared> {
        prepare::prepare(options)
    }

    /// The compiler.
    pub fn rustc(&self) -> PathBuf {
        self.sysroot.join("bin").join(program("rustc"))
    }

    /// The cargo of the same release.
    pub fn cargo(&self) -> PathBuf {
        self.sysroot.join("bin").join(program("cargo"))
    }

    /// The toolchain's folder.
    pub fn sysroot(&self) -> &Path {
        &self.sysroot
    }

    /// The compiler's version.
    pub fn version(&self) -> &RustcVersion {
        &self.version
    }

    /// A text that is another one for another compiler or other library sources: for keys of what was built.
    pub(crate) fn id(&self) -> String {
        format!("{} {}", self.version, self.sysroot.display())
    }
}

impl std::fmt::Display for Toolchain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.label, self.version)
    }
}

/// A compiler that was found and is new enough, with or without its sources.
#[derive(Clone, Debug)]
struct Base {
    /// For messages: `nightly` or a path.
    label: String,
    /// Whether rustup manages it under `label`.
    in_rustup: bool,
    sysroot: PathBuf,
    version: RustcVersion,
}

impl Base {
    /// This compiler with sources, if there are any without doing anything.
    fn ready(&self, options: &Options) -> Option<Toolchain> {
        // Sources that were asked for win over the toolchain's own.
        if let Some(source) = &options.rust_src {
            let folder = private::folder(options, self, &private::source_key(source))?;
            return has_sources(&folder).then(|| self.toolchain_at(folder));
        }
        if has_sources(&self.sysroot) {
            return Some(self.toolchain_at(self.sysroot.clone()));
        }
        private::existing(options, self).map(|folder| self.toolchain_at(folder))
    }

    fn toolchain_at(&self, sysroot: PathBuf) -> Toolchain {
        Toolchain { label: self.label.clone(), sysroot, version: self.version.clone() }
    }

    fn no_rust_src(&self, tried: &[String]) -> CudaBuilderError {
        let name = if self.in_rustup { self.label.clone() } else { PINNED.to_owned() };
        let tried = tried.iter().map(|line| format!("\n  tried: {line}")).collect();
        CudaBuilderError::NoRustSrc { toolchain: self.label.clone(), name, tried }
    }
}

/// Where a toolchain keeps its library sources.
fn library_in(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib/src/rust/library")
}

fn has_sources(sysroot: &Path) -> bool {
    library_in(sysroot).join("core/src/lib.rs").is_file()
}

fn program(name: &str) -> String {
    format!("{name}{}", env::consts::EXE_SUFFIX)
}
