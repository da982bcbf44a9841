//! Locates the kernels' PTX and compresses it into the library. It builds nothing: `cargo xtask ptx` does.
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
    let mut files = folders.iter().map(|dir| list(dir)).find(|files| !files.is_empty()).unwrap_or_default();
    if !cfg!(feature = "cuda") || env::var_os("KAURI_EMBED_PTX").is_some_and(|value| value == "0") {
        files.clear();
    }
    if env::var_os("CARGO_FEATURE_RESEARCH").is_none() {
        files.retain(|(family, ..)| !family.starts_with("research-"));
    }

    let mut table = String::from("static EMBEDDED: &[Embedded] = &[\n");
    let mut before = (String::new(), String::new());
    for (family, arch, path) in files {
        let text =
            fs::read_to_string(&path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
        // A device runs the PTX of the next lower architecture as well: no need for the same text twice.
        let this = (family.clone(), without_target(&text));
        if this == before {
            continue;
        }
        before = this;
        let deflated = deflate(text.as_bytes());
        let file = out_dir.join(format!("{family}.sm_{arch}.deflate"));
        fs::write(&file, deflated).unwrap_or_else(|e| panic!("cannot write {}: {e}", file.display()));
        table += &format!(
            "    Embedded {{ family: {family:?}, arch: {arch}, deflated: include_bytes!({file:?}) }},\n",
        );
    }
    table += "];\n";
    fs::write(out_dir.join("ptx_table.rs"), table).expect("OUT_DIR is writable");
}

#[cfg(feature = "cuda")]
fn deflate(text: &[u8]) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec(text, 9)
}

/// Only builds with CUDA embed kernels.
#[cfg(not(feature = "cuda"))]
fn deflate(_: &[u8]) -> Vec<u8> {
    Vec::new()
}

/// A PTX text but for the line that names its architecture.
fn without_target(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with(".target")).collect::<Vec<_>>().join("\n")
}

/// OUT_DIR is `<target>/[<triple>/]<profile>/build/<package>/out`; the target folder is the one with cargo's tag in it.
fn target_dir(out_dir: &Path) -> PathBuf {
    let tagged = out_dir.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file());
    tagged.or(out_dir.ancestors().nth(4)).unwrap_or(out_dir).to_path_buf()
}

/// The files `<family>.sm_<arch>.ptx` of a folder.
fn list(dir: &Path) -> Vec<(String, u32, PathBuf)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (family, arch) = name.strip_suffix(".ptx")?.split_once(".sm_")?;
            Some((family.to_string(), arch.parse().ok()?, entry.path()))
        })
        .collect();
    files.sort();
    files
}
