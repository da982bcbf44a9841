//! Constructs the errors of an index file.

use std::io;
use std::path::Path;

use crate::error::Error;

/// The path of a file, empty for a stream, and the errors about it.
#[derive(Clone, Copy)]
pub(super) struct FileErrors<'a>(pub(super) &'a Path);

impl FileErrors<'_> {
    /// Returns the error of a failed read.
    pub(super) fn io(self, source: io::Error) -> Error {
        Error::Io { path: self.0.into(), source }
    }

    /// Returns the error of an invalid byte.
    pub(super) fn corrupt(self, offset: u64, what: impl Into<String>) -> Error {
        Error::CorruptFile { path: self.0.into(), offset, what: what.into() }
    }

    /// Returns the error of a file with other contents than expected.
    pub(super) fn other(self, what: &'static str, expected: impl ToString, found: impl ToString) -> Error {
        let (expected, found) = (expected.to_string(), found.to_string());
        Error::WrongFile { path: self.0.into(), what, expected, found }
    }
}
