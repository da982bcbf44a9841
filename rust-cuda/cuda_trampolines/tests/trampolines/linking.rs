//! Links programs that use `cust`, without CUDA and with a substitute of the driver's library.

use crate::toolchain::{cargo_path, clean, fake_driver, package, run, rustc_path, scratch};
use cuda_lazy::Status;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The linker script without definitions that replaces the library.
const EMPTY_SCRIPT: &[u8] = include_bytes!("../../link/lib64/libcuda.so");

/// A small workspace with a program that names `cuda_trampolines`, and one that gets it through a library. `cust` is built once
/// for all tests; they only replace the `libcuda.so` that its build script found.
struct Programs {
    folder: PathBuf,
    // There is one folder for all tests.
    _alone: MutexGuard<'static, ()>,
}

impl Programs {
    fn write() -> Self {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = scratch().join("programs");
        let dependencies = format!(
            "cust = {{ version = '0.3.2', default-features = false, features = ['bytemuck'] }}\n\
             cuda_trampolines = {{ package = 'kauri-cuda-trampolines', path = '{}' }}\n",
            package().display()
        );
        let head = |name| format!("[package]\nname = '{name}'\nversion = '0.0.0'\nedition = '2024'\n");
        let programs = format!(
            "[workspace]\nmembers = ['wrapper']\n\
             {}[dependencies]\nwrapper = {{ path = 'wrapper' }}\n{dependencies}",
            head("programs")
        );
        let wrapper = format!("{}[dependencies]\n{dependencies}", head("wrapper"));
        for (file, text) in [
            ("Cargo.toml", programs.as_str()),
            ("src/bin/direct.rs", include_str!("programs/direct.rs")),
            ("src/bin/wrapped.rs", include_str!("programs/wrapped.rs")),
            ("wrapper/Cargo.toml", wrapper.as_str()),
            ("wrapper/src/lib.rs", include_str!("programs/wrapper.rs")),
        ] {
            write_if_changed(&folder.join(file), text.as_bytes());
        }
        // The versions that the workspace uses, so that nothing needs to be looked up or downloaded.
        if let Ok(lock) = fs::read(package().join("../../Cargo.lock")) {
            write_if_changed(&folder.join("Cargo.lock"), &lock);
        }
        Self { folder, _alone: alone }
    }

    fn cargo(&self, subcommand: &str) -> Option<Command> {
        let path = cargo_path()?;
        let rustc = rustc_path(&path);
        let mut cargo = clean(path);
        cargo.env("RUSTC", rustc);
        cargo.current_dir(&self.folder).arg(subcommand).arg("--quiet");
        cargo
            .arg("--target-dir")
            .arg(self.folder.join("target"))
            .env("CUDA_LIBRARY_PATH", self.folder.join("cuda"));
        Some(cargo)
    }

    /// Links a program with `libcuda` as the library; `label` distinguishes builds that cargo would take for one.
    fn link(&self, program: &str, libcuda: &[u8], label: &str, linker: Option<&str>) -> Option<PathBuf> {
        write_if_changed(&self.folder.join("cuda/lib64/libcuda.so"), libcuda);
        let mut cargo = self.cargo("rustc")?;
        cargo.args(["--bin", program, "--", &format!("-Cmetadata={label}")]);
        if let Some(linker) = linker {
            cargo.arg(format!("-Clink-arg=-fuse-ld={linker}"));
        }
        run(&mut cargo);
        Some(self.folder.join("target/debug").join(program))
    }
}

/// Leaves the time of an unchanged file alone, so that cargo does not build again.
fn write_if_changed(path: &Path, content: &[u8]) {
    if fs::read(path).is_ok_and(|old| old == content) {
        return;
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// The default linker, and GNU's where it is another one: they search libraries in different ways.
fn linkers() -> Vec<Option<&'static str>> {
    let has_bfd =
        Command::new("ld.bfd").arg("--version").output().is_ok_and(|output| output.status.success());
    if has_bfd { vec![None, Some("bfd")] } else { vec![None] }
}

fn check_with(libcuda: &[u8], label: &str) {
    let Some(fake_driver) = fake_driver() else { return };
    let programs = Programs::write();
    for linker in linkers() {
        for name in ["direct", "wrapped"] {
            let label = format!("{label}-{}", linker.unwrap_or("default"));
            let Some(program) = programs.link(name, libcuda, &label, linker) else { return };
            check(&program, &format!("{name}, {label}"), fake_driver);
        }
    }
}

fn check(program: &Path, what: &str, fake_driver: &Path) {
    // The loader lists what it would load instead of starting the program.
    let needed = run(Command::new(program).env("LD_TRACE_LOADED_OBJECTS", "1"));
    assert!(needed.contains("libc.so"), "{what}: {needed}");
    assert!(!needed.contains("libcuda"), "{what}: {needed}");

    let answer = run(Command::new(program).env_remove("KAURI_LIBCUDA"));
    if matches!(cuda_lazy::status(), Status::DriverMissing { .. }) {
        assert_eq!(answer.trim(), "Err(NoDevice)", "{what}");
    }

    // The fake driver has cuInit, which succeeds, and not what cust calls next.
    let answer = run(Command::new(program).env("KAURI_LIBCUDA", fake_driver));
    assert_eq!(answer.trim(), "Err(NotFound)", "{what}");
}

#[test]
fn programs_link_to_the_empty_script() {
    check_with(EMPTY_SCRIPT, "script");
}

#[test]
fn programs_link_where_there_is_a_real_library() {
    let Some(fake_driver) = fake_driver() else { return };
    check_with(&fs::read(fake_driver).unwrap(), "library");
}

#[test]
fn every_function_that_cust_declares_has_a_trampoline() {
    let programs = Programs::write();
    write_if_changed(&programs.folder.join("cuda/lib64/libcuda.so"), EMPTY_SCRIPT);
    let Some(mut cargo) = programs.cargo("build") else { return };
    let messages = run(cargo.args(["--package=wrapper", "--message-format=json"]));
    let source = messages
        .split("\"src_path\":\"")
        .filter_map(|rest| rest.split('"').next())
        .find(|path| path.contains("/cust_raw-") && path.ends_with("src/lib.rs"))
        .expect("cargo names the sources of cust_raw");
    let declarations = fs::read_to_string(Path::new(source).with_file_name("cuda.rs")).unwrap();
    let declared: Vec<&str> = declarations
        .split("pub fn ")
        .skip(1)
        .filter_map(|rest| rest.split(['(', '<']).next())
        .filter(|name| name.starts_with("cu") && !name.contains(char::is_whitespace))
        .collect();
    assert!(declared.len() > 300, "{}", declared.len());
    for name in declared {
        assert!(cuda_trampolines::symbols().binary_search(&name).is_ok(), "{name} has no trampoline");
    }
}
