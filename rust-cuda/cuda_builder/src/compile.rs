//! One compilation: cargo with the flags that compile a crate to one PTX file, the stamp, and the postprocessing of the
//! text.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use crate::krate::{self, Krate};
use crate::{Arch, CudaBuilder, CudaBuilderError, DebugInfo, KernelInfo, Ptx, Result, Toolchain};
use crate::{bounds, files, labels, marker, process, stamp};

const TARGET: &str = "nvptx64-nvidia-cuda";

/// Version of the postprocessing; a new number makes PTX of earlier builds stale.
const FORM: u32 = 1;

/// Unstable features that the expansion of `#[kernel]` needs in the using crate.
const DEVICE_FEATURES: [&str; 2] = ["abi_ptx", "asm_experimental_arch"];

/// Environment variables that would change the nested cargo's build or output folder. A wrapper is set to the empty
/// string rather than removed, which also overrides a wrapper of a configuration file.
const CLEARED: [&str; 9] = [
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "RUSTC",
    "RUSTDOC",
    "RUSTC_BOOTSTRAP",
    "RUSTUP_TOOLCHAIN",
    "CARGO",
    "CARGO_TARGET_DIR",
    "CARGO_INCREMENTAL",
];
const EMPTIED: [&str; 2] = ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"];

/// A crate to compile for an architecture.
pub(crate) struct Compilation<'a> {
    pub(crate) builder: &'a CudaBuilder,
    pub(crate) krate: &'a Krate,
    pub(crate) toolchain: &'a Toolchain,
    pub(crate) target: &'a Path,
    pub(crate) arch: Arch,
}

/// Output paths of a compilation. Different options of one crate have different folders, so that the families of a crate
/// do not invalidate each other's stamps.
struct Outputs {
    ptx: PathBuf,
    llvm_ir: PathBuf,
    stamp: PathBuf,
}

impl Compilation<'_> {
    /// Compiles, unless the result is up to date.
    pub(crate) fn run(&self) -> Result<Ptx> {
        let key = self.key();
        let outputs = self.outputs(&key);
        if stamp::holds(&outputs.stamp, &key) {
            return self.finish(&outputs, true, String::new());
        }
        let _lock = files::Lock::acquire(&self.cargo_target_dir().with_extension("lock"))?;
        // Another process may have compiled this while this one waited for the lock.
        if stamp::holds(&outputs.stamp, &key) {
            return self.finish(&outputs, true, String::new());
        }
        let diagnostics = self.compile(&key, &outputs)?;
        self.finish(&outputs, false, diagnostics)
    }

    /// Returns a key of all inputs other than the sources.
    fn key(&self) -> String {
        let flags = (self.rustflags(), self.cargo_arguments(), self.rustc_arguments(Path::new("")));
        let versions = (env!("CARGO_PKG_VERSION"), FORM, self.toolchain.id());
        files::hash_of(&format!("{:?} {flags:?} {versions:?}", self.krate.folder))
    }

    fn cargo_target_dir(&self) -> PathBuf {
        self.target.join("cuda-builder").join(self.arch.to_string())
    }

    fn outputs(&self, key: &str) -> Outputs {
        let name = &self.krate.library;
        let folder = self.cargo_target_dir().join("ptx").join(format!("{name}-{key}"));
        let file = |ending| folder.join(format!("{name}.{ending}"));
        Outputs { ptx: file("ptx"), llvm_ir: file("ll"), stamp: file("stamp") }
    }

    fn compile(&self, key: &str, outputs: &Outputs) -> Result<String> {
        // Cargo does not know the extra files that rustc writes. With a new folder the last step always runs, and all
        // files in the folder are from this run.
        let raw = files::unique_beside(&self.cargo_target_dir().join("raw"));
        files::create_dir(&raw)?;
        let result = self.compile_into(&raw, key, outputs);
        let _ = fs::remove_dir_all(&raw);
        result
    }

    fn compile_into(&self, raw: &Path, key: &str, outputs: &Outputs) -> Result<String> {
        let begin = SystemTime::now();
        let diagnostics = self.run_cargo(raw)?;
        let ptx = self.finished(&raw.join("out.ptx"))?;
        // The stamp is written last, because it vouches for the other two files.
        files::write_atomic(&outputs.llvm_ir, files::read(&raw.join("out.ll"))?.as_bytes())?;
        files::write_atomic(&outputs.ptx, ptx.as_bytes())?;
        stamp::write(&outputs.stamp, key, begin, &self.inputs()?, &[&outputs.ptx, &outputs.llvm_ir])?;
        Ok(diagnostics)
    }

    /// Returns rustc's PTX with launch bounds and without unused labels.
    fn finished(&self, raw: &Path) -> Result<String> {
        let text = labels::strip(&files::read(raw)?);
        let kernels: Vec<KernelInfo> =
            marker::markers(&text)?.into_iter().map(|(_, kernel)| kernel).collect();
        bounds::insert(&text, &kernels)
    }

    /// Returns the input files: sources of this crate and its path dependencies, and their manifests.
    fn inputs(&self) -> Result<Vec<PathBuf>> {
        let dep_info =
            self.cargo_target_dir().join(TARGET).join("release").join(format!("{}.d", self.krate.library));
        let mut inputs = krate::dep_info(&dep_info)?;
        let manifests: Vec<PathBuf> = inputs.iter().filter_map(|source| krate::manifest_of(source)).collect();
        inputs.extend(manifests);
        inputs.extend(self.krate.manifests());
        inputs.sort();
        inputs.dedup();
        Ok(inputs)
    }

    fn run_cargo(&self, raw: &Path) -> Result<String> {
        let mut command = Command::new(self.toolchain.cargo());
        command.current_dir(&self.krate.folder).args(self.cargo_arguments());
        command.arg("--target-dir").arg(self.cargo_target_dir());
        if !self.builder.inherit_stderr {
            // The captured output then has only the compiler's diagnostics.
            command.arg("--quiet");
        }
        command.arg("--").args(self.rustc_arguments(raw));
        for name in CLEARED {
            command.env_remove(name);
        }
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_BUILD_") || text.starts_with("CARGO_PROFILE_") {
                command.env_remove(&name);
            }
        }
        for name in EMPTIED {
            command.env(name, "");
        }
        command.env("RUSTC", self.toolchain.rustc());
        // Flags in this variable may contain spaces.
        command.env("CARGO_ENCODED_RUSTFLAGS", self.rustflags().join("\u{1f}"));
        let stderr = if self.builder.inherit_stderr { Stdio::inherit() } else { Stdio::piped() };
        let output = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).output();
        let output = output.map_err(|error| CudaBuilderError::Command {
            command: process::describe(&command),
            reason: error.to_string(),
        })?;
        let diagnostics = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return Ok(diagnostics);
        }
        let diagnostics = errors_in(&diagnostics);
        let (name, arch) = (self.krate.package.clone(), self.arch.to_string());
        Err(CudaBuilderError::Compile { name, arch, diagnostics })
    }

    /// Returns the flags for every device crate, including `core`.
    fn rustflags(&self) -> Vec<String> {
        let builder = self.builder;
        let mut flags = vec![format!("-Ctarget-cpu={}", self.arch)];
        if let Some((major, minor)) = builder.ptx_version {
            flags.push(format!("-Ctarget-feature=+ptx{major}{minor}"));
        }
        let features =
            DEVICE_FEATURES.map(str::to_owned).into_iter().chain(builder.device_features.iter().cloned());
        flags.push(format!("-Zcrate-attr=feature({})", features.collect::<Vec<_>>().join(",")));
        // Some crates enable a feature themselves, some do not use it, and some features are internal to `core`.
        flags.extend(["-Aduplicate_features", "-Aunused_features", "-Ainternal_features"].map(str::to_owned));
        flags.push("--check-cfg=cfg(cuda_std_checked)".to_owned());
        if builder.checked {
            flags.push("--cfg=cuda_std_checked".to_owned());
        }
        for (from, to) in &builder.remap {
            flags.push(format!("--remap-path-prefix={}={}", from.display(), to.display()));
        }
        flags
    }

    /// Returns cargo's arguments. Fat LTO with one codegen unit gives one module; without it, calls into `core` stay
    /// unresolved. `immediate-abort` compiles a panic to one trap instead of formatting code. The crate type is set to
    /// cdylib alone, because cargo drops LTO for any other type beside it.
    fn cargo_arguments(&self) -> Vec<String> {
        let builder = self.builder;
        let debug = match builder.debug {
            DebugInfo::None => "false",
            DebugInfo::LineTables => "\"line-directives-only\"",
        };
        let mut arguments: Vec<String> = Vec::new();
        let fixed = "rustc --lib --release --crate-type=cdylib -Zbuild-std=core -Zpanic-immediate-abort";
        arguments.extend(fixed.split(' ').map(str::to_owned));
        arguments.push(format!("--target={TARGET}"));
        let debug = format!("debug={debug}");
        for setting in [
            "panic=\"immediate-abort\"",
            "lto=\"fat\"",
            "codegen-units=1",
            "opt-level=3",
            "overflow-checks=false",
            "debug-assertions=false",
            "incremental=false",
            "strip=\"none\"",
            debug.as_str(),
        ] {
            arguments.extend(["--config".to_owned(), format!("profile.release.{setting}")]);
        }
        if builder.no_default_features {
            arguments.push("--no-default-features".to_owned());
        }
        if !builder.features.is_empty() {
            arguments.push(format!("--features={}", builder.features.join(",")));
        }
        arguments
    }

    /// Returns the flags of the last crate only. As RUSTFLAGS they would make every dependency generate code, which fails
    /// for `core`.
    fn rustc_arguments(&self, raw: &Path) -> Vec<OsString> {
        let builder = self.builder;
        let emit = |kind: &str, name: &str| {
            let mut argument = OsString::from(format!("--emit={kind}="));
            argument.push(raw.join(name));
            argument
        };
        let mut llvm = vec![
            format!("-unroll-threshold={}", builder.unroll_threshold),
            // Limits the unroll threshold to register arrays; otherwise it applies to every loop of constant length.
            "-unroll-full-max-count=128".to_owned(),
            format!("-nvptx-fma-level={}", u8::from(builder.fma_contraction)),
        ];
        if builder.fast_div {
            // 1 is `div.full`, as CUDA's -prec-div=false; 0 would be `div.approx`, wrong for large divisors.
            llvm.push("-nvptx-prec-divf32=1".to_owned());
        }
        if builder.fast_sqrt {
            llvm.push("-nvptx-prec-sqrtf32=0".to_owned());
        }
        // No linker: the assembly is the result, and rustc's linker for this target is a separate component.
        let mut arguments = vec![emit("asm", "out.ptx"), emit("llvm-ir", "out.ll"), "-Zno-link".into()];
        arguments.extend(llvm.into_iter().map(|option| format!("-Cllvm-args={option}").into()));
        if !builder.features.is_empty() {
            // With one family of entries, items that only other families use are dead code.
            arguments.push("-Adead_code".into());
        }
        arguments
    }

    /// Copies the requested files and parses the markers.
    fn finish(&self, outputs: &Outputs, fresh: bool, diagnostics: String) -> Result<Ptx> {
        let text = files::read(&outputs.ptx)?;
        let kernels = marker::markers(&text)?.into_iter().map(|(_, kernel)| kernel).collect();
        let path = match &self.builder.copy_to {
            None => outputs.ptx.clone(),
            Some(destination) => {
                let copy = self.copy_path(destination);
                copy_if_other(&outputs.ptx, &copy)?;
                if self.builder.emit_llvm_ir {
                    copy_if_other(&outputs.llvm_ir, &copy.with_extension("ll"))?;
                }
                copy
            }
        };
        let mut sources = stamp::files_in(&outputs.stamp)?;
        sources.retain(|file| *file != outputs.ptx && *file != outputs.llvm_ir);
        Ok(Ptx {
            arch: self.arch,
            path,
            llvm_ir: outputs.llvm_ir.clone(),
            kernels,
            sources,
            fresh,
            diagnostics,
        })
    }

    fn copy_path(&self, destination: &Path) -> PathBuf {
        if destination.extension().is_none_or(|extension| extension != "ptx") {
            return destination.join(format!("{}.{}.ptx", self.krate.library, self.arch));
        }
        if self.builder.archs.len() == 1 {
            return destination.to_owned();
        }
        destination.with_extension(format!("{}.ptx", self.arch))
    }
}

/// Copies a file if the contents differ. An unchanged copy keeps its time, so that its users are not compiled again.
fn copy_if_other(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).map_err(CudaBuilderError::io("read", from))?;
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    files::write_atomic(to, &bytes)
}

/// Returns the diagnostics of a failed compilation without warnings, such as that of dead code in a dependency whose kernels are not
/// compiled; all of them if nothing else is left.
fn errors_in(diagnostics: &str) -> String {
    let paragraphs = diagnostics.split_inclusive("\n\n");
    let errors: String = paragraphs.filter(|paragraph| !paragraph.starts_with("warning")).collect();
    if errors.trim().is_empty() { diagnostics.to_owned() } else { errors }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_do_not_hide_errors() {
        let warnings = "warning: function `a` is never used\n --> a.rs:1:4\n\nwarning: `a` (lib) generated 1 warning\n\n";
        let error = "error[E0425]: cannot find value `b`\n --> b.rs:1:4\n\nerror: could not compile `b`\n";
        assert_eq!(errors_in(&format!("{warnings}{error}")), error);
        assert_eq!(errors_in(warnings), warnings);
    }
}
