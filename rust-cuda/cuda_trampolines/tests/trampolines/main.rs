//! Programs that use the driver's symbols: linking and starting them without CUDA, and calling a driver
//! through them.
//!
//! Most of it builds helpers with the cargo that runs the tests. Where that cargo or the sources are not
//! there, because the tests were built on another machine, those tests say that they are skipped.
//!
//! `toolchain.rs` and `programs/fake_driver.rs` are links to files of the tests of `cuda_lazy`; the package has copies.
#![cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

mod calls;
mod linking;
mod toolchain;
