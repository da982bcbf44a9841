//! File operations that are safe with concurrent processes: atomic writes, locks, trees of hard links, hashes.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{CudaBuilderError, Result};

pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(CudaBuilderError::io("read", path))
}

pub(crate) fn create_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(CudaBuilderError::io("create", path))
}

/// Writes a temporary file next to `path` and renames it: a reader sees the old or the new text, never a part.
pub(crate) fn write_atomic(path: &Path, text: &[u8]) -> Result<()> {
    if let Some(parent) = path.parent() {
        create_dir(parent)?;
    }
    let partial = unique_beside(path);
    fs::write(&partial, text).map_err(CudaBuilderError::io("write", &partial))?;
    fs::rename(&partial, path).map_err(|error| {
        let _ = fs::remove_file(&partial);
        CudaBuilderError::io("write", path)(error)
    })
}

/// Returns a hidden path in the same folder that no other process or thread uses.
pub(crate) fn unique_beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unique = NEXT.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".{name}.{}.{unique}", process::id()))
}

/// A file lock, held until dropped; other processes wait for it.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    pub(crate) fn acquire(path: &Path) -> Result<Lock> {
        if let Some(parent) = path.parent() {
            create_dir(parent)?;
        }
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(CudaBuilderError::io("open", path))?;
        file.lock().map_err(CudaBuilderError::io("lock", path))?;
        Ok(Lock { _file: file })
    }
}

/// How [`copy_tree`] copies files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Hard links; copies across file systems.
    Links,
    /// Copies, which do not change with the original.
    Copies,
}

/// Copies the tree `from` to `to`. Symbolic links are replaced by their targets: rustc finds its folder by the real path
/// of its library, so a link out of the tree would lead it back to the original.
pub(crate) fn copy_tree(from: &Path, to: &Path, sharing: Sharing) -> Result<()> {
    create_dir(to)?;
    let entries = fs::read_dir(from).map_err(CudaBuilderError::io("read", from))?;
    for entry in entries {
        let entry = entry.map_err(CudaBuilderError::io("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let Ok(source) = source.canonicalize() else { continue }; // a dangling link
        if source.is_dir() {
            copy_tree(&source, &target, sharing)?;
        } else {
            copy_file(&source, &target, sharing).map_err(CudaBuilderError::io("copy", &source))?;
        }
    }
    Ok(())
}

fn copy_file(source: &Path, target: &Path, sharing: Sharing) -> io::Result<()> {
    if sharing == Sharing::Links && fs::hard_link(source, target).is_ok() {
        return Ok(());
    }
    fs::copy(source, target).map(drop)
}

/// Returns a 64-bit hash as hexadecimal digits. It detects changes; it is not cryptographic.
pub(crate) fn hash_of(value: &(impl Hash + ?Sized)) -> String {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Returns the hash of a file's contents, `None` if it cannot be read.
pub(crate) fn hash_file(path: &Path) -> Option<String> {
    fs::read(path).ok().map(|bytes| hash_of(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_linked_or_copied() {
        let root = std::env::temp_dir().join(format!("cuda-builder-files-{}", process::id()));
        write_atomic(&root.join("from/a/b.txt"), b"text").unwrap();
        copy_tree(&root.join("from"), &root.join("linked"), Sharing::Links).unwrap();
        copy_tree(&root.join("from"), &root.join("copied"), Sharing::Copies).unwrap();
        // Written in place, on purpose: a link sees it, a copy does not.
        fs::write(root.join("from/a/b.txt"), "new").unwrap();
        assert_eq!(read(&root.join("linked/a/b.txt")).unwrap(), "new");
        assert_eq!(read(&root.join("copied/a/b.txt")).unwrap(), "text");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_missing_file_has_no_hash() {
        assert_eq!(hash_file(Path::new("no/such/file")), None);
        assert_ne!(hash_of("a"), hash_of("b"));
    }
}
