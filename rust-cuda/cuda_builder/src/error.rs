//! Errors of this crate; each message says what to run next.

use std::io;
use std::path::{Path, PathBuf};

/// An error of this crate. The message says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaBuilderError {
    /// No nightly compiler for device code.
    #[error(
        "no nightly rustc for device code (looked for: {searched}): run `cargo xtask setup`, or \
         `rustup toolchain install {pinned} --profile minimal -c rust-src`, or set KAURI_DEVICE_TOOLCHAIN to a \
         toolchain's name or folder"
    )]
    NoToolchain {
        /// The candidates, with the reason for which each was rejected.
        searched: String,
        /// The toolchain that this version is tested with.
        pinned: &'static str,
    },

    /// The compiler is not a nightly.
    #[error("{toolchain} is rustc {release}: device code needs a nightly, {advice}", advice = install_advice())]
    NotNightly {
        /// Which toolchain.
        toolchain: String,
        /// Its release, like `1.95.0`.
        release: String,
    },

    /// The compiler miscompiles kernels.
    #[error(
        "{toolchain} is rustc {release} of {date}: nightlies before 1.97 of May 2026 may copy a barrier into \
         divergent branches (functions were not marked convergent on GPU targets), {advice}",
        advice = install_advice()
    )]
    TooOld {
        /// Which toolchain.
        toolchain: String,
        /// Its release.
        release: String,
        /// The date of its last commit.
        date: String,
    },

    /// The compiler has no library sources.
    #[error(
        "no rust-src for {toolchain}: run `cargo xtask setup`, or `rustup component add rust-src --toolchain {name}`, \
         or set KAURI_RUST_SRC to a folder or archive of the library sources of the same release{tried}"
    )]
    NoRustSrc {
        /// Which toolchain.
        toolchain: String,
        /// Its name for rustup.
        name: String,
        /// Failed attempts, one line each; may be empty.
        tried: String,
    },

    /// Library sources of another release than the compiler's.
    #[error(
        "the library sources in {path} are of Rust 1.{have}, the compiler is 1.{need}: set KAURI_RUST_SRC to sources \
         of 1.{need}, or run `rustup component add rust-src` for that toolchain"
    )]
    SourceMismatch {
        /// Path of the sources.
        path: PathBuf,
        /// Their minor version.
        have: u32,
        /// The compiler's minor version.
        need: u32,
    },

    /// KAURI_RUST_SRC does not name library sources.
    #[error(
        "{path} holds no Rust library sources ({reason}): KAURI_RUST_SRC must name a folder with \
         `library/core/src/lib.rs` (or the `library` folder itself), or a .tar, .tar.gz or .tar.xz of one"
    )]
    BadSource {
        /// The named path.
        path: PathBuf,
        /// Why it is invalid.
        reason: String,
    },

    /// The crate to compile does not exist, or has no readable manifest.
    #[error("{path} is not a kernel crate: {reason}")]
    NotACrate {
        /// The given folder.
        path: PathBuf,
        /// Why it is invalid.
        reason: String,
    },

    /// Text that names no architecture.
    #[error("`{text}` is not an architecture ({reason}); examples: sm_75, sm_90, sm_90a")]
    BadArch {
        /// The given text.
        text: String,
        /// Why it is invalid.
        reason: &'static str,
    },

    /// The kernel crate does not compile; with the compiler's output.
    #[error("{name} does not compile for {arch}:\n{diagnostics}")]
    Compile {
        /// The crate.
        name: String,
        /// The architecture.
        arch: String,
        /// Output of cargo and rustc.
        diagnostics: String,
    },

    /// The crate compiled, but the PTX is not as expected.
    #[error("the PTX of {name} is not as expected: {reason}")]
    BadPtx {
        /// The crate or file.
        name: String,
        /// The fault, with its line.
        reason: String,
    },

    /// NVIDIA's assembler was not found.
    #[error(
        "no ptxas (looked in {searched}): run `cargo xtask setup`, or install a CUDA toolkit, or set KAURI_PTXAS to \
         the program"
    )]
    NoPtxas {
        /// The searched paths.
        searched: String,
    },

    /// A program failed.
    #[error("`{command}` failed: {reason}")]
    Command {
        /// The command line.
        command: String,
        /// Its exit status and the last lines of its output.
        reason: String,
    },

    /// A file could not be read or written.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The operation: `read`, `write` …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl CudaBuilderError {
    /// Returns a function for `map_err` that adds the action and the path.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CudaBuilderError {
        move |source| CudaBuilderError::Io { action, path: path.to_owned(), source }
    }
}

fn install_advice() -> String {
    format!(
        "run `rustup toolchain install {} --profile minimal -c rust-src` or set KAURI_DEVICE_TOOLCHAIN to another one",
        crate::toolchain::PINNED
    )
}
