//! Compiles a Rust kernel crate to PTX with a stock nightly rustc: no CUDA toolkit, no custom compiler.
//!
//! ```no_run
//! use cuda_builder::{Arch, CudaBuilder};
//!
//! let ptx = CudaBuilder::new("../kernels").arch(Arch::SM_90).copy_to("target/ptx/kernels.ptx").build_one()?;
//! for kernel in &ptx.kernels {
//!     assert!(kernel.block <= 1024);
//! }
//! # Ok::<(), cuda_builder::CudaBuilderError>(())
//! ```
//!
//! [`CudaBuilder`] drives cargo, [`toolchain`] chooses the nightly and fetches its library sources, [`lint`] checks the
//! PTX, [`ptxas`] runs NVIDIA's assembler for registers and spills. The crate itself builds on stable and prints nothing;
//! all information is in its results and errors.
//!
//! # Environment
//! | variable | meaning |
//! |---|---|
//! | `KAURI_DEVICE_TOOLCHAIN` | the nightly for device code: a name for rustup or a folder; else [`toolchain::PINNED`], else `nightly` |
//! | `KAURI_RUST_SRC` | library sources to use with it: a folder, or a .tar, .tar.gz or .tar.xz |
//! | `KAURI_PTXAS` | the assembler |
//! | `CARGO_TARGET_DIR` | the target folder, unless [`CudaBuilder::target_dir`] is called |
//!
//! # A kernel crate
//! An ordinary library that depends on `cuda_std`; no `crate-type` and no `#![feature]` are needed. In a build script:
//!
//! ```no_run
//! # use cuda_builder::CudaBuilder;
//! for ptx in CudaBuilder::new("../kernels").copy_to(std::env::var("OUT_DIR").unwrap()).build().unwrap() {
//!     for source in ptx.sources {
//!         println!("cargo::rerun-if-changed={}", source.display());
//!     }
//! }
//! ```

mod arch;
mod bounds;
mod builder;
mod compile;
mod error;
mod files;
mod krate;
mod labels;
pub mod lint;
mod marker;
mod process;
pub mod ptx;
pub mod ptxas;
mod stamp;
pub mod toolchain;

pub use arch::Arch;
pub use builder::{CudaBuilder, DebugInfo, Ptx};
pub use error::CudaBuilderError;
pub use marker::KernelInfo;
pub use ptxas::{KernelResources, Ptxas};
pub use toolchain::Toolchain;

/// Result of every fallible call of this crate.
pub type Result<T, E = CudaBuilderError> = std::result::Result<T, E>;

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
