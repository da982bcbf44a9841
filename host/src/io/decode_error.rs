//! The error of decoding a file by another crate.

use crate::error::Error;
#[cfg(feature = "parquet")]
use parquet::errors::ParquetError;

/// An error of decoding a part of a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecodeError {
    /// The file is invalid.
    #[error("{0}")]
    File(String),
    /// An error that is not about the file, such as exhausted memory.
    #[error(transparent)]
    Other(#[from] Error),
}

impl DecodeError {
    /// Converts to the library's error; `invalid_file` constructs the error of an invalid file from the reason.
    pub(super) fn into_error(self, invalid_file: impl FnOnce(String) -> Error) -> Error {
        match self {
            Self::File(what) => invalid_file(what),
            Self::Other(error) => error,
        }
    }
}

impl From<String> for DecodeError {
    fn from(what: String) -> Self {
        Self::File(what)
    }
}

impl From<&str> for DecodeError {
    fn from(what: &str) -> Self {
        Self::File(what.to_owned())
    }
}

#[cfg(feature = "parquet")]
impl From<ParquetError> for DecodeError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(error) => {
                error.downcast::<Self>().map_or_else(|error| Self::File(error.to_string()), |error| *error)
            }
            error => Self::File(error.to_string()),
        }
    }
}

#[cfg(feature = "parquet")]
impl From<DecodeError> for ParquetError {
    fn from(error: DecodeError) -> Self {
        Self::External(Box::new(error))
    }
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use super::*;

    #[test]
    fn errors_pass_through_the_decoder() {
        let full = || Error::OutOfMemory { memory: "host", requested: 1, free: 0, label: "test" };
        let error = DecodeError::from(ParquetError::from(DecodeError::from(full())));
        assert!(matches!(error, DecodeError::Other(Error::OutOfMemory { .. })));
    }
}
