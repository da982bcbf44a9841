//! Temporary files that are being written, so that a program that is told to stop can remove them.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::NamedTempFile;

static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn lock() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // Every change of the set is a single call, so a panic cannot leave it half changed.
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a temporary file and adds it to the set.
pub(super) fn begin(make: impl FnOnce() -> io::Result<NamedTempFile>) -> io::Result<NamedTempFile> {
    let mut unfinished = lock();
    let file = make()?;
    unfinished.insert(file.path().into());
    Ok(file)
}

/// Calls `finish`, which puts a file in its place or removes it, and takes the file out of the set.
pub(super) fn end(
    file: NamedTempFile,
    finish: impl FnOnce(NamedTempFile) -> io::Result<()>,
) -> io::Result<()> {
    let mut unfinished = lock();
    unfinished.remove(file.path());
    finish(file)
}

/// Removes the temporary files of all writes in progress, then calls `end_program`: for programs that a signal ends.
///
/// Writes of this library go to a temporary file that takes the place of the target at the end. Until `end_program` returns, no such file is
/// created or put in its place.
pub fn remove_temporary_files(end_program: impl FnOnce()) {
    let mut unfinished = lock();
    for path in std::mem::take(&mut *unfinished) {
        // The program ends now: there is nothing to do about a file that cannot be removed.
        let _ = std::fs::remove_file(path);
    }
    end_program();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_removed_until_they_are_in_their_place() {
        let folder = tempfile::tempdir().unwrap();
        let entries = || std::fs::read_dir(folder.path()).unwrap().count();
        let new = || begin(|| NamedTempFile::new_in(folder.path())).unwrap();
        let (kept, _unfinished) = (new(), new());
        end(kept, |file| file.persist(folder.path().join("out")).map(drop).map_err(|error| error.error))
            .unwrap();
        end(new(), |_| Err(io::ErrorKind::StorageFull.into())).unwrap_err();
        assert_eq!(entries(), 2);
        let mut is_ended = false;
        remove_temporary_files(|| is_ended = true);
        assert!(is_ended && entries() == 1 && folder.path().join("out").exists());
    }
}
