//! Atomic writes: a file is replaced completely or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::unfinished;
use crate::error::{Error, Result};

/// Writes a file through `write`, and moves it to `path` in one step.
///
/// The bytes go to a temporary file in the same folder, which replaces `path` once it is on the disk. After an error
/// `path` is unchanged and the temporary file is removed. Links are followed. Pipes and files in `/dev`, such as
/// `/dev/stdout`, cannot be replaced; the bytes are appended to them.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pairs.csv");
/// use std::io::Write;
///
/// kauri::io::write_atomically(&path, |file| writeln!(file, "left,right"))?;
/// let failed = kauri::io::write_atomically(&path, |_| Err(std::io::ErrorKind::StorageFull.into()));
/// assert!(failed.is_err());
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "left,right\n");
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`] with `path`: a folder that is missing or read-only, a full disk, an error of `write`.
pub fn write_atomically(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    write_file(path, |file| write(file))
}

/// [`write_atomically`] for a `write` with its own error type.
///
/// # Errors
/// Errors of `write`, unchanged; otherwise errors of [`write_atomically`].
pub fn write_atomically_or<E: From<Error>>(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), E>,
) -> Result<(), E> {
    let mut failed = None;
    let written = write_file(path, |file| {
        write(file).map_err(|error| {
            failed = Some(error);
            io::ErrorKind::Other.into()
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(written?),
    }
}

/// [`write_atomically_or`] for a `write` that chooses the position of each write. Pipes and files in `/dev` are refused.
pub(crate) fn write_in_place(path: &Path, write: impl FnOnce(&File) -> Result<()>) -> Result<()> {
    let mut failed = None;
    let replaced = match target(path) {
        Ok(Target::Replaced(target)) => replace(&target, |file| {
            write(file).map_err(|error| {
                failed = Some(error);
                io::ErrorKind::Other.into()
            })
        }),
        Ok(Target::Appended) => Err(io::ErrorKind::NotSeekable.into()),
        Err(error) => Err(error),
    };
    match failed {
        Some(error) => Err(error),
        None => replaced.map_err(|source| Error::Io { path: path.into(), source }),
    }
}

fn write_file(path: &Path, write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> Result<()> {
    let result = match target(path) {
        Ok(Target::Appended) => {
            File::options().append(true).open(path).and_then(|file| write_all(&file, write))
        }
        Ok(Target::Replaced(target)) => replace(&target, |file| write_all(file, write)),
        Err(error) => Err(error),
    };
    result.map_err(|source| Error::Io { path: path.into(), source })
}

/// How a path is written.
enum Target {
    /// Bytes are appended.
    Appended,
    /// The file at this path is replaced.
    Replaced(PathBuf),
}

fn target(path: &Path) -> io::Result<Target> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        // `/dev/stdout` can refer to a regular file, which other programs have open and must not lose.
        Ok(metadata) if !metadata.is_file() || path.starts_with("/dev") => Ok(Target::Appended),
        _ => Ok(Target::Replaced(fs::canonicalize(path).unwrap_or_else(|_| path.into()))),
    }
}

/// Returns the folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn replace(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let folder = folder_of(path);
    // Checked separately, since errors of the temporary file would name it instead of `path`.
    fs::metadata(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".kauri-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The permissions of any new file, less the umask; temporary files are private by default.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let file =
        unfinished::begin(|| builder.tempfile_in(folder)).map_err(|error| io::Error::from(error.kind()))?;
    let written = write(file.as_file()).and_then(|()| file.as_file().sync_all());
    unfinished::end(file, |file| match written {
        Ok(()) => file.persist(path).map(drop).map_err(|error| error.error),
        Err(error) => Err(error),
    })
}

fn write_all(file: &File, write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> io::Result<()> {
    let mut buffered = BufWriter::with_capacity(1 << 16, file);
    write(&mut buffered)?;
    buffered.into_inner().map(drop).map_err(io::IntoInnerError::into_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn all_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        write_atomically(&path, |w| w.write_all(b"one")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");

        let half = |w: &mut dyn Write| {
            w.write_all(&vec![b'x'; 1 << 20])?;
            Err(io::ErrorKind::StorageFull.into())
        };
        let error = write_atomically(&path, half).unwrap_err();
        assert!(matches!(&error, Error::Io { path: named, .. } if *named == path), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(entries(folder.path()), 1);

        write_atomically(&path, |w| w.write_all(b"two")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }

    #[test]
    fn paths_that_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write_atomically(folder.path(), |_| Ok(())).is_err());
        assert!(write_atomically(&folder.path().join("missing/out.csv"), |_| Ok(())).is_err());
        assert_eq!(entries(folder.path()), 0);
    }
}
