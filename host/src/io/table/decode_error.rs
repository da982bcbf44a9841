//! The error of decoding a Parquet file.

use crate::error::Error;
use parquet::errors::ParquetError;

/// An error of decoding a column or a footer.
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
    /// Converts to the library's error; `invalid_file` constructs the error of an invalid file.
    pub(super) fn into_error(self, invalid_file: impl FnOnce(String) -> Error) -> Error {
        match self {
            Self::File(what) => invalid_file(format!("the Parquet file cannot be read: {what}")),
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

impl From<DecodeError> for ParquetError {
    fn from(error: DecodeError) -> Self {
        Self::External(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_pass_through_the_decoder() {
        let full = || Error::OutOfMemory { memory: "host", requested: 1, free: 0, label: "test" };
        let error = DecodeError::from(ParquetError::from(DecodeError::from(full())));
        assert!(matches!(error, DecodeError::Other(Error::OutOfMemory { .. })));
    }
}
