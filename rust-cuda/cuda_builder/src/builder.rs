//! [`CudaBuilder`]: what to build and how, and the loop over architectures.

use std::path::{Path, PathBuf};
use std::thread;

use crate::compile::Compilation;
use crate::krate::Krate;
use crate::toolchain::{self, Toolchain};
use crate::{Arch, CudaBuilderError, KernelInfo, Result};

/// How much debug information the PTX carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DebugInfo {
    /// None. The lint cannot tell copies of a barrier apart then.
    None,
    /// Source lines, for profilers and for the lint. Costs nothing on the device: more than line directives would
    /// make NVIDIA's assembler turn off its optimizations.
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
    /// What it is for.
    pub arch: Arch,
    /// Where it lies: the copy if one was asked for, else the file under the target folder.
    pub path: PathBuf,
    /// LLVM's last form of the same code. The lint reads it, see [`crate::lint`].
    pub llvm_ir: PathBuf,
    /// What the kernels in it say about themselves, in the order of the text.
    pub kernels: Vec<KernelInfo>,
    /// Every file it was made from. A build script prints a `cargo::rerun-if-changed=` line for each.
    pub sources: Vec<PathBuf>,
    /// Whether it was there already, unchanged, and no compiler ran.
    pub fresh: bool,
    /// What the compiler wrote when it succeeded: warnings. Empty if it did not run or wrote to the terminal.
    pub diagnostics: String,
}

impl CudaBuilder {
    /// For the crate whose Cargo.toml lies in the folder `path`.
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

    /// Builds for this architecture alone.
    pub fn arch(self, arch: Arch) -> Self {
        self.archs([arch])
    }

    /// Builds one PTX file for each of these. [`Arch::DEFAULT`] if never called.
    pub fn archs(mut self, archs: impl IntoIterator<Item = Arch>) -> Self {
        self.archs = archs.into_iter().collect();
        self.archs.sort();
        self.archs.dedup();
        self
    }

    /// Cargo features of the kernel crate, besides its default ones.
    pub fn features<S: Into<String>>(mut self, features: impl IntoIterator<Item = S>) -> Self {
        self.features = features.into_iter().map(Into::into).collect();
        self
    }

    /// Leaves out the crate's default features.
    pub fn no_default_features(mut self, yes: bool) -> Self {
        self.no_default_features = yes;
        self
    }

    /// Unstable features of the language to turn on in device crates, besides those that `#[kernel]` needs. So a
    /// kernel's source holds no `#![feature]` and compiles on stable for the CPU.
    pub fn device_features<S: Into<String>>(mut self, features: impl IntoIterator<Item = S>) -> Self {
        self.device_features = features.into_iter().map(Into::into).collect();
        self
    }

    /// Accepted for compatibility and without effect: unoptimized device code is 100 times as long and does not
    /// assemble.
    pub fn release(self, _yes: bool) -> Self {
        self
    }

    /// Debug information; [`DebugInfo::LineTables`] if never called.
    pub fn debug(mut self, debug: DebugInfo) -> Self {
        self.debug = debug;
        self
    }

    /// Lets `a * b + c` be one rounding instead of two. Off if never called, and on in upstream's builder: results
    /// that are the same on every backend need it off.
    pub fn fma_contraction(mut self, yes: bool) -> Self {
        self.fma_contraction = yes;
        self
    }

    /// Division of f32 within 2 ulp (`div.full`) instead of exactly rounded.
    pub fn fast_div(mut self, yes: bool) -> Self {
        self.fast_div = yes;
        self
    }

    /// Square roots of f32 approximated (`sqrt.approx`) instead of exactly rounded.
    pub fn fast_sqrt(mut self, yes: bool) -> Self {
        self.fast_sqrt = yes;
        self
    }

    /// LLVM's limit for unrolling a loop of constant length; 4000 if never called. Its own default, 300, leaves
    /// register arrays of 16 elements and more in local memory.
    pub fn unroll_threshold(mut self, units: u32) -> Self {
        self.unroll_threshold = units;
        self
    }

    /// Compiles every crate with `cfg(cuda_std_checked)`, under which device memory is bounds-checked.
    pub fn checked(mut self, yes: bool) -> Self {
        self.checked = yes;
        self
    }

    /// Asks for a newer PTX version than the architecture implies, for instructions that need it: (8, 3) for 8.3.
    pub fn ptx_version(mut self, major: u32, minor: u32) -> Self {
        self.ptx_version = Some((major, minor));
        self
    }

    /// Writes `to` for `from` at the beginning of source paths in the PTX, so that it is the same on every machine.
    pub fn remap_path_prefix(mut self, from: impl Into<PathBuf>, to: impl Into<PathBuf>) -> Self {
        self.remap.push((from.into(), to.into()));
        self
    }

    /// Copies LLVM's last form of the code beside the PTX, with the ending `.ll`.
    pub fn emit_llvm_ir(mut self, yes: bool) -> Self {
        self.emit_llvm_ir = yes;
        self
    }

    /// Copies the PTX here: a file if the path ends in `.ptx` (with several architectures, each puts its name before
    /// the ending: `kernels.sm_90.ptx`), else a folder that gets `<library>.<arch>.ptx`.
    pub fn copy_to(mut self, path: impl Into<PathBuf>) -> Self {
        self.copy_to = Some(path.into());
        self
    }

    /// The target folder; the kernel crate's workspace's if never called. Output goes to `cuda-builder` in it.
    pub fn target_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.target_dir = Some(path.into());
        self
    }

    /// The device toolchain: a name for rustup or a folder. `KAURI_DEVICE_TOOLCHAIN` if never called.
    pub fn toolchain(mut self, toolchain: impl Into<String>) -> Self {
        self.toolchain = Some(toolchain.into());
        self
    }

    /// Lets cargo write its progress and warnings to the terminal, instead of keeping them for the result.
    pub fn inherit_stderr(mut self, yes: bool) -> Self {
        self.inherit_stderr = yes;
        self
    }

    /// Builds for one architecture.
    ///
    /// # Errors
    /// As [`CudaBuilder::build`]; `BadArch` if several architectures were asked for.
    pub fn build_one(&self) -> Result<Ptx> {
        if self.archs.len() != 1 {
            let text = self.archs.iter().map(Arch::to_string).collect::<Vec<_>>().join(" ");
            return Err(CudaBuilderError::BadArch { text, reason: "one architecture is needed here" });
        }
        self.build().map(|mut built| built.remove(0))
    }

    /// Builds, and gives one PTX file per architecture, in ascending order.
    ///
    /// # Errors
    /// `Compile` with the compiler's words; the errors of [`Toolchain::locate`]; `NotACrate`; `Io`.
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
        // Most of a kernel build is one long pass on one core, so the architectures run side by side.
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
            // Sources that the environment names are at hand: no network, nothing installed.
            Err(CudaBuilderError::NoRustSrc { .. }) if options.rust_src.is_some() => {
                Toolchain::prepare(&options).map(|prepared| prepared.toolchain)
            }
            located => located,
        }
    }
}
