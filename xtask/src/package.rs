//! `package` and `install`: the published crates and the program, with their kernels.

use crate::cargo::{self, cargo};
use crate::workspace::Workspace;
use crate::{cuda_crates, ptx, setup};
use anyhow::{Context, Result, bail, ensure};
use cuda_builder::Arch;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Make the crates to publish, the library with its kernels
#[derive(clap::Args)]
pub(crate) struct Package {
    /// Only make the packages of rust-cuda, and test each by itself outside of the workspace
    #[arg(long)]
    test_cuda: bool,
}

/// Install the program `kauri` with its kernels
#[derive(clap::Args)]
pub(crate) struct Install {
    /// Arguments for `cargo install`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Maximum size of a package in the registry.
const MAX_BYTES: u64 = 10_000_000;

/// Prefix of the packages with machine code for one architecture.
const MACHINE_CODE: &str = "kauri-sm-";

/// Prefix of the packages in `rust-cuda`.
const CUDA: &str = "kauri-cuda-";

/// A package to publish.
pub(crate) struct Crate {
    pub(crate) name: String,
    version: String,
}

impl Crate {
    /// Returns the architecture of a package with machine code.
    fn architecture(&self) -> Option<&str> {
        self.name.strip_prefix(MACHINE_CODE)
    }
}

impl Package {
    pub(crate) fn run(self) -> Result<()> {
        let workspace = Workspace::find()?;
        if self.test_cuda {
            println!("passed: {}", cuda_crates::check(&workspace)?);
            return Ok(());
        }
        build_kernels(&workspace)?;
        for (krate, path) in package(&workspace)? {
            let bytes = fs::metadata(&path).with_context(|| path.display().to_string())?.len();
            println!("{:<24} {:>8.1} KB  {}", krate.name, bytes as f64 / 1e3, workspace.shown(&path));
        }
        Ok(())
    }
}

impl Install {
    pub(crate) fn run(self) -> Result<()> {
        let workspace = Workspace::find()?;
        build_kernels(&workspace)?;
        let mut command = cargo();
        command.args(["install", "--locked", "--path"]).arg(workspace.root.join("apps/cli"));
        // The target folder of this task has the kernels.
        command.arg("--target-dir").arg(&workspace.target);
        cargo::run(command.args(self.args))
    }
}

fn build_kernels(workspace: &Workspace) -> Result<()> {
    let toolchain = setup::device_toolchain(workspace)?;
    let crates = published()?;
    let archs: Vec<_> = crates.iter().filter_map(Crate::architecture).collect();
    let archs = archs.iter().map(|arch| format!("sm_{arch}").parse()).collect::<Result<Vec<Arch>, _>>()?;
    match ptx::build_all(workspace, &toolchain, false, &archs)? {
        (_, 0) => Ok(()),
        (_, findings) => bail!("{findings} findings in the PTX"),
    }
}

/// Packages the crates to publish, with the kernels that are built, and returns the package files.
pub(crate) fn package(workspace: &Workspace) -> Result<Vec<(Crate, PathBuf)>> {
    let crates = published()?;
    let kernels = Kernels::copy(workspace, &crates)?;
    let files = make(workspace, crates)?;
    drop(kernels);
    Ok(files)
}

/// Packages the crates of `rust-cuda`, which need no kernels, and returns the package files.
pub(crate) fn package_cuda(workspace: &Workspace) -> Result<Vec<(Crate, PathBuf)>> {
    let mut crates = published()?;
    crates.retain(|krate| krate.name.starts_with(CUDA));
    make(workspace, crates)
}

fn make(workspace: &Workspace, crates: Vec<Crate>) -> Result<Vec<(Crate, PathBuf)>> {
    let mut command = cargo();
    // The registry knows none of the crates yet, and needs no answer: `--offline` packages a crate beside those it depends on.
    command.args(["package", "--offline", "--no-verify", "--allow-dirty", "--quiet", "--target-dir"]);
    command.arg(&workspace.target);
    command.args(crates.iter().flat_map(|krate| ["--package", &krate.name]));
    cargo::run(&mut command)?;

    let mut files = Vec::new();
    for krate in crates {
        let path = workspace.target.join("package").join(format!("{}-{}.crate", krate.name, krate.version));
        let bytes = fs::metadata(&path).with_context(|| format!("no package {}", path.display()))?.len();
        ensure!(bytes <= MAX_BYTES, "{} takes {bytes} bytes, more than {MAX_BYTES}", workspace.shown(&path));
        files.push((krate, path));
    }
    Ok(files)
}

/// Unpacks the package files into a folder, one folder per crate, and returns the crates with their folders.
pub(crate) fn unpack(packages: Vec<(Crate, PathBuf)>, folder: &Path) -> Result<Vec<(Crate, PathBuf)>> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let unpack = |(krate, file): (Crate, PathBuf)| {
        let unpacked = folder.join(format!("{}-{}", krate.name, krate.version));
        let last = folder.join(file.file_name().context("a package file has a name")?);
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        if !fs::read(&last).is_ok_and(|last| last == bytes) {
            let _ = fs::remove_dir_all(&unpacked);
            // Files in a package have one old date, by which cargo would not notice changes; `m` gives them the present one.
            cargo::run(Command::new("tar").arg("-xzmf").arg(&file).arg("-C").arg(folder))?;
            fs::write(&last, bytes).with_context(|| format!("cannot write {}", last.display()))?;
        }
        Ok((krate, unpacked))
    };
    packages.into_iter().map(unpack).collect()
}

/// Returns the packages of the workspace that may be published; fails if one lacks what the registry shows.
fn published() -> Result<Vec<Crate>> {
    let text = cargo::read(cargo().args(["metadata", "--no-deps", "--format-version=1", "--quiet"]))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let packages = metadata["packages"].as_array().context("cargo lists no packages")?;
    let mut crates = Vec::new();
    for package in packages.iter().filter(|package| package["publish"].is_null()) {
        let name = package["name"].as_str().context("a package has a name")?;
        for field in ["description", "license", "readme", "repository"] {
            ensure!(package[field].is_string(), "the manifest of {name} has no `{field}`");
        }
        for field in ["keywords", "categories"] {
            let entries = package[field].as_array().map_or(0, Vec::len);
            ensure!((1..=5).contains(&entries), "the manifest of {name} has {entries} {field}, not 1 to 5");
        }
        let version = package["version"].as_str().context("a package has a version")?.to_owned();
        crates.push(Crate { name: name.to_owned(), version });
    }
    Ok(crates)
}

/// The packs of kernels in the folders where packages carry them. They are there only while packages are made: build scripts take these
/// folders first.
struct Kernels(Vec<PathBuf>);

impl Kernels {
    /// Copies the PTX to the library, and machine code to the packages of the architectures.
    fn copy(workspace: &Workspace, crates: &[Crate]) -> Result<Self> {
        let machine_code = crates.iter().filter_map(|krate| {
            let arch = krate.architecture()?;
            Some((format!("machine-code/sm-{arch}/packs"), format!("kernels.sm_{arch}.cubin.pack")))
        });
        let ptx = [("host/packs".to_owned(), ".ptx.pack".to_owned())];
        let mut kernels = Kernels(Vec::new());
        for (folder, ending) in ptx.into_iter().chain(machine_code) {
            let folder = workspace.root.join(folder);
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            for entry in fs::read_dir(workspace.ptx_dir(false)).into_iter().flatten() {
                let path = entry?.path();
                let name = path.file_name().and_then(|name| name.to_str()).context("a file has a name")?;
                if name.ends_with(&ending) && !name.starts_with(ptx::TEST_FAMILY) {
                    fs::copy(&path, folder.join(name)).with_context(|| format!("cannot copy {name}"))?;
                }
            }
            kernels.0.push(folder);
        }
        Ok(kernels)
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        self.0.iter().for_each(|folder| drop(fs::remove_dir_all(folder)));
    }
}
