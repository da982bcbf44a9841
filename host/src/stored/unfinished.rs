//! The set of temporary files of writes in progress. An interrupted program can remove them.

use crate::threads::lock;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use tempfile::NamedTempFile;

static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Creates a temporary file, and adds it to the set.
pub(super) fn begin(create: impl FnOnce() -> io::Result<NamedTempFile>) -> io::Result<NamedTempFile> {
    let mut unfinished = lock(&UNFINISHED);
    let file = create()?;
    unfinished.insert(file.path().into());
    Ok(file)
}

/// Calls `finish`, which moves a file to its target or removes it, and takes the file out of the set.
pub(super) fn end(
    file: NamedTempFile,
    finish: impl FnOnce(NamedTempFile) -> io::Result<()>,
) -> io::Result<()> {
    let mut unfinished = lock(&UNFINISHED);
    unfinished.remove(file.path());
    finish(file)
}

/// Removes the temporary files of all writes in progress, then calls `end_program`. A program calls this when a signal
/// ends it.
///
/// The library writes each file under a temporary name and renames it at the end. No temporary file is created or renamed
/// until `end_program` returns.
///
/// ```no_run
/// // In a handler of Ctrl-C.
/// kauri::io::remove_temporary_files(|| std::process::exit(130));
/// ```
pub fn remove_temporary_files(end_program: impl FnOnce()) {
    let mut unfinished = lock(&UNFINISHED);
    for path in std::mem::take(&mut *unfinished) {
        // The program ends now: a file that cannot be removed is ignored.
        let _ = std::fs::remove_file(path);
    }
    end_program();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unfinished_files_are_removed() {
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
