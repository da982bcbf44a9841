//! What is made once, when it is first asked for.

use crate::error::Result;
use std::sync::OnceLock;

/// What is made when it is first asked for. Nothing is held while it is made: a thread of a pool takes up other work while it waits for
/// its own, and that may ask for the same. So several may make it, of which one is kept.
pub(crate) struct Once<T> {
    made: OnceLock<T>,
}

impl<T> Once<T> {
    pub(crate) fn new() -> Self {
        Self { made: OnceLock::new() }
    }

    /// What was made, if it was.
    pub(crate) fn get(&self) -> Option<&T> {
        self.made.get()
    }

    /// What was made, or is now; if that fails it is tried again the next time.
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        if let Some(made) = self.get() {
            return Ok(made);
        }
        let made = make()?;
        Ok(self.made.get_or_init(|| made))
    }
}
