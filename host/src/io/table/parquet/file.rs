//! Bytes of a file by their place, which any number of threads may read.

use std::fs::File;
use std::io;

use super::Failed;
use crate::memory;

/// `len` bytes, all of which the file has.
pub(super) fn read_at(file: &File, at: u64, len: usize, label: &'static str) -> Result<Vec<u8>, Failed> {
    let mut bytes = memory::vec_with_capacity(len, label)?;
    bytes.resize(len, 0);
    read_exact_at(file, &mut bytes, at).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Failed::File("it has become shorter while it is read".into()),
        _ => Failed::File(error.to_string()),
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
