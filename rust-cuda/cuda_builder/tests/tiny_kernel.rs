//! Builds a tiny kernel crate, written by the test, to PTX and checks the result.
//!
//! Needs a device toolchain. Without one the tests print a line and pass, except with `CI=true`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cuda_builder::lint::{self, Rule};
use cuda_builder::toolchain::{Options, Toolchain};
use cuda_builder::{Arch, CudaBuilder, CudaBuilderError, Ptxas};

const MANIFEST: &str = r#"
[package]
name = "tiny-kernel"
version = "0.1.0"
edition = "2024"
[features]
bad = []
broken = []
[lib]
crate-type = ["lib"]
[lints.rust]
unexpected_cfgs = "deny"
[workspace]
"#;

/// Has no `#![feature]`: the builder enables the features that device code needs.
const SOURCE: &str = r#"
#![no_std]
use core::arch::nvptx::{_block_dim_x, _block_idx_x, _syncthreads, _thread_idx_x};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

core::arch::global_asm!(
    "// kauri.kernel name=tiny_scale block={block} min_blocks=2 max_regs=0 shared=0 hot=1 params=8,8,4",
    block = const 64u32
);
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn tiny_scale(x: *const f32, y: *mut f32, n: u32) {
    let i = unsafe { _block_idx_x() * _block_dim_x() + _thread_idx_x() } as u32;
    let mut inside = false;
    if i < n {
        unsafe { *y.add(i as usize) = *x.add(i as usize) * *x.add(i as usize) + 1.0 };
        inside = true;
    }
    unsafe { _syncthreads() };
    if inside && cfg!(cuda_std_checked) {
        unsafe { *y.add(i as usize) += 3.0 };
    }
}

core::arch::global_asm!("// kauri.kernel name=tiny_noop block=0 min_blocks=0 max_regs=0 shared=0 hot=0 params=");
#[unsafe(no_mangle)]
pub extern "ptx-kernel" fn tiny_noop() {}

#[cfg(feature = "bad")]
mod bad {
    use super::*;

    #[repr(C)]
    pub struct Both(*const f32, *mut f32);

    // Everything here is what the lint is for.
    core::arch::global_asm!("// kauri.kernel name=tiny_bad block=0 min_blocks=0 max_regs=0 shared=0 hot=1 params=8,8");
    #[unsafe(no_mangle)]
    pub unsafe extern "ptx-kernel" fn tiny_bad(both: Both, n: u32) {
        let i = unsafe { _thread_idx_x() } as u32;
        let mut ok = false;
        if i < n {
            unsafe { *both.1.add(i as usize) = 2.0 * *both.0.add(i as usize) };
            ok = true;
        }
        unsafe { core::arch::asm!("bar.sync 0;") };
        if ok {
            let mut local = [0.0; 8];
            for j in 0..n {
                local[(j % 8) as usize] += unsafe { *both.0.add(j as usize) };
            }
            unsafe { *both.1.add(i as usize) += local[(i % 8) as usize] };
        }
    }
}

#[cfg(feature = "broken")]
fn broken() -> u32 {
    "no number"
}
"#;

/// A crate on disk, removed at the end together with what was built of it.
struct Tiny {
    folder: PathBuf,
    built: Vec<PathBuf>,
}

impl Tiny {
    fn new(test: &str) -> Tiny {
        // A space in the path, because users have those.
        let folder = env::temp_dir().join(format!("tiny kernel-{test}-{}", std::process::id()));
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("Cargo.toml"), MANIFEST).unwrap();
        fs::write(folder.join("src/lib.rs"), SOURCE).unwrap();
        Tiny { folder, built: Vec::new() }
    }

    fn builder(&self) -> CudaBuilder {
        CudaBuilder::new(&self.folder).target_dir(target()).device_features(["stdarch_nvptx"])
    }

    fn build(&mut self, builder: &CudaBuilder) -> Vec<cuda_builder::Ptx> {
        let built = builder.build().unwrap();
        self.built.extend(built.iter().map(|ptx| ptx.llvm_ir.parent().unwrap().to_owned()));
        built
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        for folder in self.built.iter().chain([&self.folder]) {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// The workspace's target folder: what `cargo xtask setup` prepared is there, and `core` is compiled once for all.
fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}

/// Whether there is a device toolchain; if not, says so once per test.
fn ready() -> bool {
    let options = Options { offline: true, ..Options::from_env(target()) };
    match Toolchain::prepare(&options) {
        Ok(_) => true,
        Err(error) if env::var("CI").is_ok_and(|ci| ci == "true") => panic!("{error}"),
        Err(error) => {
            println!("skipped: {error}");
            false
        }
    }
}

#[test]
fn two_architectures() {
    if !ready() {
        return;
    }
    let mut tiny = Tiny::new("two");
    let builder =
        tiny.builder().archs([Arch::SM_90, Arch::SM_75]).copy_to(tiny.folder.join("out/kernels.ptx"));
    let built = tiny.build(&builder);
    assert_eq!(built.iter().map(|ptx| ptx.arch).collect::<Vec<_>>(), [Arch::SM_75, Arch::SM_90]);
    for ptx in &built {
        assert!(!ptx.fresh);
        assert_eq!(ptx.diagnostics, "");
        assert!(ptx.path.ends_with(format!("out/kernels.{}.ptx", ptx.arch)), "{:?}", ptx.path);
        let text = fs::read_to_string(&ptx.path).unwrap();
        assert!(text.contains(&format!(".target {}", ptx.arch)));
        assert!(text.contains("tiny_scale_param_2\n)\n.maxntid 64, 1, 1\n.minnctapersm 2\n{\n"), "{text}");
        assert!(text.contains("tiny_noop()\n{\n"), "{text}");
        assert!(text.contains("mul.rn.f32") && !text.contains("fma.rn.f32"), "contracted by default");
        let names: Vec<&str> = ptx.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["tiny_scale", "tiny_noop"]);
        assert_eq!((ptx.kernels[0].block, ptx.kernels[0].params.as_slice()), (64, [8, 8, 4].as_slice()));
        assert_eq!(lint::check_built(ptx).unwrap(), []);
    }
}

#[test]
fn unchanged_kernels_start_no_compiler() {
    if !ready() {
        return;
    }
    let mut tiny = Tiny::new("fresh");
    let builder = tiny.builder().arch(Arch::SM_90);
    let fresh = |tiny: &mut Tiny, builder: &CudaBuilder| tiny.build(builder)[0].fresh;
    assert!(!fresh(&mut tiny, &builder));
    assert!(fresh(&mut tiny, &builder));
    // Other options are another build, and do not undo the first.
    assert!(!fresh(&mut tiny, &builder.clone().fma_contraction(true)));
    assert!(!fresh(&mut tiny, &builder.clone().fast_div(true)));
    assert!(fresh(&mut tiny, &builder));

    let source = tiny.folder.join("src/lib.rs");
    fs::write(&source, format!("{SOURCE}\n// changed\n")).unwrap();
    assert!(!fresh(&mut tiny, &builder));
    // A new time is no change.
    fs::write(&source, format!("{SOURCE}\n// changed\n")).unwrap();
    assert!(fresh(&mut tiny, &builder));
    // A PTX file that somebody touched is made again.
    let ptx = tiny.build(&builder).remove(0);
    fs::write(&ptx.path, "nothing").unwrap();
    assert!(!fresh(&mut tiny, &builder));
}

#[test]
fn options_reach_the_code() {
    if !ready() {
        return;
    }
    let mut tiny = Tiny::new("options");
    let builder = tiny.builder().arch(Arch::SM_90);
    let mut text = |builder: CudaBuilder| fs::read_to_string(&tiny.build(&builder)[0].path).unwrap();
    assert!(text(builder.clone().fma_contraction(true)).contains("fma.rn.f32"));
    assert!(text(builder.clone().checked(true)).contains("0f40400000"), "cfg(cuda_std_checked) adds 3.0");
    assert!(text(builder.clone().ptx_version(8, 3)).contains(".version 8.3"));
}

#[test]
fn the_lint_finds_what_is_bad() {
    if !ready() {
        return;
    }
    let mut tiny = Tiny::new("bad");
    let builder = tiny.builder().arch(Arch::SM_90).features(["bad"]);
    let ptx = tiny.build(&builder).remove(0);
    let findings = lint::check_built(&ptx).unwrap();
    assert!(findings.iter().all(|finding| finding.kernel == "tiny_bad"), "{findings:#?}");
    for rule in [
        Rule::Parameters,
        Rule::LocalMemory,
        Rule::GenericAccess,
        Rule::AsmCollective,
        Rule::DuplicatedCollective,
    ] {
        assert!(findings.iter().any(|finding| finding.rule == rule), "{rule} in {findings:#?}");
    }
}

#[test]
fn the_assembler_agrees() {
    if !ready() {
        return;
    }
    let ptxas = match Ptxas::locate(target()) {
        Ok(ptxas) => ptxas,
        Err(error) => return println!("skipped: {error}"),
    };
    let mut tiny = Tiny::new("ptxas");
    let builder = tiny.builder().arch(Arch::SM_90);
    let ptx = tiny.build(&builder).remove(0);
    let kernels = ptxas.assemble(&ptx.path, ptx.arch).unwrap();
    let scale = kernels.iter().find(|kernel| kernel.name == "tiny_scale").unwrap();
    assert!(scale.is_entry && scale.registers > 0 && scale.barriers == 1, "{scale:?}");
    assert_eq!((scale.spill_stores, scale.stack, scale.shared), (0, 0, 0));
    let error = ptxas.assemble(&tiny.folder.join("src/lib.rs"), ptx.arch).unwrap_err();
    assert!(matches!(error, CudaBuilderError::Command { .. }), "{error}");
}

#[test]
fn the_compiler_speaks_for_itself() {
    if !ready() {
        return;
    }
    let tiny = Tiny::new("broken");
    let error = tiny.builder().arch(Arch::SM_90).features(["broken"]).build().unwrap_err().to_string();
    assert!(error.starts_with("tiny-kernel does not compile for sm_90:\n"), "{error}");
    assert!(error.contains("mismatched types") && error.contains("src/lib.rs:"), "{error}");
}

/// Cargo, rustup and the user leave variables in the environment that are meant for the host's build.
#[test]
fn the_callers_environment_stays_outside() {
    if !ready() {
        return;
    }
    let mut this = Command::new(env::current_exe().unwrap());
    this.args(["--exact", "unchanged_kernels_start_no_compiler"]);
    for (name, value) in [
        ("RUSTFLAGS", "--no-such-flag"),
        ("CARGO_ENCODED_RUSTFLAGS", "--no-such-flag"),
        ("RUSTC", "no-such-rustc"),
        ("RUSTC_WRAPPER", "no-such-wrapper"),
        ("RUSTC_WORKSPACE_WRAPPER", "no-such-wrapper"),
        ("RUSTUP_TOOLCHAIN", "no-such-toolchain"),
        ("CARGO_TARGET_DIR", "/dev/null/no-such-folder"),
        ("CARGO_BUILD_TARGET", "no-such-target"),
        ("CARGO_BUILD_RUSTFLAGS", "--no-such-flag"),
        ("CARGO_PROFILE_RELEASE_LTO", "off"),
        ("CARGO_PROFILE_RELEASE_PANIC", "unwind"),
    ] {
        this.env(name, value);
    }
    let output = this.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
