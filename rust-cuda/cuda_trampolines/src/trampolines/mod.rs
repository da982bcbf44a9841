//! The trampolines, on the architectures with assembly for them.
//!
//! `x86_64` and `aarch64` contain all assembly: the macro `trampoline!(cuX)`, which defines the symbol `cuX`, and
//! the label `kauri_cuda_first_call`. A trampoline changes neither the stack nor an argument register, so the
//! driver's function is entered as by a direct call, and returns to that caller: every signature works.

#[macro_use]
mod symbols;

#[cfg(target_arch = "aarch64")]
#[macro_use]
mod aarch64;
#[cfg(target_arch = "x86_64")]
#[macro_use]
mod x86_64;

mod table;

pub(crate) use table::NAMES;
