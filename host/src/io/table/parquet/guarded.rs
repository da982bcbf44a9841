//! Calls of the Parquet decoder.

use parquet::errors::ParquetError;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::error::Error;

/// Why a column or a footer cannot be read.
#[derive(Debug, thiserror::Error)]
pub(in crate::io::table) enum Failed {
    /// The file is to blame.
    #[error("{0}")]
    File(String),
    /// It is not.
    #[error(transparent)]
    Other(#[from] Error),
}

impl Failed {
    /// The error, which is made by `file` of the reason if the file is to blame.
    pub(super) fn of(self, file: impl FnOnce(String) -> Error) -> Error {
        match self {
            Self::File(what) => file(format!("the Parquet file cannot be read: {what}")),
            Self::Other(error) => error,
        }
    }
}

impl From<String> for Failed {
    fn from(what: String) -> Self {
        Self::File(what)
    }
}

impl From<&str> for Failed {
    fn from(what: &str) -> Self {
        Self::File(what.to_owned())
    }
}

impl From<ParquetError> for Failed {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(error) => {
                error.downcast::<Self>().map_or_else(|error| Self::File(error.to_string()), |failed| *failed)
            }
            error => Self::File(error.to_string()),
        }
    }
}

impl From<Failed> for ParquetError {
    fn from(failed: Failed) -> Self {
        Self::External(Box::new(failed))
    }
}

/// What `read` gives. Whatever makes the decoder panic should have been refused before; where that was forgotten it is an error of the
/// file as well, and nothing is printed. A program that aborts when it panics ends there.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T, Failed>) -> Result<T, Failed> {
    let result = without_message(|| catch_unwind(AssertUnwindSafe(read)));
    result.unwrap_or_else(|_| Err("its bytes are broken".into()))
}

thread_local! {
    static IS_SILENT: Cell<bool> = const { Cell::new(false) };
}

/// Runs `run`; a panic of this thread prints nothing meanwhile. The first call puts a hook before the one that the process has, which
/// leaves panics of other threads, and of this thread at other times, to that one.
fn without_message<T>(run: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IS_SILENT.set(self.0);
        }
    }
    // A hook cannot be set by a thread that panics.
    if !std::thread::panicking() {
        HOOK.call_once(|| {
            let others = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if !IS_SILENT.try_with(Cell::get).unwrap_or(false) {
                    others(info);
                }
            }));
        });
    }
    let _restore = Restore(IS_SILENT.replace(true));
    run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_of_the_decoder_are_errors_of_the_file() {
        let failed = guarded::<()>(|| panic!("the decoder does not expect this")).unwrap_err();
        assert_eq!(failed.to_string(), "its bytes are broken");
        assert!(!IS_SILENT.get());
        // What is not the file's fault comes through the decoder as it is.
        let full = || Error::OutOfMemory { memory: "host", requested: 1, free: 0, label: "test" };
        let failed = Failed::from(ParquetError::from(Failed::from(full())));
        assert!(matches!(failed, Failed::Other(Error::OutOfMemory { .. })));
    }
}
