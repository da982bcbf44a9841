//! The nightly that compiles device code, and its library sources.
//!
//! Device code needs a nightly (kernels use an unstable ABI, and `core` is built from source); the rest of a program does
//! not. The nightly is therefore chosen here and called by its path, without a `rust-toolchain.toml`.

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

/// The nightly that kernels are tested with. Hidden LLVM options and intrinsics change between nightlies, so others may
/// fail.
pub const PINNED: &str = "nightly-2026-05-20";

/// Options of the search for a toolchain.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A toolchain's name for rustup, or the path of its folder. `None` takes [`PINNED`], else `nightly`, else the
    /// `rustc` on the PATH if it is a nightly.
    pub toolchain: Option<String>,
    /// Library sources that replace the toolchain's: a folder, or an archive (.tar, .tar.gz, .tar.xz).
    pub rust_src: Option<PathBuf>,
    /// The cargo target folder, for a private toolchain and downloads. With `None` nothing is stored, and only a toolchain
    /// with its sources is suitable.
    pub target_dir: Option<PathBuf>,
    /// The rustup program. `None` is `rustup` on the PATH.
    pub rustup: Option<PathBuf>,
    /// Refuses every step that needs the network.
    pub offline: bool,
}

impl Options {
    /// Reads the options from the environment: `KAURI_DEVICE_TOOLCHAIN` and `KAURI_RUST_SRC`.
    pub fn from_env(target_dir: impl Into<PathBuf>) -> Options {
        Options {
            toolchain: env::var("KAURI_DEVICE_TOOLCHAIN").ok().filter(|name| !name.is_empty()),
            rust_src: env::var_os("KAURI_RUST_SRC").filter(|path| !path.is_empty()).map(PathBuf::from),
            target_dir: Some(target_dir.into()),
            ..Options::default()
        }
    }

    /// Returns the folder for private toolchains and their downloads.
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

/// A toolchain, and the steps that prepared it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The toolchain, ready to compile kernels.
    pub toolchain: Toolchain,
    /// Descriptions of all attempted steps, in order.
    pub steps: Vec<String>,
}

impl Toolchain {
    /// Finds a toolchain that is ready. Changes nothing and does not use the network.
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
        // `candidates` returns at least one, or an error.
        let base = without_sources.expect("a candidate");
        Err(base.no_rust_src(&[]))
    }

    /// Prepares a toolchain. Tries in this order: the sources named by the options; a toolchain that is ready;
    /// `rustup component add rust-src`; Debian's `rust-src` package. System folders are not changed, and rustup's folders
    /// only by rustup. Safe to call repeatedly and from several processes at once.
    ///
    /// # Errors
    /// As for [`Toolchain::locate`]; `NoRustSrc` lists the attempts. `BadSource` and `SourceMismatch` for unsuitable sources.
    pub fn prepare(options: &Options) -> Result<Prepared> {
        prepare::prepare(options)
    }

    /// Returns the compiler's path.
    pub fn rustc(&self) -> PathBuf {
        self.sysroot.join("bin").join(program("rustc"))
    }

    /// Returns the path of the cargo of the same release.
    pub fn cargo(&self) -> PathBuf {
        self.sysroot.join("bin").join(program("cargo"))
    }

    /// Returns the toolchain's folder.
    pub fn sysroot(&self) -> &Path {
        &self.sysroot
    }

    /// Returns the compiler's version.
    pub fn version(&self) -> &RustcVersion {
        &self.version
    }

    /// Returns a text that identifies compiler and library sources, for build keys.
    pub(crate) fn id(&self) -> String {
        format!("{} {}", self.version, self.sysroot.display())
    }
}

impl std::fmt::Display for Toolchain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.label, self.version)
    }
}

/// A compiler that is new enough, with or without its sources.
#[derive(Clone, Debug)]
struct Base {
    /// Name for messages: `nightly` or a path.
    label: String,
    /// True if rustup manages it under `label`.
    in_rustup: bool,
    sysroot: PathBuf,
    version: RustcVersion,
}

impl Base {
    /// Returns this compiler with its sources, if these exist without further steps.
    fn ready(&self, options: &Options) -> Option<Toolchain> {
        // Sources named by the options take precedence over the toolchain's.
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

/// Returns the folder of a toolchain's library sources.
fn library_in(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib/src/rust/library")
}

fn has_sources(sysroot: &Path) -> bool {
    library_in(sysroot).join("core/src/lib.rs").is_file()
}

fn program(name: &str) -> String {
    format!("{name}{}", env::consts::EXE_SUFFIX)
}
