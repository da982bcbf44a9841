//! A private toolchain: an installed nightly with library sources added, under the target folder.
//!
//! The compiler's files are hard links, so it takes only the 60 MB of the sources. Symbolic links would not work, see
//! [`files::copy_tree`]. The installed toolchain is never written to.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::{Base, Options, Toolchain, has_sources, library_in, source};
use crate::files::{self, Sharing};
use crate::{CudaBuilderError, Result};

/// Returns a text that changes with the sources at a path: size and time of an archive, or of `core` in a folder.
pub(super) fn source_key(source: &Path) -> String {
    let path = source.canonicalize().unwrap_or_else(|_| source.to_owned());
    let witness = ["library/core/src/lib.rs", "core/src/lib.rs"]
        .iter()
        .map(|below| path.join(below))
        .find(|path| path.is_file())
        .unwrap_or_else(|| path.clone());
    let state = fs::metadata(&witness).ok().map(|data| {
        let changed = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        (data.len(), changed)
    });
    files::hash_of(&(path, state))
}

/// Returns the folder of the private toolchain of a compiler and sources; it need not exist.
pub(super) fn folder(options: &Options, base: &Base, key: &str) -> Option<PathBuf> {
    Some(options.private_root()?.join(prefix(base) + key))
}

/// Finds a private toolchain of this compiler that was made before.
pub(super) fn existing(options: &Options, base: &Base) -> Option<PathBuf> {
    let prefix = prefix(base);
    let entries = fs::read_dir(options.private_root()?).ok()?;
    let mut folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    folders.into_iter().find(|folder| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&prefix) && has_sources(folder)
    })
}

fn prefix(base: &Base) -> String {
    format!("{}-{}-", base.version.release, base.version.short_commit())
}

/// Creates the private toolchain of `base` with the sources at `path` (a folder or an archive), unless it exists. The
/// second value is false if it existed.
pub(super) fn make(options: &Options, base: &Base, path: &Path) -> Result<(Toolchain, bool)> {
    let key = source_key(path);
    let (Some(root), Some(folder)) = (options.private_root(), folder(options, base, &key)) else {
        return Err(base.no_rust_src(&["a private toolchain needs a target folder to lie in".to_owned()]));
    };
    if has_sources(&folder) {
        return Ok((base.toolchain_at(folder), false));
    }
    let _lock = files::Lock::acquire(&root.join(".lock"))?;
    // Another process may have created it while this one waited for the lock.
    if has_sources(&folder) {
        return Ok((base.toolchain_at(folder), false));
    }
    // While the lock is held, every hidden folder here was left by a killed process.
    remove_partial(&root);
    let partial = files::unique_beside(&folder);
    let scratch = files::unique_beside(&root.join("sources"));
    let made = assemble(base, path, &partial, &scratch).and_then(|()| {
        // A toolchain without its sources would block the rename.
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&partial, &folder).map_err(CudaBuilderError::io("write", &folder))
    });
    let _ = fs::remove_dir_all(&scratch);
    if made.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    made.map(|()| (base.toolchain_at(folder), true))
}

fn assemble(base: &Base, path: &Path, toolchain: &Path, scratch: &Path) -> Result<()> {
    let library = source::library_of(path, scratch)?;
    source::check_release(&library, path, &base.version)?;
    for part in ["bin", "lib"] {
        files::copy_tree(&base.sysroot.join(part), &toolchain.join(part), Sharing::Links)?;
    }
    // The named sources replace the compiler's sources.
    let _ = fs::remove_dir_all(toolchain.join("lib/rustlib/src"));
    files::copy_tree(&library, &library_in(toolchain), Sharing::Copies)
}

fn remove_partial(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with('.') && entry.path().is_dir() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
