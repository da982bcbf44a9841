//! The errors of the files of point clouds.

use crate::error::{Error, FileLocation};
use std::io::ErrorKind;
use std::path::Path;

/// A file that is being read, which errors name.
#[derive(Clone, Copy)]
pub(super) struct FileOf<'a> {
    pub(super) path: &'a Path,
}

impl FileOf<'_> {
    pub(super) fn invalid(self, what: impl Into<String>) -> Error {
        let (path, what) = (self.path.into(), what.into());
        Error::InvalidFile { path, location: FileLocation::Whole, column: None, what }
    }

    pub(super) fn at_point(self, index: u64, what: impl Into<String>) -> Error {
        let (path, what) = (self.path.into(), what.into());
        Error::InvalidFile { path, location: FileLocation::Item { what: "point", index }, column: None, what }
    }

    pub(super) fn io(self, source: std::io::Error) -> Error {
        match source.kind() {
            // Offsets beyond any file are invalid input.
            ErrorKind::UnexpectedEof | ErrorKind::InvalidInput => {
                self.invalid("cut short: the file ends before its header says")
            }
            _ => Error::Io { path: self.path.into(), source },
        }
    }

    pub(super) fn las(self, error: las::Error) -> Error {
        match error {
            las::Error::Io(source) => self.io(source),
            error => self.invalid(error.to_string()),
        }
    }
}
