//! Library sources named as a folder or an archive: finds `library/` in them, and their release.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::RustcVersion;
use crate::{CudaBuilderError, Result, files, process};

/// Returns the `library` folder in `source`; unpacks an archive into `scratch` first.
pub(super) fn library_of(source: &Path, scratch: &Path) -> Result<PathBuf> {
    let bad =
        |reason: &str| CudaBuilderError::BadSource { path: source.to_owned(), reason: reason.to_owned() };
    if source.is_dir() {
        return find_library(source).ok_or_else(|| bad("no library/core/src/lib.rs"));
    }
    if !source.is_file() {
        return Err(bad("no such file"));
    }
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    if ![".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz"].iter().any(|ending| name.ends_with(ending)) {
        return Err(bad("neither a folder nor an archive of a known ending"));
    }
    files::create_dir(scratch)?;
    unpack(source, scratch).map_err(|error| bad(&error.to_string()))?;
    find_library(scratch).ok_or_else(|| bad("no library/core/src/lib.rs inside"))
}

/// Unpacks an archive with the system's `tar`, which detects the compression (GNU tar calls `xz` for .xz) and refuses paths
/// outside of the target folder.
fn unpack(archive: &Path, into: &Path) -> Result<()> {
    let mut command = Command::new("tar");
    command.arg("-xf").arg(archive).arg("-C").arg(into);
    process::run_ok(&mut command, Duration::from_secs(300)).map(drop)
}

/// Finds the library folder: `folder` itself, its child, or the child of its only subfolder, as in archives.
fn find_library(folder: &Path) -> Option<PathBuf> {
    let is_library = |path: &Path| path.join("core/src/lib.rs").is_file();
    let below = ["", "library", "rust/library", "lib/rustlib/src/rust/library"];
    let in_folder = |folder: &Path| below.iter().map(|path| folder.join(path)).find(|path| is_library(path));
    in_folder(folder).or_else(|| {
        let mut folders: Vec<PathBuf> =
            fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        folders.sort();
        folders.iter().find_map(|path| in_folder(path).or_else(|| in_folder(&path.join("rust-src"))))
    })
}

/// Refuses sources of another release than the compiler's: `core` and its compiler change together.
pub(super) fn check_release(library: &Path, named: &Path, version: &RustcVersion) -> Result<()> {
    match minor_of(library) {
        Some(have) if have != version.minor => {
            Err(CudaBuilderError::SourceMismatch { path: named.to_owned(), have, need: version.minor })
        }
        _ => Ok(()),
    }
}

/// Returns the minor version of library sources from their stability attributes, because no file states it. The newest
/// items of a release are `since = "1.97.0"`. In a nightly they are `since = "CURRENT_RUSTC_VERSION"`, and the newest
/// number is that of the previous release.
fn minor_of(library: &Path) -> Option<u32> {
    let mut newest = None;
    let mut unnumbered = false;
    for part in ["core/src", "alloc/src", "std/src"] {
        scan(&library.join(part), &mut newest, &mut unnumbered);
    }
    newest.map(|minor| if unnumbered { minor + 1 } else { minor })
}

fn scan(folder: &Path, newest: &mut Option<u32>, unnumbered: &mut bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            scan(&path, newest, unnumbered);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            // Only the attributes count; prose and deprecations name other versions.
            for line in text.lines().filter(|line| line.contains("stable(")) {
                *unnumbered |= line.contains("since = \"CURRENT_RUSTC_VERSION\"");
                *newest = (*newest).max(stable_since(line));
            }
        }
    }
}

fn stable_since(line: &str) -> Option<u32> {
    let (_, version) = line.split_once("since = \"1.")?;
    version.split(['.', '"']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str, attributes: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("cuda-builder-{name}-{}", std::process::id()));
        files::write_atomic(&root.join("library/core/src/lib.rs"), attributes.as_bytes()).unwrap();
        root
    }

    #[test]
    fn the_release_is_read_from_the_attributes() {
        let release = library("release", "#[stable(feature = \"a\", since = \"1.97.0\")]\n");
        assert_eq!(minor_of(&find_library(&release).unwrap()), Some(97));
        let nightly = library(
            "nightly",
            "#[stable(feature = \"a\", since = \"1.96.0\")]\n#[rustc_const_stable(since = \"CURRENT_RUSTC_VERSION\")]\n",
        );
        assert_eq!(minor_of(&find_library(&nightly.join("library")).unwrap()), Some(97));
        for folder in [release, nightly] {
            fs::remove_dir_all(folder).unwrap();
        }
    }

    #[test]
    fn other_things_are_refused() {
        let nothing = Path::new("no/such/thing");
        let error = library_of(nothing, nothing).unwrap_err().to_string();
        assert!(error.contains("KAURI_RUST_SRC must name"), "{error}");
    }
}
