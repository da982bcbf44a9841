//! For build scripts: finds packs and includes them in a crate.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Finds the packs whose names are accepted, and writes `packs.rs` in `OUT_DIR`: an array of their bytes, for
/// `&include!(concat!(env!("OUT_DIR"), "/packs.rs"))` as a `&[&[u8]]`. Returns the number of packs, or
/// `None` if the environment variable `KAURI_EMBED_PTX` is 0, which asks for none.
///
/// The first of these folders with such a pack counts: `packs` in the package, as in a published one; `kauri-ptx` in the target folder of
/// the build; `kauri-ptx` in the target folder of the checkout, whose root is `root` from the package.
///
/// # Panics
/// If `OUT_DIR` cannot be written; outside of a build script.
pub fn embed(root: &str, is_wanted: impl Fn(&str) -> bool) -> Option<usize> {
    let folder_of = |name| PathBuf::from(env::var_os(name).expect("cargo sets it for a build script"));
    let (out_dir, package) = (folder_of("OUT_DIR"), folder_of("CARGO_MANIFEST_DIR"));
    let own_target = target_dir(&out_dir).join("kauri-ptx");
    // Made now if need be: cargo can watch a folder that exists, and would rebuild at every call for one that does not.
    let _ = fs::create_dir_all(&own_target);
    let mut folders = vec![package.join("packs"), own_target];
    // Not twice under two names: a copy of the workspace with the same target folder would then watch others, and cargo build both again.
    let of_workspace = package.join(root).join("target/kauri-ptx");
    if fs::canonicalize(&of_workspace).ok() != fs::canonicalize(&folders[1]).ok() {
        folders.push(of_workspace);
    }
    for dir in folders.iter().filter(|dir| dir.is_dir()) {
        println!("cargo::rerun-if-changed={}", dir.display());
    }
    println!("cargo::rerun-if-env-changed=KAURI_EMBED_PTX");
    let asks_for_none = env::var_os("KAURI_EMBED_PTX").is_some_and(|value| value == "0");
    let mut found = folders.iter().map(|dir| packs(dir, &is_wanted)).filter(|packs| !packs.is_empty());
    let packs = if asks_for_none { Vec::new() } else { found.next().unwrap_or_default() };
    let items: String = packs.iter().map(|path| format!("include_bytes!({path:?}), ")).collect();
    fs::write(out_dir.join("packs.rs"), format!("[{items}]")).expect("OUT_DIR is writable");
    (!asks_for_none).then_some(packs.len())
}

/// OUT_DIR is `<target>/[<triple>/]<profile>/build/<package>/out`; the target folder is the one with cargo's tag in it.
fn target_dir(out_dir: &Path) -> &Path {
    let tagged = out_dir.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file());
    tagged.or(out_dir.ancestors().nth(4)).unwrap_or(out_dir)
}

fn packs(dir: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut packs: Vec<_> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    packs.retain(|path| path.file_name().is_some_and(|name| name.to_str().is_some_and(&is_wanted)));
    packs.sort();
    packs
}
