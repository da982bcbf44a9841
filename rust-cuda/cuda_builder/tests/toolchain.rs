//! Finding and preparing toolchains, with toolchains and a rustup made of shell scripts: no compiler, no network.
#![cfg(unix)]

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cuda_builder::toolchain::{Options, PINNED, Toolchain};
use cuda_builder::{CudaBuilder, CudaBuilderError};

/// A folder of this test alone, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let folder = env::temp_dir().join(format!("cuda-builder-toolchain-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A folder that answers like a toolchain of this release.
    fn toolchain(&self, name: &str, release: &str, date: &str) -> PathBuf {
        let answer =
            format!("echo commit-hash: 0123456789abcdef\necho commit-date: {date}\necho release: {release}");
        self.script(&format!("{name}/bin/rustc"), &answer);
        self.script(&format!("{name}/bin/cargo"), "exit 1");
        self.file(&format!("{name}/lib/libcompiler.so"), "code");
        self.0.join(name)
    }

    /// Library sources of a release.
    fn sources(&self, name: &str, minor: u32) -> PathBuf {
        let attribute = format!("#[stable(feature = \"a\", since = \"1.{minor}.0\")]\n");
        self.file(&format!("{name}/library/core/src/lib.rs"), &attribute);
        self.0.join(name)
    }

    /// Options that reach nothing outside of this folder.
    fn options(&self, toolchain: &Path) -> Options {
        Options {
            toolchain: Some(toolchain.display().to_string()),
            target_dir: Some(self.0.join("target")),
            rustup: Some(self.0.join("no-such-rustup")),
            offline: true,
            ..Options::default()
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn library(toolchain: &Toolchain) -> PathBuf {
    toolchain.sysroot().join("lib/rustlib/src/rust/library/core/src/lib.rs")
}

#[test]
fn a_missing_toolchain() {
    let scratch = Scratch::new("missing");
    fs::create_dir_all(scratch.0.join("src")).unwrap();
    scratch.file("Cargo.toml", "[package]\nname = \"k\"\n");
    let builder =
        CudaBuilder::new(&scratch.0).target_dir(scratch.0.join("target")).toolchain("nightly-1999-01-01");
    let error = builder.build().unwrap_err();
    assert!(matches!(error, CudaBuilderError::NoToolchain { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("nightly-1999-01-01 (not installed)") && text.contains("cargo xtask setup"),
        "{text}"
    );
}

#[test]
fn a_toolchain_without_sources() {
    let scratch = Scratch::new("bare");
    let options = scratch.options(&scratch.toolchain("nightly", "1.97.0-nightly", "2026-05-19"));
    let text = Toolchain::locate(&options).unwrap_err().to_string();
    assert!(text.contains("no rust-src for") && text.contains("KAURI_RUST_SRC"), "{text}");
    assert!(text.contains("rustup component add rust-src --toolchain nightly-"), "{text}");
    let text = Toolchain::prepare(&options).unwrap_err().to_string();
    assert!(text.contains("tried: offline: Debian was not asked"), "{text}");
}

#[test]
fn compilers_that_will_not_do() {
    let scratch = Scratch::new("old");
    let old = scratch.options(&scratch.toolchain("old", "1.96.0-nightly", "2026-03-01"));
    let error = Toolchain::locate(&old).unwrap_err();
    assert!(matches!(error, CudaBuilderError::TooOld { .. }), "{error}");
    assert!(error.to_string().contains("divergent branches"), "{error}");
    let stable = scratch.options(&scratch.toolchain("stable", "1.97.0", "2026-07-01"));
    let error = Toolchain::locate(&stable).unwrap_err();
    assert!(matches!(error, CudaBuilderError::NotNightly { .. }), "{error}");
}

#[test]
fn sources_from_a_folder_make_a_private_toolchain() {
    let scratch = Scratch::new("folder");
    let base = scratch.toolchain("nightly", "1.97.0-nightly", "2026-05-19");
    let options = Options { rust_src: Some(scratch.sources("sources", 97)), ..scratch.options(&base) };
    assert!(Toolchain::locate(&options).is_err());

    // Several at once make one.
    let made: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| Toolchain::prepare(&options).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(made.iter().all(|prepared| prepared.toolchain == made[0].toolchain));
    assert_eq!(made.iter().filter(|prepared| prepared.steps[0].starts_with("made ")).count(), 1);

    let toolchain = Toolchain::locate(&options).unwrap();
    assert_eq!(toolchain, made[0].toolchain);
    assert!(toolchain.sysroot().starts_with(scratch.0.join("target/kauri-toolchain")));
    assert!(library(&toolchain).is_file() && toolchain.rustc().is_file() && toolchain.cargo().is_file());
    assert!(!base.join("lib/rustlib").exists(), "the installed toolchain was changed");
    // Without the sources named, what was prepared is still found.
    let later = Options { rust_src: None, ..options.clone() };
    assert_eq!(Toolchain::locate(&later).unwrap(), toolchain);

    // Changed sources are another toolchain.
    let attribute = "#[stable(feature = \"a\", since = \"1.97.0\")] // changed\n";
    scratch.file("sources/library/core/src/lib.rs", attribute);
    let changed = Toolchain::prepare(&options).unwrap().toolchain;
    assert_ne!(changed.sysroot(), toolchain.sysroot());
    assert_eq!(fs::read_to_string(library(&changed)).unwrap(), attribute);
    let left: Vec<_> = fs::read_dir(scratch.0.join("target/kauri-toolchain"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.') && name != ".lock")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn sources_from_an_archive() {
    let scratch = Scratch::new("archive");
    let base = scratch.toolchain("nightly", "1.97.0-nightly", "2026-05-19");
    scratch.sources("rust-src-1.97.1", 97);
    let archive = scratch.0.join("rust-src.tar.gz");
    let tar = Command::new("tar")
        .arg("-czf")
        .arg(&archive)
        .arg("-C")
        .arg(&scratch.0)
        .arg("rust-src-1.97.1")
        .status();
    assert!(tar.unwrap().success());
    let options = Options { rust_src: Some(archive.clone()), ..scratch.options(&base) };
    assert!(library(&Toolchain::prepare(&options).unwrap().toolchain).is_file());

    fs::write(&archive, "no archive").unwrap();
    let error = Toolchain::prepare(&options).unwrap_err();
    assert!(matches!(error, CudaBuilderError::BadSource { .. }), "{error}");
}

#[test]
fn sources_of_another_release_are_refused() {
    let scratch = Scratch::new("mismatch");
    let base = scratch.toolchain("nightly", "1.97.0-nightly", "2026-05-19");
    let options = Options { rust_src: Some(scratch.sources("sources", 98)), ..scratch.options(&base) };
    let error = Toolchain::prepare(&options).unwrap_err();
    assert!(matches!(error, CudaBuilderError::SourceMismatch { have: 98, need: 97, .. }), "{error}");
    assert!(Toolchain::locate(&options).is_err());
}

/// A rustup that knows one toolchain and obeys `component add` in the given way.
fn rustup(scratch: &Scratch, base: &Path, component_add: &str) -> PathBuf {
    let base = base.display();
    scratch.script(
        "rustup",
        &format!(
            "case \"$1 $3\" in\n'which nightly') echo '{base}/bin/rustc';;\n'component rust-src') {component_add};;\n\
             *) echo unknown >&2; exit 1;;\nesac"
        ),
    )
}

#[test]
fn rustup_is_asked_for_the_component() {
    let scratch = Scratch::new("rustup");
    let base = scratch.toolchain("nightly", "1.97.0-nightly", "2026-05-19");
    let from = scratch.sources("sources", 97);
    let add = format!(
        "mkdir -p {0}/lib/rustlib/src && cp -r {1} {0}/lib/rustlib/src/rust",
        base.display(),
        from.display()
    );
    let options = Options {
        rustup: Some(rustup(&scratch, &base, &add)),
        offline: false,
        ..scratch.options(Path::new("nightly"))
    };
    assert!(matches!(Toolchain::locate(&options), Err(CudaBuilderError::NoRustSrc { .. })));
    let prepared = Toolchain::prepare(&options).unwrap();
    assert!(prepared.steps[0].contains("component add rust-src --toolchain nightly"), "{:?}", prepared.steps);
    assert_eq!(prepared.toolchain.sysroot(), base.canonicalize().unwrap());
    // The next time there is nothing to do.
    assert!(Toolchain::prepare(&options).unwrap().steps[0].starts_with("found "));
}

#[test]
fn the_pinned_toolchain_is_installed_where_none_is() {
    let scratch = Scratch::new("install");
    let new = scratch.toolchain("new", "1.97.0-nightly", "2026-05-19");
    let from = scratch.sources("sources", 97);
    let (new, from, there) = (new.display(), from.display(), scratch.0.join("there"));
    let there = there.display();
    let rustup = scratch.script(
        "rustup",
        &format!(
            "case \"$1 $3\" in\n'which {PINNED}') test -e {there} && echo '{new}/bin/rustc';;\n\
             'toolchain {PINNED}') mkdir -p {new}/lib/rustlib/src && cp -r {from} {new}/lib/rustlib/src/rust && touch {there};;\n\
             *) exit 1;;\nesac"
        ),
    );
    let options = Options { rustup: Some(rustup), offline: false, ..scratch.options(Path::new(PINNED)) };
    assert!(matches!(Toolchain::locate(&options), Err(CudaBuilderError::NoToolchain { .. })));
    let offline = Options { offline: true, ..options.clone() };
    assert!(matches!(Toolchain::prepare(&offline), Err(CudaBuilderError::NoToolchain { .. })));
    let prepared = Toolchain::prepare(&options).unwrap();
    assert!(prepared.steps[0].contains("toolchain install"), "{:?}", prepared.steps);
    assert!(prepared.steps[1].starts_with("found "), "{:?}", prepared.steps);
}

#[test]
fn what_rustup_could_not_do_is_told() {
    let scratch = Scratch::new("no-net");
    let base = scratch.toolchain("nightly", "1.97.0-nightly", "2026-05-19");
    let options = Options {
        rustup: Some(rustup(&scratch, &base, "echo 'error: could not download' >&2; exit 1")),
        // Without a target folder there is no private toolchain, and so nobody asks Debian.
        target_dir: None,
        offline: false,
        ..scratch.options(Path::new("nightly"))
    };
    let text = Toolchain::prepare(&options).unwrap_err().to_string();
    assert!(text.contains("rustup component add rust-src --toolchain nightly`, or set"), "{text}");
    assert!(text.contains("tried: ") && text.contains("could not download"), "{text}");
}
