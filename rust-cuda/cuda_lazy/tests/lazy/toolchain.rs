//! The cargo and rustc that built the tests, for building helpers.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The environment variable by which a test knows that it runs in a process of its own.
const CHILD: &str = "KAURI_TEST_CHILD";

/// Where helpers are built; kept between runs.
pub(crate) fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// The folder of the package.
pub(crate) fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The cargo that runs the tests or built them, if it and the sources are on this machine.
pub(crate) fn cargo_path() -> Option<PathBuf> {
    let cargo = PathBuf::from(env::var_os("CARGO").unwrap_or_else(|| OsString::from(env!("CARGO"))));
    let found = cargo.is_file() && package().join("Cargo.toml").is_file() && scratch().is_dir();
    if !found {
        println!("skipped: needs cargo and the sources, which are not on this machine");
    }
    found.then_some(cargo)
}

pub(crate) fn rustc_path(cargo: &Path) -> PathBuf {
    let beside = cargo.with_file_name("rustc");
    if beside.is_file() { beside } else { "rustc".into() }
}

/// Returns a command without the environment of the outer build and of the machine's CUDA.
pub(crate) fn clean(program: PathBuf) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        let of_the_build = name.starts_with("CARGO_PROFILE")
            || name.starts_with("CARGO_BUILD")
            || name.starts_with("RUSTC")
            || ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "CARGO_TARGET_DIR", "MAKEFLAGS"].contains(&&*name);
        let of_cuda = ["CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR"].contains(&&*name);
        if of_the_build || of_cuda {
            command.env_remove(&*name);
        }
    }
    command
}

/// The fake driver's file, built once in a run.
pub(crate) fn fake_driver() -> Option<&'static Path> {
    static FAKE: OnceLock<Option<PathBuf>> = OnceLock::new();
    FAKE.get_or_init(build_fake_driver).as_deref()
}

fn build_fake_driver() -> Option<PathBuf> {
    let cargo = cargo_path()?;
    let folder = scratch().join("fake_driver");
    fs::create_dir_all(&folder).unwrap();
    let source = folder.join("fake_driver.rs");
    fs::write(&source, include_str!("programs/fake_driver.rs")).unwrap();
    let library = folder.join("libcuda.so.1");
    let mut rustc = clean(rustc_path(&cargo));
    rustc.args([
        "--edition=2024",
        "--crate-type=cdylib",
        "-Copt-level=1",
        "-Clink-arg=-Wl,-soname,libcuda.so.1",
        "-o",
    ]);
    run(rustc.arg(&library).arg(&source));
    Some(library)
}

/// Runs one test of this program in a process of its own, with the fake driver.
pub(crate) fn run_with_fake_driver(test: &str) {
    let Some(fake_driver) = fake_driver() else { return };
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(CHILD, "1").env("KAURI_LIBCUDA", fake_driver);
    let output = run(&mut child);
    assert!(output.contains("1 passed"), "{output}");
}

/// True in a process that [`run_with_fake_driver`] started.
pub(crate) fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Runs the command to its end and returns its standard output; panics with all it said if it fails.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{stdout}\n{stderr}", output.status);
    stdout
}
