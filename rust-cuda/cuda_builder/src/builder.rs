//! [`CudaBuilder`]: the build options, and the loop over architectures.

use std::path::{Path, PathBuf};
use std::thread;

use crate::compile::Compilation;
use crate::krate::Krate;
use crate::toolchain::{self, Toolchain};
use crate::{Arch, CudaBuilderError, KernelInfo, Result};

/// Amount of debug information in the PTX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DebugInfo {
    /// None. The lint then cannot find copies of a barrier.
    None,
    /// Source lines, for profilers and the lint. Costs nothing on the device; more debug information would turn off the
    /// optimizations of NVIDIA's assembler.
    #[default]
    LineTables,
}

/// Compiles a kernel crate to PTX.
///
/// The crate is an ordinary library (`crate-type = ["lib"]` will do). Device code is always compiled by the pinned
/// nightly, optimized, as one unit with everything it depends on. Unchanged sources with unchanged options start no
/// compiler at all.
#[derive(Clone, Debug)]
#[must_use = "nothing is built before `build`"]
pub struct CudaBuilder {
    pub(crate) path: PathBuf,
    pub(crate) archs: Vec<Arch>,
    pub(crate) features: Vec<String>,
    pub(crate) no_default_features: bool,
    pub(crate) device_features: Vec<String>,
    pub(crate) debug: DebugInfo,
    pub(crate) fma_contraction: bool,
    pub(crate) fast_div: bool,
    pub(crate) fast_sqrt: bool,
    pub(crate) unroll_threshold: u32,
    pub(crate) checked: bool,
    pub(crate) ptx_version: Option<(u32, u32)>,
    pub(crate) remap: Vec<(PathBuf, PathBuf)>,
    pub(crate) emit_llvm_ir: bool,
    pub(crate) copy_to: Option<PathBuf>,
    pub(crate) target_dir: Option<PathBuf>,
    pub(crate) toolchain: Option<String>,
    pub(crate) inherit_stderr: bool,
}

/// A PTX file that was built.
#[derive(Clone, Debug)]
pub struct Ptx {
    /// The target architecture.
    pub arch: Arch,
    /// Path of the copy, if [`CudaBuilder::copy_to`] was called, else of the file in the target folder.
    pub path: PathBuf,
    /// The final LLVM IR of the same code. The lint reads it, see [`crate::lint`].
    pub llvm_ir: PathBuf,
    /// Properties that the kernels declare, in the order of the text.
    pub kernels: Vec<KernelInfo>,
    /// All source files. A build script prints a `cargo::rerun-if-changed=` line for each.
    pub sources: Vec<PathBuf>,
    /// True if the file was up to date and no compiler ran.
    pub fresh: bool,
    /// Warnings of a successful compilation. Empty if the compiler did not run or wrote to the terminal.
    pub diagnostics: String,
}

impl CudaBuilder {
    /// Creates a builder for the crate whose Cargo.toml is in the folder `path`.
    pub fn new(path: impl AsRef<Path>) -> CudaBuilder {
        CudaBuilder {
            path: path.as_ref().to_owned(),
            archs: Arch::DEFAULT.to_vec(),
            features: Vec::new(),
            no_default_features: false,
            device_features: Vec::new(),
            debug: DebugInfo::default(),
            fma_contraction: false,
            fast_div: false,
            fast_sqrt: false,
            unroll_threshold: 4000,
            checked: false,
            ptx_version: None,
            remap: Vec::new(),
            emit_llvm_ir: false,
            copy_to: None,
            target_dir: None,
            toolchain: None,
            inherit_stderr: false,
        }
    }

    /// Builds only for this architecture.
    pub fn arch(self, arch: Arch) -> Self {
        self.archs([arch])
    }

    /// Builds one PTX file for each of these architectures. Default: [`Arch::DEFAULT`].
    pub fn archs(mut self, archs: impl IntoIterator<Item = Arch>) -> Self {
        self.archs = archs.into_iter().collect();
        self.archs.sort();
        self.archs.dedup();
        self
    }

    /// Enables cargo features of the kernel crate, in addition to its default features.
    pub fn features<S: Into<String>>(mut self, features: impl IntoIterator<Item = S>) -> Self {
        self.features = features.into_iter().map(Into::into).collect();
        self
    }

    /// Disables the crate's default features.
    pub fn no_default_features(mut self, yes: bool) -> Self {
        self.no_default_features = yes;
        self
    }

    /// Enables unstable language features in device crates, in addition to those that `#[kernel]` needs. A kernel's
    /// source then needs no `#![feature]` and compiles on stable for the CPU.
    pub fn device_features<S: Into<String>>(mut self, features: impl IntoIterator<Item = S>) -> Self {
        self.device_features = features.into_iter().map(Into::into).collect();
        self
    }

    /// Has no effect; exists for compatibility. Device code is always optimized: unoptimized code is 100 times as long and
    /// does not assemble.
    pub fn release(self, _yes: bool) -> Self {
        self
    }

    /// Sets the debug information. Default: [`DebugInfo::LineTables`].
    pub fn debug(mut self, debug: DebugInfo) -> Self {
        self.debug = debug;
        self
    }

    /// Allows `a * b + c` with one rounding instead of two. Default: off, because equal results on every backend need it
    /// off; upstream's default is on.
    pub fn fma_contraction(mut self, yes: bool) -> Self {
        self.fma_contraction = yes;
        self
    }

    /// Uses `f32` division within 2 ulp (`div.full`) instead of exactly rounded division.
    pub fn fast_div(mut self, yes: bool) -> Self {
        self.fast_div = yes;
        self
    }

    /// Uses approximate `f32` square roots (`sqrt.approx`) instead of exactly rounded ones.
    pub fn fast_sqrt(mut self, yes: bool) -> Self {
        self.fast_sqrt = yes;
        self
    }

    /// Sets LLVM's limit for unrolling a loop of constant length. Default: 4000. With LLVM's default of 300, register
    /// arrays of 16 and more elements stay in local memory.
    pub fn unroll_threshold(mut self, units: u32) -> Self {
        self.unroll_threshold = units;
        self
    }

    /// Compiles every crate with `cfg(cuda_std_checked)`, which enables bounds checks of device memory.
    pub fn checked(mut self, yes: bool) -> Self {
        self.checked = yes;
        self
    }

    /// Sets a newer PTX version than the architecture implies, for instructions that need it: (8, 3) for 8.3.
    pub fn ptx_version(mut self, major: u32, minor: u32) -> Self {
        self.ptx_version = Some((major, minor));
        self
    }

    /// Replaces the prefix `from` of source paths in the PTX by `to`, so that the PTX is equal on every machine.
    pub fn remap_path_prefix(mut self, from: impl Into<PathBuf>, to: impl Into<PathBuf>) -> Self {
        self.remap.push((from.into(), to.into()));
        self
    }

    /// Copies the final LLVM IR next to the PTX, with the extension `.ll`.
    pub fn emit_llvm_ir(mut self, yes: bool) -> Self {
        self.emit_llvm_ir = yes;
        self
    }

    /// Copies the PTX to a path. If it ends in `.ptx`, it is a file; with several architectures each file gets the
    /// architecture before the extension (`kernels.sm_90.ptx`). Otherwise it is a folder for `<library>.<arch>.ptx`.
    pub fn copy_to(mut self, path: impl Into<PathBuf>) -> Self {
        self.copy_to = Some(path.into());
        self
    }

    /// Sets the target folder; output goes to its folder `cuda-builder`. Default: the target folder of the kernel crate's
    /// workspace.
    pub fn target_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.target_dir = Some(path.into());
        self
    }

    /// Sets the device toolchain: a rustup name or a folder. Default: `KAURI_DEVICE_TOOLCHAIN`.
    pub fn toolchain(mut self, toolchain: impl Into<String>) -> Self {
        self.toolchain = Some(toolchain.into());
        self
    }

    /// Lets cargo write progress and warnings to the terminal instead of the result.
    pub fn inherit_stderr(mut self, yes: bool) -> Self {
        self.inherit_stderr = yes;
        self
    }

    /// Builds for one architecture.
    ///
    /// # Errors
    /// As [`CudaBuilder::build`]; `BadArch` if several architectures are set.
    pub fn build_one(&self) -> Result<Ptx> {
        if self.archs.len() != 1 {
            let text = self.archs.iter().map(Arch::to_string).collect::<Vec<_>>().join(" ");
            return Err(CudaBuilderError::BadArch { text, reason: "one architecture is needed here" });
        }
        self.build().map(|mut built| built.remove(0))
    }

    /// Builds and returns one PTX file per architecture, in ascending order.
    ///
    /// # Errors
    /// `Compile` with the compiler's output; the errors of [`Toolchain::locate`]; `NotACrate`; `Io`.
    pub fn build(&self) -> Result<Vec<Ptx>> {
        let krate = Krate::open(&self.path)?;
        let target = match &self.target_dir {
            Some(folder) => std::path::absolute(folder).map_err(CudaBuilderError::io("find", folder))?,
            None => krate.target_dir(),
        };
        let toolchain = self.find_toolchain(&target)?;
        let compile = |arch: &Arch| {
            Compilation { builder: self, krate: &krate, toolchain: &toolchain, target: &target, arch: *arch }
                .run()
        };
        if self.inherit_stderr || self.archs.len() == 1 {
            return self.archs.iter().map(compile).collect();
        }
        // Most of a kernel build is one long pass on one core, so architectures are built in parallel.
        thread::scope(|scope| {
            let running: Vec<_> = self.archs.iter().map(|arch| scope.spawn(move || compile(arch))).collect();
            running
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    fn find_toolchain(&self, target: &Path) -> Result<Toolchain> {
        let mut options = toolchain::Options::from_env(target);
        if self.toolchain.is_some() {
            options.toolchain = self.toolchain.clone();
        }
        match Toolchain::locate(&options) {
            // Sources named by the environment need no network and no installation.
            Err(CudaBuilderError::NoRustSrc { .. }) if options.rust_src.is_some() => {
                Toolchain::prepare(&options).map(|prepared| prepared.toolchain)
            }
            located => located,
        }
    }
}
