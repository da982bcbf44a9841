//! Positional reads of a file, which several threads can do concurrently.

use std::fs::File;
use std::io;

use super::DecodeError;
use crate::memory;

/// Reads `len` bytes at an offset.
pub(super) fn read_at(file: &File, at: u64, len: usize, label: &'static str) -> Result<Vec<u8>, DecodeError> {
    let mut bytes = memory::filled(len, 0, label)?;
    read_exact_at(file, &mut bytes, at).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => DecodeError::File("the file was truncated while it was read".into()),
        _ => DecodeError::File(error.to_string()),
    })?;
    Ok(bytes)
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let got = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (bytes, at) = (&mut bytes[got..], at + got as u64);
    }
    Ok(())
}
