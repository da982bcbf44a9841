//! NVIDIA's assembler, which reports a kernel's resources on a real GPU: registers, spills, shared memory.
//!
//! No build and no run needs it (the driver has an assembler). Tests use it to check registers and spills; machine code that it made
//! ahead of time loads without the driver's assembler.

mod report;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{Arch, CudaBuilderError, Result, files, process};
pub use report::KernelResources;

/// The Python package that contains the program (a 50 MB wheel, no CUDA toolkit), and its version.
const PACKAGE: &str = "nvidia-cuda-nvcc";
const VERSION: &str = "13.5.37";
const LIMIT: Duration = Duration::from_secs(600);

/// The program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptxas {
    path: PathBuf,
}

impl Ptxas {
    /// Finds the program: `KAURI_PTXAS`, then the copy that [`Ptxas::prepare`] installed in the target folder, then the
    /// PATH, then the CUDA toolkit's usual folder.
    ///
    /// # Errors
    /// `NoPtxas` with the searched paths.
    pub fn locate(target_dir: &Path) -> Result<Ptxas> {
        let name = format!("ptxas{}", env::consts::EXE_SUFFIX);
        if let Some(path) = env::var_os("KAURI_PTXAS").filter(|path| !path.is_empty()) {
            // A named path that does not exist is an error; another program in its place would surprise.
            return Ptxas::at(&path).ok_or_else(|| no_ptxas(format!("KAURI_PTXAS={}", path.display())));
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).chain([PathBuf::from("/usr/local/cuda/bin")]);
        find_below(&install_dir(target_dir), &name, 4)
            .into_iter()
            .chain(folders.map(|folder| folder.join(&name)))
            .find_map(Ptxas::at)
            .ok_or_else(|| {
                no_ptxas(format!("{}, the PATH, /usr/local/cuda/bin", install_dir(target_dir).display()))
            })
    }

    /// Returns the program at this path, if there is a file.
    pub fn at(path: impl Into<PathBuf>) -> Option<Ptxas> {
        Some(Ptxas { path: path.into() }).filter(|ptxas| ptxas.path.is_file())
    }

    /// Returns the program's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Finds the program, or installs it in the target folder with Python's pip. The second value describes the steps.
    /// Safe to call repeatedly and from several processes at once.
    ///
    /// # Errors
    /// `NoPtxas` with pip's output.
    pub fn prepare(target_dir: &Path) -> Result<(Ptxas, Vec<String>)> {
        let found = |ptxas: Ptxas| {
            let step = format!("found ptxas: {}", ptxas.path.display());
            (ptxas, vec![step])
        };
        match Ptxas::locate(target_dir) {
            Ok(ptxas) => return Ok(found(ptxas)),
            // A path named by the user is not replaced.
            Err(error) if env::var_os("KAURI_PTXAS").is_some_and(|path| !path.is_empty()) => {
                return Err(error);
            }
            Err(_) => {}
        }
        let installed = install_dir(target_dir);
        let _lock = files::Lock::acquire(&installed.with_file_name(".lock"))?;
        if let Ok(ptxas) = Ptxas::locate(target_dir) {
            return Ok(found(ptxas));
        }
        let partial = files::unique_beside(&installed);
        let result = install(&partial).and_then(|step| {
            let _ = fs::remove_dir_all(&installed);
            fs::rename(&partial, &installed).map_err(CudaBuilderError::io("write", &installed))?;
            Ok(step)
        });
        let _ = fs::remove_dir_all(&partial);
        let step = result.map_err(|error| no_ptxas(error.to_string()))?;
        Ok((Ptxas::locate(target_dir)?, vec![step]))
    }

    /// Assembles a PTX file for an architecture and returns the resources of each kernel. The machine code is discarded.
    ///
    /// # Errors
    /// `Command` with the assembler's output.
    pub fn assemble(&self, ptx: &Path, arch: Arch) -> Result<Vec<KernelResources>> {
        let cubin = temporary("cubin");
        let output = self.run(ptx, arch, &cubin);
        let _ = fs::remove_file(&cubin);
        output
    }

    /// Assembles a PTX text for an architecture and returns the machine code, which the driver loads without compiling.
    ///
    /// # Errors
    /// `Command` with the assembler's output; `Io`.
    pub fn machine_code(&self, ptx: &str, arch: Arch) -> Result<Vec<u8>> {
        let (file, cubin) = (temporary("ptx"), temporary("cubin"));
        let assembled = files::write_atomic(&file, ptx.as_bytes())
            .and_then(|()| self.run(&file, arch, &cubin))
            .and_then(|_| fs::read(&cubin).map_err(CudaBuilderError::io("read", &cubin)));
        let _ = (fs::remove_file(&file), fs::remove_file(&cubin));
        assembled
    }

    /// Returns the program's version, such as `V13.5.37`.
    ///
    /// # Errors
    /// `Command` with the program's output.
    pub fn version(&self) -> Result<String> {
        let mut command = Command::new(&self.path);
        let output = process::run_ok(command.arg("--version"), LIMIT)?;
        let version =
            output.stdout.lines().find_map(|line| line.split_once("release ")?.1.split(", ").nth(1));
        version.map(str::to_owned).ok_or_else(|| CudaBuilderError::Command {
            command: process::describe(&command),
            reason: format!("no version in `{}`", output.stdout.trim()),
        })
    }

    fn run(&self, ptx: &Path, arch: Arch, cubin: &Path) -> Result<Vec<KernelResources>> {
        let mut command = Command::new(&self.path);
        command.arg("-v").arg(format!("-arch={arch}")).arg(ptx).arg("-o").arg(cubin);
        // ptxas writes its report to the error stream.
        process::run_ok(&mut command, LIMIT).map(|output| report::parse(&output.stderr))
    }
}

/// Returns a path that no other call uses.
fn temporary(extension: &str) -> PathBuf {
    files::unique_beside(&env::temp_dir().join(format!("kauri.{extension}")))
}

fn install_dir(target_dir: &Path) -> PathBuf {
    target_dir.join("kauri-toolchain").join("ptxas").join(VERSION)
}

fn no_ptxas(searched: String) -> CudaBuilderError {
    CudaBuilderError::NoPtxas { searched }
}

fn install(folder: &Path) -> Result<String> {
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "install", "--no-deps", "--only-binary=:all:", "--quiet", "--no-input"]);
    command.args(["--disable-pip-version-check", "--target"]).arg(folder);
    command.arg(format!("{PACKAGE}=={VERSION}"));
    process::run_ok(&mut command, LIMIT)?;
    Ok(format!("ran `{}`", process::describe(&command)))
}

/// Finds files of this name in a folder tree; the wheel's layout (`nvidia/cu13/bin/ptxas`) changes with the major version.
fn find_below(folder: &Path, name: &str, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    for path in folders {
        if path.is_dir() {
            if depth > 0 {
                found.extend(find_below(&path, name, depth - 1));
            }
        } else if path.file_name().is_some_and(|other| other == name) {
            found.push(path);
        }
    }
    found
}
