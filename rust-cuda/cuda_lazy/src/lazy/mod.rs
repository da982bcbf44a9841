//! The trampolines, on the architectures with assembly for them.
//!
//! `x86_64` and `aarch64` contain all assembly: the macro `trampoline!(cuX)`, which defines the symbol `cuX`, and
//! the label `kauri_cuda_lazy_first_call`. A trampoline changes neither the stack nor an argument register, so the
//! driver's function is entered as by a direct call, and returns to that caller: every signature works.

use crate::Status;

#[macro_use]
mod symbols;

#[cfg(target_arch = "aarch64")]
#[macro_use]
mod aarch64;
#[cfg(target_arch = "x86_64")]
#[macro_use]
mod x86_64;

mod library;
mod table;

pub(crate) fn status() -> Status {
    match library::driver() {
        Some(Ok(driver)) => Status::Loaded { library: driver.name.clone() },
        Some(Err(missing)) => {
            Status::DriverMissing { searched: missing.searched.clone(), reason: missing.reason.clone() }
        }
        None => Status::DriverMissing {
            searched: Vec::new(),
            reason: "asked by the driver's library while it is being opened".into(),
        },
    }
}

pub(crate) fn symbol_available(name: &str) -> bool {
    library::driver().is_some_and(|driver| driver.as_ref().is_ok_and(|driver| driver.symbol(name).is_some()))
}

pub(crate) fn symbols() -> &'static [&'static str] {
    table::NAMES
}
