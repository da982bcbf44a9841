//! Locates the packs of kernels and includes them in the library. It builds nothing: `cargo xtask ptx` does.
//!
//! A published package carries the files in `ptx/`; a checkout has them in the target folder, in `kauri-ptx/`, also for a
//! project that depends on the checkout by path. Where there are none, or with the environment variable `KAURI_EMBED_PTX`
//! set to 0, the library builds all the same and says so when a GPU is used.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let manifest_dir =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let own_target = target_dir(&out_dir).join("kauri-ptx");
    let folders = [manifest_dir.join("ptx"), own_target.clone(), manifest_dir.join("../target/kauri-ptx")];
    // Made now if need be: cargo can watch a folder that exists, and would rebuild at every call for one that does not.
    let _ = fs::create_dir_all(&own_target);
    for dir in folders.iter().filter(|dir| dir.is_dir()) {
        println!("cargo::rerun-if-changed={}", dir.display());
    }
    println!("cargo::rerun-if-env-changed=KAURI_EMBED_PTX");
    let has_feature = |name: &str| env::var_os(format!("CARGO_FEATURE_{name}")).is_some();
    let is_wanted = has_feature("CUDA") && env::var_os("KAURI_EMBED_PTX").is_none_or(|value| value != "0");
    let mut packs = folders.iter().map(|dir| packs(dir)).find(|packs| !packs.is_empty()).unwrap_or_default();
    if packs.is_empty() && is_wanted {
        println!(
            "cargo::warning=no kernels were found, so this build cannot use a GPU: run `cargo xtask ptx` in the clone of kauri \
             and build again"
        );
    }
    packs.retain(|path| is_wanted && (has_feature("RESEARCH") || !is_research(path)));
    let table: String = packs.iter().map(|path| format!("    include_bytes!({path:?}),\n")).collect();
    let table = format!("static EMBEDDED: &[&[u8]] = &[\n{table}];\n");
    fs::write(out_dir.join("packs.rs"), table).expect("OUT_DIR is writable");
}

/// OUT_DIR is `<target>/[<triple>/]<profile>/build/<package>/out`; the target folder is the one with cargo's tag in it.
fn target_dir(out_dir: &Path) -> PathBuf {
    let tagged = out_dir.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file());
    tagged.or(out_dir.ancestors().nth(4)).unwrap_or(out_dir).to_path_buf()
}

/// Returns the packs of PTX in a folder. Machine code is in crates of its own.
fn packs(dir: &Path) -> Vec<PathBuf> {
    let mut packs: Vec<_> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    packs.retain(|path| path.to_str().is_some_and(|path| path.ends_with(".ptx.pack")));
    packs.sort();
    packs
}

fn is_research(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("research."))
}
