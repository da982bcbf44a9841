//! Everything that can go wrong, each with what to run next.

use std::io;
use std::path::{Path, PathBuf};

/// An error of this crate. The message says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaBuilderError {
    /// There is no nightly compiler to build device code with.
    #[error(
        "no nightly rustc for device code (looked for: {searched}): run `cargo xtask setup`, or \
         `rustup toolchain install {pinned} --profile minimal -c rust-src`, or set KAURI_DEVICE_TOOLCHAIN to a \
         toolchain's name or folder"
    )]
    NoToolchain {
        /// What was looked for, with the reason each did not do.
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
        /// What was tried and did not work, one line each; empty if nothing was.
        tried: String,
    },

    /// Library sources of another release than the compiler's.
    #[error(
        "the library sources in {path} are of Rust 1.{have}, the compiler is 1.{need}: set KAURI_RUST_SRC to sources \
         of 1.{need}, or run `rustup component add rust-src` for that toolchain"
    )]
    SourceMismatch {
        /// Where the sources lie.
        path: PathBuf,
        /// Their minor version.
        have: u32,
        /// The compiler's minor version.
        need: u32,
    },

    /// KAURI_RUST_SRC names something else than library sources.
    #[error(
        "{path} holds no Rust library sources ({reason}): KAURI_RUST_SRC must name a folder with \
         `library/core/src/lib.rs` (or the `library` folder itself), or a .tar, .tar.gz or .tar.xz of one"
    )]
    BadSource {
        /// What was named.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The crate to compile is not there, or has no readable manifest.
    #[error("{path} is not a kernel crate: {reason}")]
    NotACrate {
        /// The folder that was given.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// Text that names no architecture.
    #[error("`{text}` is not an architecture ({reason}); examples: sm_75, sm_90, sm_90a")]
    BadArch {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// The kernel crate does not compile. The compiler's own words follow.
    #[error("{name} does not compile for {arch}:\n{diagnostics}")]
    Compile {
        /// The crate.
        name: String,
        /// The architecture.
        arch: String,
        /// What cargo and rustc wrote.
        diagnostics: String,
    },

    /// The crate compiled, and what came out is not as expected.
    #[error("the PTX of {name} is not as expected: {reason}")]
    BadPtx {
        /// The crate or file.
        name: String,
        /// What is wrong, with the line.
        reason: String,
    },

    /// NVIDIA's assembler is not there.
    #[error(
        "no ptxas (looked in {searched}): run `cargo xtask setup`, or install a CUDA toolkit, or set KAURI_PTXAS to \
         the program"
    )]
    NoPtxas {
        /// The places looked at.
        searched: String,
    },

    /// A program that was run failed.
    #[error("`{command}` failed: {reason}")]
    Command {
        /// The command line.
        command: String,
        /// Its exit and the end of what it wrote.
        reason: String,
    },

    /// A file could not be read or written.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried: `read`, `write` …
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl CudaBuilderError {
    /// For `map_err` on a call that touches `path`.
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
