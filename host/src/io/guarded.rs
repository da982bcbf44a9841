//! Guarded calls of decoders.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use super::decode_error::DecodeError;

/// Returns the result of `read`, or the error of an invalid file if it panics. The checks before the decoder should prevent
/// panics. A panic prints nothing. A program that is compiled with `panic = "abort"` ends there.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T, DecodeError>) -> Result<T, DecodeError> {
    let result = silently(|| catch_unwind(AssertUnwindSafe(read)));
    result.unwrap_or_else(|_| Err("its bytes are broken".into()))
}

thread_local! {
    static IS_SILENT: Cell<bool> = const { Cell::new(false) };
}

/// Calls `run` while panics of this thread print nothing. The first call installs a hook in front of the process's own
/// hook, which still gets all other panics.
fn silently<T>(run: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IS_SILENT.set(self.0);
        }
    }
    // A panicking thread cannot set a hook.
    if !std::thread::panicking() {
        HOOK.call_once(|| {
            let previous = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if !IS_SILENT.try_with(Cell::get).unwrap_or(false) {
                    previous(info);
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
    }
}
