//! `bundle`: a folder that runs the tests and benchmarks on a GPU machine without Rust and without network.

use crate::bench::git_revision;
use crate::cargo::{self, FEATURES, cargo};
use crate::workspace::Workspace;
use crate::{ptx, setup};
use anyhow::{Context, Result, bail};
use cuda_builder::Arch;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Make a folder that runs tests and benchmarks on a GPU machine without Rust or network
#[derive(clap::Args)]
pub(crate) struct Bundle {
    /// Add a file or folder, under `with`
    #[arg(long, value_name = "PATH")]
    with: Vec<PathBuf>,
    /// Add PTX with bounds checks
    #[arg(long)]
    checked: bool,
    /// The folder to make anew [default: bundle in the target folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Maximum size of the folder, so that it is copied quickly.
const MAX_BYTES: u64 = 50_000_000;

/// Excluded tests, which need a compiler or the source tree, or no GPU: whole packages, and single targets as `package.target`.
const LEFT_OUT: [&str; 9] = [
    "xtask",
    "kauri-benches",
    "kauri-cuda-builder",
    "kauri-cuda-sim",
    "kauri-cuda-std-macros",
    "kauri-cuda-lazy.lazy",
    "kauri-cuda-trampolines.trampolines",
    "kauri-test-kernels",
    "kauri-tests.sim",
];

/// Marks a folder that this task made and may remove.
const MARK: &str = "run.sh";

/// A program that cargo built.
struct Program {
    /// Its name in the bundle.
    name: String,
    path: PathBuf,
}

impl Bundle {
    pub(crate) fn run(self) -> Result<()> {
        let workspace = Workspace::find()?;
        let out = self.out.clone().unwrap_or_else(|| workspace.target.join("bundle"));
        if !is_ours(&out) {
            bail!("{} is there and is no bundle", out.display());
        }

        let toolchain = setup::device_toolchain(&workspace)?;
        for (checked, cubin) in [(false, &[Arch::SM_90][..]), (true, &[])] {
            if (!checked || self.checked) && ptx::build_all(&workspace, &toolchain, checked, cubin)?.1 > 0 {
                bail!("there are findings in the PTX");
            }
        }
        let mut tests = without_ptx();
        let mut tests = build(tests.args(["test", "--no-run", "--workspace", FEATURES]), test_name)?;
        // Tests that count the bytes of host memory have no use for a GPU.
        tests.retain(|program| has_tests(&program.path) && program.name != "kauri-tests.memory");
        let mut programs = without_ptx();
        programs.args([
            "build",
            "--release",
            "--package",
            "kauri-cli",
            "--package",
            "kauri-benches",
            FEATURES,
            "--bins",
        ]);
        let programs = build(&mut programs, program_name)?;

        begin(&out)?;
        copy_programs(&workspace, &tests, &out.join("tests"))?;
        copy_programs(&workspace, &programs, &out.join("bin"))?;
        copy_packs(&workspace.ptx_dir(false), &out.join("ptx"))?;
        if self.checked {
            copy_packs(&workspace.ptx_dir(true), &out.join("ptx-checked"))?;
        }
        copy_files(&workspace.root.join("data"), &out.join("data"))?;
        copy_files(&workspace.root.join("benches/rivals"), &out.join("rivals"))?;
        for path in &self.with {
            let name = path.file_name().with_context(|| format!("{} has no name", path.display()))?;
            copy(path, &out.join("with").join(name))?;
        }
        write(&out.join("revision"), &git_revision(&workspace))?;
        check_size(&out)?;
        println!(
            "{}: run.sh test, checked, sanitize, large, demo, suite, bench or all",
            workspace.shown(&out)
        );
        Ok(())
    }
}

/// Returns cargo for programs that load PTX from a folder of the bundle; PTX embedded in each program would be most of the bundle.
fn without_ptx() -> Command {
    let mut command = cargo();
    command.env("KAURI_EMBED_PTX", "0");
    command
}

/// Builds with cargo, and returns the programs for which `name` returns a name.
fn build(command: &mut Command, name: impl Fn(&Value) -> Option<String>) -> Result<Vec<Program>> {
    let messages = cargo::read(command.arg("--message-format=json-render-diagnostics"))?;
    let program = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let path = PathBuf::from(message["executable"].as_str()?);
        Some(Program { name: name(&message)?, path })
    };
    Ok(messages.lines().filter_map(program).collect())
}

/// Names unit tests of libraries `package.unit`, test targets `package.target`.
fn test_name(message: &Value) -> Option<String> {
    let package = package_name(message["package_id"].as_str()?);
    let target = &message["target"];
    let is_library = target["kind"][0].as_str()?.ends_with("lib");
    let name = match target["kind"][0].as_str()? {
        "test" => format!("{package}.{}", target["name"].as_str()?),
        _ if is_library => format!("{package}.unit"),
        _ => return None,
    };
    let is_test = message["profile"]["test"] == true;
    (is_test && !LEFT_OUT.contains(&package) && !LEFT_OUT.contains(&name.as_str())).then_some(name)
}

fn program_name(message: &Value) -> Option<String> {
    message["target"]["name"].as_str().map(str::to_owned)
}

/// The package of an id such as `path+file:///some/folder#kauri@0.1.0`, or `…/folder#0.1.0` where the folder has its name.
fn package_name(id: &str) -> &str {
    let (place, version) = id.split_once('#').unwrap_or((id, ""));
    version.split_once('@').map_or_else(|| place.rsplit('/').next().unwrap_or(place), |(name, _)| name)
}

/// True if the path does not exist, or is an empty folder or an earlier, perhaps unfinished bundle.
fn is_ours(out: &Path) -> bool {
    let is_empty = || fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none());
    !out.exists() || out.join(MARK).is_file() || is_empty()
}

/// Creates a folder with only the script, which marks it as a bundle.
fn begin(out: &Path) -> Result<()> {
    if out.exists() {
        fs::remove_dir_all(out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    write(&out.join(MARK), include_str!("bundle/run.sh"))?;
    make_executable(&out.join(MARK))
}

fn has_tests(program: &Path) -> bool {
    let list = Command::new(program).arg("--list").output();
    list.is_ok_and(|list| String::from_utf8_lossy(&list.stdout).contains(": test"))
}

/// Copies programs without symbols and packed; they are most of a bundle. None may contain the path of the sources.
fn copy_programs(workspace: &Workspace, programs: &[Program], out: &Path) -> Result<()> {
    for Program { name, path } in programs {
        let to = out.join(name);
        copy(path, &to)?;
        // Without these tools the programs are larger; the check of the size notices.
        let _ = Command::new("strip").arg("--strip-all").arg(&to).status();
        if reads_sources(workspace, &fs::read(&to)?) {
            bail!("{name} holds a path of the source tree, which is not there where the bundle runs");
        }
        pack(&to);
    }
    Ok(())
}

/// True if a program contains the path of a folder of the workspace, as `env!("CARGO_MANIFEST_DIR")` does.
fn reads_sources(workspace: &Workspace, program: &[u8]) -> bool {
    let root = workspace.root.as_os_str().as_encoded_bytes();
    let target = workspace.target.as_os_str().as_encoded_bytes();
    let places = program.windows(root.len()).enumerate().filter(|(_, window)| *window == root);
    places.into_iter().any(|(start, _)| {
        let path = &program[start..];
        let end = path.iter().position(|byte| !byte.is_ascii_graphic()).unwrap_or(path.len());
        // Files from build scripts are in the target folder and part of the program; names of sources are for messages.
        !path.starts_with(target) && !path[..end].windows(5).any(|window| window == b"/src/")
    })
}

/// Packs a file in place, by gzip if there is one: `run.sh` unpacks all that it finds packed.
fn pack(path: &Path) {
    let _ = Command::new("gzip").args(["-9", "-f"]).arg(path).status();
}

/// Copies the files of a folder, packed.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    for path in files(from)? {
        copy_packed(&path, to)?;
    }
    Ok(())
}

/// Copies the packs of a folder of PTX.
fn copy_packs(from: &Path, to: &Path) -> Result<()> {
    for path in files(from)? {
        if path.extension().is_some_and(|extension| extension == cuda_pack::EXTENSION) {
            copy(&path, &to.join(path.file_name().context("a file has a name")?))?;
        }
    }
    Ok(())
}

/// Returns the files of a folder, sorted by name; none if the folder does not exist.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        files.push(entry?.path());
    }
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

fn copy_packed(file: &Path, folder: &Path) -> Result<()> {
    let copied = folder.join(file.file_name().context("a file has a name")?);
    copy(file, &copied)?;
    pack(&copied);
    Ok(())
}

/// Copies a file, or a folder with its contents.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
            let path = entry?.path();
            copy(&path, &to.join(path.file_name().context("a file has a name")?))?;
        }
        return Ok(());
    }
    fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
    fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

pub(crate) fn make_executable(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    let _ = path;
    Ok(())
}

/// Prints the size of the bundle, and fails if it is too large.
fn check_size(out: &Path) -> Result<()> {
    let mut files = Vec::new();
    sizes(out, &mut files)?;
    files.sort();
    let total: u64 = files.iter().map(|(bytes, _)| bytes).sum();
    if total <= MAX_BYTES {
        println!("{} files, {:.1} MB", files.len(), total as f64 / 1e6);
        return Ok(());
    }
    for (bytes, path) in files.iter().rev().take(12) {
        println!("{:>8.1} MB  {}", *bytes as f64 / 1e6, path.strip_prefix(out).unwrap_or(path).display());
    }
    bail!("the bundle takes {:.1} MB, more than {} MB", total as f64 / 1e6, MAX_BYTES / 1_000_000)
}

fn sizes(folder: &Path, files: &mut Vec<(u64, PathBuf)>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sizes(&entry.path(), files)?;
        } else {
            files.push((entry.metadata()?.len(), entry.path()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_ids() {
        assert_eq!(package_name("path+file:///w/host#kauri@0.1.0"), "kauri");
        assert_eq!(package_name("path+file:///w/xtask#0.1.0"), "xtask");
        assert_eq!(package_name("path+file:///w/host#kauri@0.1.0"), "kauri");
    }

    #[test]
    fn tests_and_their_names() {
        let message = |package: &str, kind: &str, name: &str| {
            let id = format!("path+file:///w/f#{package}@0.1.0");
            serde_json::json!({ "package_id": id, "profile": { "test": true }, "target": { "kind": [kind], "name": name } })
        };
        assert_eq!(test_name(&message("kauri", "lib", "kauri")).as_deref(), Some("kauri.unit"));
        assert_eq!(
            test_name(&message("kauri-tests", "test", "launch")).as_deref(),
            Some("kauri-tests.launch")
        );
        assert_eq!(test_name(&message("kauri-cuda-lazy", "test", "lazy")), None);
        assert_eq!(test_name(&message("xtask", "bin", "xtask")), None);
    }
}
