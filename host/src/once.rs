//! A value that is computed at first use.

use crate::error::Result;
use std::sync::OnceLock;

/// A value that is computed at first use. No lock is held during the computation, because a thread of a rayon pool that
/// waits may run other work that needs the value. Several threads may therefore compute it; the first result is kept.
#[derive(Debug)]
pub(crate) struct Once<T> {
    value: OnceLock<T>,
}

impl<T> Once<T> {
    pub(crate) const fn new() -> Self {
        Self { value: OnceLock::new() }
    }

    /// Removes the value, if it has been computed.
    pub(crate) fn take(&mut self) -> Option<T> {
        self.value.take()
    }

    /// Returns the value, if it has been computed.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Returns the value, computing it if necessary.
    pub(crate) fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let value = init();
        self.value.get_or_init(|| value)
    }

    /// Returns the value, computing it if necessary. After an error the next call tries again.
    pub(crate) fn get_or_try_init(&self, init: impl FnOnce() -> Result<T>) -> Result<&T> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let value = init()?;
        Ok(self.value.get_or_init(|| value))
    }
}
