//! Positional reads of a Parquet file, which several threads can do concurrently.

use std::fs::File;
use std::io;

use super::DecodeError;
use crate::memory;
use crate::memory::file_part::read_exact_at;

/// Reads `len` bytes at an offset.
pub(super) fn read_at(file: &File, at: u64, len: usize, label: &'static str) -> Result<Vec<u8>, DecodeError> {
    let mut bytes = memory::filled(len, 0, label)?;
    read_exact_at(file, &mut bytes, at).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => DecodeError::File("the file was truncated while it was read".into()),
        _ => DecodeError::File(error.to_string()),
    })?;
    Ok(bytes)
}
