//! The file of a table, which is read from any position, and again when its rows are written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::error::{Error, FileLocation, Result};
use crate::memory::file_part::read_exact_at;

/// A file that stays open. Each read names its position, so several threads can read concurrently.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) file: Arc<File>,
    /// The path in messages.
    path: PathBuf,
    /// The length and the time of the last change when the file was opened.
    opened: (u64, Option<SystemTime>),
}

impl Input {
    /// Opens a file. Bytes of a pipe or a device are copied first, as by [`copied`](Self::copied).
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).and_then(|file| Ok((file.metadata()?.is_file(), file)));
        match file {
            Ok((true, file)) => Self::new(path, file),
            Ok((false, mut file)) => Self::copied(path, &mut file),
            Err(source) => Err(Error::Io { path: path.into(), source }),
        }
    }

    /// Copies all bytes of a reader to a temporary file, which has no name, so the system removes it when it is closed.
    pub(super) fn copied(path: &Path, reader: &mut dyn Read) -> Result<Self> {
        let mut copy =
            tempfile::tempfile().map_err(|source| Error::Io { path: std::env::temp_dir(), source })?;
        io::copy(reader, &mut copy).map_err(|source| Error::Io { path: path.into(), source })?;
        Self::new(path, copy)
    }

    fn new(path: &Path, file: File) -> Result<Self> {
        let opened = state(&file).map_err(|source| Error::Io { path: path.into(), source })?;
        Ok(Self { file: Arc::new(file), path: path.into(), opened })
    }

    /// Returns the length of the file in bytes.
    pub(super) fn len(&self) -> u64 {
        self.opened.0
    }

    /// Returns a reader of the bytes from a position on.
    pub(super) fn reader(&self, at: u64) -> InputReader<'_> {
        InputReader { input: self, at }
    }

    /// Returns an error if the file has another length or time of change than when it was opened.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        let now = state(&self.file).map_err(|error| self.error(error))?;
        if now == self.opened { Ok(()) } else { Err(self.changed()) }
    }

    /// Returns the error of a file that was written while it was read.
    pub(super) fn changed(&self) -> Error {
        let what = "the file changed while it was read; try again when no program writes it".to_owned();
        Error::InvalidFile { path: self.path.clone(), location: FileLocation::Whole, column: None, what }
    }

    /// Converts an error of reading.
    pub(super) fn error(&self, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => self.changed(),
            _ => Error::Io { path: self.path.clone(), source },
        }
    }
}

fn state(file: &File) -> io::Result<(u64, Option<SystemTime>)> {
    let metadata = file.metadata()?;
    // Some systems have no time of change.
    Ok((metadata.len(), metadata.modified().ok()))
}

/// A reader of the bytes that the file had when it was opened.
pub(super) struct InputReader<'a> {
    input: &'a Input,
    at: u64,
}

impl Read for InputReader<'_> {
    /// Returns [`io::ErrorKind::UnexpectedEof`] if the file has become shorter.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let remaining = self.input.len().saturating_sub(self.at);
        let len = bytes.len().min(usize::try_from(remaining).unwrap_or(usize::MAX));
        read_exact_at(&self.input.file, &mut bytes[..len], self.at)?;
        self.at += len as u64;
        Ok(len)
    }
}

impl Seek for InputReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.input.len().checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
