//! Items in a file, which several threads read and write by position.

use crate::error::{Error, Result};
use bytemuck::Pod;
use std::fs::File;
use std::io;
use std::path::Path;

/// Items of one type in a file, one behind the other from a byte on.
#[derive(Clone, Copy)]
pub(crate) struct FilePart<'a> {
    pub(crate) file: &'a File,
    /// The path that errors name.
    pub(crate) path: &'a Path,
    /// The byte of the first item.
    pub(crate) begin: u64,
}

impl FilePart<'_> {
    /// Reads the items from `first` on.
    pub(crate) fn read<T: Pod>(self, first: usize, items: &mut [T]) -> Result<()> {
        let at = self.byte_of::<T>(first);
        read_exact_at(self.file, bytemuck::cast_slice_mut(items), at).map_err(|source| self.error(source))
    }

    /// Writes the items from `first` on.
    pub(crate) fn write<T: Pod>(self, first: usize, items: &[T]) -> Result<()> {
        let at = self.byte_of::<T>(first);
        write_all_at(self.file, bytemuck::cast_slice(items), at).map_err(|source| self.error(source))
    }

    fn byte_of<T>(self, item: usize) -> u64 {
        self.begin + item as u64 * size_of::<T>() as u64
    }

    fn error(self, source: io::Error) -> Error {
        Error::Io { path: self.path.into(), source }
    }
}

/// Fills `bytes` from a position of a file.
#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

/// Writes `bytes` at a position of a file.
#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

/// Fills `bytes` from a position of a file.
#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let got = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (bytes, at) = (&mut bytes[got..], at + got as u64);
    }
    Ok(())
}

/// Writes `bytes` at a position of a file.
#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, at)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        (bytes, at) = (&bytes[written..], at + written as u64);
    }
    Ok(())
}
