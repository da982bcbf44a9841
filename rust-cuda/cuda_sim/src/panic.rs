//! Panics of kernels: stored for the report instead of printed.

use crate::chain::RawChain;
use std::cell::{Cell, RefCell};
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

/// A panic of a simulated thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caught {
    pub(crate) message: String,
    pub(crate) location: String,
    pub(crate) chain: RawChain,
}

thread_local! {
    /// True while this OS thread runs a simulated thread.
    static IN_KERNEL: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Option<Caught>> = const { RefCell::new(None) };
}

/// Installs a panic hook: panics within [`in_kernel`] are stored for [`last`]; others go to the previous hook.
pub(crate) fn install() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| if IN_KERNEL.get() { catch(info) } else { before(info) }));
    });
}

/// Runs a simulated thread.
#[inline]
pub(crate) fn in_kernel<R>(run: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            IN_KERNEL.set(false);
        }
    }
    IN_KERNEL.set(true);
    let _leave = Leave;
    run()
}

/// Takes the last panic.
pub(crate) fn last() -> Caught {
    LAST.take().unwrap_or_default()
}

fn catch(info: &PanicHookInfo<'_>) {
    let message = info.payload_as_str().unwrap_or("a panic with a payload that is no text").to_owned();
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    LAST.set(Some(Caught { message, location, chain: RawChain::capture() }));
}
