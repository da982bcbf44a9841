//! A part of `test`: a crate outside of the workspace, as `cargo add kauri` makes it, builds with an empty environment.

use crate::cargo;
use crate::schedules::number_of_commit;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use cuda_lazy::Status;
use serde_json::Value;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variables that a build keeps.
const VARIABLES: [&str; 4] = ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME"];

/// The feature whose dependency needs a CUDA folder.
const CUST: &str = "cust";

/// A test checks every third feature alone; the commit decides with which one it begins.
const FEATURES_IN_TURN: usize = 3;

/// Builds, runs and inspects a program with the default features of kauri, and checks it with none and with single features alone, all
/// without a warning: with each in a thorough test, otherwise with a third of them. Returns a summary.
pub(crate) fn check(workspace: &Workspace, thorough: bool) -> Result<String> {
    let features = features(workspace)?;
    let turn = number_of_commit(workspace);
    let is_alone = |i: usize| thorough || i % FEATURES_IN_TURN == turn % FEATURES_IN_TURN;
    let alone: Vec<&String> =
        features.iter().enumerate().filter(|&(i, _)| is_alone(i)).map(|(_, name)| name).collect();
    // Not below the workspace, whose settings cargo would read.
    let folder = env::temp_dir().join(format!("kauri-outside-{}", std::process::id()));
    let outside = Outside { folder, target: workspace.target.join("outside") };
    outside.write(workspace, &features)?;

    cargo::run(&mut outside.cargo("build"))?;
    let program = outside.target.join("debug/outside");
    check_run(&program)?;
    check_symbols(&fs::read(&program)?)?;

    cargo::run(outside.cargo("build").arg("--no-default-features"))?;
    check_output(&program)?;
    for feature in &alone {
        let mut check = outside.cargo("check");
        check.args(["--no-default-features", "--features", feature]);
        if *feature == CUST {
            check.env("CUDA_LIBRARY_PATH", workspace.root.join("rust-cuda/cuda_trampolines/link"));
        }
        cargo::run(&mut check)?;
    }
    let alone: Vec<&str> = alone.into_iter().map(String::as_str).collect();
    Ok(format!("default features, none, each alone of {}", alone.join(", ")))
}

/// Returns the features of the crate `kauri`.
fn features(workspace: &Workspace) -> Result<Vec<String>> {
    let mut metadata = cargo::cargo();
    metadata.args(["metadata", "--format-version=1", "--no-deps", "--quiet", "--manifest-path"]);
    metadata.arg(workspace.root.join("host/Cargo.toml"));
    let metadata: Value = serde_json::from_str(&cargo::read(&mut metadata)?)?;
    let packages = metadata["packages"].as_array().context("cargo lists packages")?;
    let kauri = packages.iter().find(|package| package["name"] == "kauri").context("one is kauri")?;
    let features = kauri["features"].as_object().context("it has features")?;
    // Each feature of an architecture only adds its crate, and `machine-code` adds them all.
    Ok(features.keys().filter(|name| *name != "default" && !name.starts_with("sm-")).cloned().collect())
}

/// A crate that is removed in the end.
struct Outside {
    folder: PathBuf,
    target: PathBuf,
}

impl Outside {
    fn write(&self, workspace: &Workspace, features: &[String]) -> Result<()> {
        fs::create_dir_all(self.folder.join("src"))?;
        let forwarded = features.iter().map(|name| format!("{name} = ['kauri/{name}']\n"));
        let manifest = format!(
            "[package]\nname = 'outside'\nversion = '0.0.0'\nedition = '2024'\n\
             [dependencies]\nkauri = {{ path = '{}', default-features = false }}\n\
             [features]\ndefault = ['kauri/default']\n{}\
             [profile.dev]\ndebug = false\n",
            workspace.root.join("host").display(),
            forwarded.collect::<String>()
        );
        fs::write(self.folder.join("Cargo.toml"), manifest)?;
        fs::write(self.folder.join("src/main.rs"), PROGRAM)?;
        // The versions that the workspace has downloaded.
        fs::copy(workspace.root.join("Cargo.lock"), self.folder.join("Cargo.lock"))?;
        Ok(())
    }

    fn cargo(&self, subcommand: &str) -> Command {
        let mut command = cargo_in(&self.folder, &self.target);
        command.args([subcommand, "--quiet", "--offline"]);
        // Kernels in the library only cost time here.
        command.env("KAURI_EMBED_PTX", "0");
        command
    }
}

/// Returns this cargo for a folder outside of the workspace: almost without an environment, and warnings are errors.
pub(crate) fn cargo_in(folder: &Path, target: &Path) -> Command {
    let path = PathBuf::from(env::var_os("CARGO").unwrap_or("cargo".into()));
    let mut command = Command::new(&path);
    command.current_dir(folder).env_clear();
    command.envs(VARIABLES.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    // The compiler of this cargo: rustup would take the default one.
    for tool in ["rustc", "rustdoc"] {
        let tool_path = path.with_file_name(tool);
        if tool_path.is_file() {
            command.env(tool.to_uppercase(), tool_path);
        }
    }
    command.env("RUSTFLAGS", "-D warnings").env("CARGO_TARGET_DIR", target);
    command
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The program: it opens the best device and queries a tree on the CPU.
const PROGRAM: &str = r#"
use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", Device::best()?.reason());
    let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
    let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
    println!("{:?}", tree.nearest(&[[0.9, 0.1]], 2)?.row(0).ids());
    Ok(())
}
"#;

fn check_run(program: &Path) -> Result<()> {
    // The loader lists what it would load instead of starting the program.
    let needed = cargo::read(Command::new(program).env_clear().env("LD_TRACE_LOADED_OBJECTS", "1"))?;
    ensure!(needed.contains("libc.so") && !needed.contains("libcuda"), "the program needs {needed}");
    let output = check_output(program)?;
    if let Status::DriverMissing { .. } = cuda_lazy::status() {
        ensure!(output.contains("there is no CUDA driver"), "without a driver the program prints {output}");
    }
    Ok(())
}

fn check_output(program: &Path) -> Result<String> {
    let output = cargo::read(Command::new(program).env_clear())?;
    ensure!(output.ends_with("[2, 0]\n"), "the program prints {output}");
    Ok(output)
}

/// Checks that no symbol of a program is one of the driver's functions.
fn check_symbols(program: &[u8]) -> Result<()> {
    let symbols = symbols(program).context("the program is not a 64-bit ELF file")?;
    ensure!(symbols.contains("main"), "the symbol table has no `main`: it was not read");
    let is_driver =
        |name: &&String| name.strip_prefix("cu").is_some_and(|rest| rest.starts_with(char::is_uppercase));
    let found: Vec<_> = symbols.iter().filter(is_driver).collect();
    ensure!(found.is_empty(), "the program has the driver's symbols {found:?}");
    Ok(())
}

/// Returns the names in the symbol tables of a 64-bit little-endian ELF file.
fn symbols(file: &[u8]) -> Option<BTreeSet<String>> {
    const SYMBOL_TABLE: u64 = 2;
    const DYNAMIC_SYMBOLS: u64 = 11;
    const SYMBOL_BYTES: usize = 24;
    let number = |at: usize, bytes: usize| {
        let bytes = file.get(at..at.checked_add(bytes)?)?;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    };
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (headers, header_bytes) = (number(0x28, 8)? as usize, number(0x3A, 2)? as usize);
    let header = |section: usize| headers + section * header_bytes;
    // Returns the first byte and the number of bytes of a section.
    let range = |section| {
        Some((number(header(section) + 24, 8)? as usize, number(header(section) + 32, 8)? as usize))
    };
    let mut names = BTreeSet::new();
    for section in 0..number(0x3C, 2)? as usize {
        if ![SYMBOL_TABLE, DYNAMIC_SYMBOLS].contains(&number(header(section) + 4, 4)?) {
            continue;
        }
        let (begin, bytes) = range(section)?;
        let (strings, strings_bytes) = range(number(header(section) + 40, 4)? as usize)?;
        let strings = file.get(strings..strings.checked_add(strings_bytes)?)?;
        for symbol in (begin..begin + bytes).step_by(SYMBOL_BYTES) {
            let name = strings.get(number(symbol, 4)? as usize..)?;
            let end = name.iter().position(|&byte| byte == 0)?;
            names.insert(String::from_utf8_lossy(&name[..end]).into_owned());
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A symbol like those of the driver.
    #[unsafe(no_mangle)]
    #[allow(non_snake_case, reason = "the driver's style")]
    extern "C" fn cuOutsideTest() -> i32 {
        0
    }

    #[test]
    fn a_symbol_of_the_driver_is_found() {
        assert_eq!(std::hint::black_box(cuOutsideTest as extern "C" fn() -> i32)(), 0);
        let program = fs::read(env::current_exe().unwrap()).unwrap();
        let error = check_symbols(&program).unwrap_err().to_string();
        assert!(error.contains("[\"cuOutsideTest\"]"), "{error}");
        assert!(symbols(b"text").is_none());
    }
}
