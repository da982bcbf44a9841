//! PTX of the kernels in `kernels`, by the toolchain for device code. Without one the tests of PTX print a line and pass, except with
//! `CI=true`.

use cuda_builder::lint::{self, Finding};
use cuda_builder::ptx::{Function, Instruction, Module};
use cuda_builder::toolchain::{Options, Toolchain};
use cuda_builder::{Arch, CudaBuilder, Ptxas};
use std::env;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Compiled kernels.
pub(crate) struct Ptx {
    text: String,
    /// Findings of the lint.
    pub(crate) findings: Vec<Finding>,
}

/// Returns the PTX, compiled once for all tests of this program; `None` without a toolchain.
pub(crate) fn ptx() -> Option<&'static Ptx> {
    static PTX: OnceLock<Option<Ptx>> = OnceLock::new();
    PTX.get_or_init(build).as_ref()
}

fn build() -> Option<Ptx> {
    // The target folder, which keeps what other tests prepared and compiled.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    if let Err(error) = Toolchain::prepare(&Options { offline: true, ..Options::from_env(target) }) {
        assert!(env::var("CI").map_or(true, |ci| ci != "true"), "{error}");
        println!("skipped: {error}");
        return None;
    }
    let krate = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gallery-kernels");
    write_crate(&krate);
    // The options of the tests of `cuda_builder`, for which the library `core` is compiled already.
    let builder = CudaBuilder::new(&krate).target_dir(target).device_features(["stdarch_nvptx"]);
    let built = builder.arch(Arch::SM_90).build_one().unwrap();
    match Ptxas::locate(target) {
        Ok(ptxas) => drop(ptxas.assemble(&built.path, built.arch).unwrap()),
        Err(error) => println!("not assembled: {error}"),
    }
    Some(Ptx { text: fs::read_to_string(&built.path).unwrap(), findings: lint::check_built(&built).unwrap() })
}

/// Writes a crate around the module `kernels`.
fn write_crate(krate: &Path) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let version = env!("CARGO_PKG_VERSION");
    // In its package this crate has no neighbors.
    let neighbor = package.with_file_name("cuda_std");
    let source =
        if neighbor.is_dir() { format!("path = {neighbor:?}") } else { format!("version = {version:?}") };
    let manifest = format!(
        "[package]\nname = \"gallery-kernels\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [dependencies]\ncuda_std = {{ package = \"kauri-cuda-std\", {source} }}\n[workspace]\n"
    );
    let library = format!(
        "#![no_std]\n#![allow(unsafe_op_in_unsafe_fn)]\n#[path = {:?}]\npub mod kernels;\n",
        package.join("tests/gallery/kernels/mod.rs")
    );
    for (file, text) in [("Cargo.toml", manifest), ("src/lib.rs", library)] {
        let path = krate.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    // The versions that are on this machine already.
    if let Some(lock) =
        package.ancestors().map(|folder| folder.join("Cargo.lock")).find(|lock| lock.is_file())
    {
        fs::copy(lock, krate.join("Cargo.lock")).unwrap();
    }
}

impl Ptx {
    /// Calls a test with the kernel's function.
    pub(crate) fn with<R>(&self, kernel: &str, test: impl FnOnce(&Function<'_>) -> R) -> R {
        let module = Module::parse(&self.text);
        let function = module.functions.iter().find(|function| function.name == kernel);
        test(function.unwrap_or_else(|| panic!("no entry {kernel}")))
    }

    /// Returns the kernel's opcodes whose beginning, up to the first dot, is one of `families`, in the order of the text.
    pub(crate) fn opcodes(&self, kernel: &str, families: &[&str]) -> Vec<String> {
        let is_one =
            |i: &&Instruction<'_>| families.contains(&i.opcode.split('.').next().unwrap_or_default());
        self.with(kernel, |f| f.instructions.iter().filter(is_one).map(|i| i.opcode.to_owned()).collect())
    }

    /// Returns the lint's findings in a kernel.
    pub(crate) fn findings_in(&self, kernel: &str) -> Vec<&Finding> {
        self.findings.iter().filter(|finding| finding.kernel == kernel).collect()
    }

    /// Returns the state space of a variable of the module, as its declaration says.
    pub(crate) fn space_of(&self, variable: &str) -> Option<&str> {
        let module = Module::parse(&self.text);
        let line = module.variables.iter().find(|other| other.name == variable)?.line;
        self.text.lines().nth(line - 1)?.split_whitespace().find(|word| [".global", ".shared"].contains(word))
    }
}
