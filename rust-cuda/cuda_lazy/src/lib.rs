//! The CUDA driver's symbols, opened when first used.
//!
//! # Why
//!
//! [`cust`](https://docs.rs/cust) declares the driver's functions and links to `libcuda`. So a program that
//! uses it can only be linked where a CUDA toolkit or driver is installed, and it only starts where the
//! driver is: elsewhere the loader ends it before `main`. With this crate in the program it links and starts
//! everywhere, and where there is no driver the first call says so:
//!
//! ```
//! use cuda_lazy::Status;
//!
//! match cuda_lazy::status() {
//!     Status::Loaded { library } => println!("CUDA driver: {library}"),
//!     Status::DriverMissing { searched, reason } => println!("{reason}; searched {}", searched.join(", ")),
//!     _ => println!("the driver is linked in the ordinary way"),
//! }
//! ```
//!
//! # How to use it
//!
//! Depend on it next to `cust`, and name it once in a crate that is linked into the program: call [`status`],
//! or write `use cuda_lazy as _;`. A library may do that for the programs that use it.
//!
//! `cust`'s build script looks for a folder with a `lib64/libcuda.so`, and stops where it finds none. Where a
//! CUDA toolkit is installed nothing needs to be done. Elsewhere, give it any folder in which
//! `lib64/libcuda.so` is a text file holding only a comment, which the linker reads as a script that defines
//! nothing:
//!
//! ```sh
//! mkdir -p no-cuda/lib64 && echo '/* empty */' > no-cuda/lib64/libcuda.so
//! CUDA_LIBRARY_PATH=$PWD/no-cuda cargo build
//! ```
//!
//! The folder `link` of this package is such a folder. A workspace sets the variable for everybody in
//! `.cargo/config.toml`:
//!
//! ```toml
//! [env]
//! CUDA_LIBRARY_PATH = { value = "no-cuda", relative = true }
//! ```
//!
//! # How it works
//!
//! The crate defines every `cu*` symbol that `cust` may ask for, so the linker needs no library for them.
//! Each is a few instructions that jump to an address kept in a table. The table starts empty: a first call
//! saves all registers that may carry arguments, opens the driver's library, looks the function up, keeps its
//! address in the table and enters it with the registers restored. Later calls cost a load, a test and a
//! jump.
//!
//! The library is searched once: the file that the variable `KAURI_LIBCUDA` names (ignored in programs that
//! run with raised rights), then `libcuda.so.1` as the loader finds it, then the folders that drivers,
//! containers and WSL are known to use. Without a library every function returns `CUDA_ERROR_NO_DEVICE`
//! (100); a function that the library does not have returns `CUDA_ERROR_NOT_FOUND` (500). Neither writes
//! through any pointer it is given. So do not have `cust` format an error without a driver: that asks the
//! driver for the text and relies on getting one.
//!
//! Linux on x86-64 and AArch64 only. Elsewhere the crate defines nothing, [`status`] says so, and the
//! driver's library is linked as `cust` asks.
//!
//! # Why this is sound
//!
//! - A trampoline runs between a call and the first instruction of the function called. It changes only
//!   registers that the calling convention leaves free at that point, and leaves the stack as it found it; so
//!   the driver's function sees what it would see if it had been called directly, whatever its signature, and
//!   returns to the caller itself.
//! - A table entry is null or the address of a function that stays: the library is never closed. It is
//!   written with release and read with acquire order, and threads that race write the same address.
//! - The resolver does not unwind: it catches panics, and answers with a function that returns an error.
//! - The functions that stand in for missing ones take no arguments and return an `i32`. Calling one through
//!   another C signature with an `i32`-sized result is harmless on these two architectures, where the caller
//!   owns the argument space; all functions of the driver return such a code.
//! - Which library is opened is the machine's business, as it is with an ordinary link.

#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod lazy;

/// Stands in for the module of the same name where there are no trampolines.
#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod lazy {
    pub(crate) fn status() -> crate::Status {
        crate::Status::Unsupported
    }

    pub(crate) fn symbol_available(_name: &str) -> bool {
        false
    }

    pub(crate) fn symbols() -> &'static [&'static str] {
        &[]
    }
}

/// Whether the driver's library is there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// The library is open. That does not mean that there is a device: ask `cuInit`.
    Loaded {
        /// The name or path under which it was found, as it was given to the loader.
        library: String,
    },
    /// There is no library that opens; every function of the driver returns 100, `CUDA_ERROR_NO_DEVICE`.
    DriverMissing {
        /// What was tried, in this order: file names for the loader to find, and paths.
        searched: Vec<String>,
        /// What the loader said: about the first file that is there and does not open, or else about the
        /// first tried.
        reason: String,
    },
    /// This crate does nothing on this target; the driver is linked as `cust` asks.
    Unsupported,
}

/// Opens the driver's library, if that has not happened yet, and tells the outcome. It stays the same as long
/// as the process lives.
pub fn status() -> Status {
    lazy::status()
}

/// Whether the driver's library has a function of this name, also one that has no trampoline. Opens the
/// library if that has not happened yet. Always false where there is no library, and on targets where the
/// crate does nothing.
pub fn symbol_available(name: &str) -> bool {
    lazy::symbol_available(name)
}

/// The names of the functions that can be called through this crate, sorted; empty on targets where it does
/// nothing.
pub fn symbols() -> &'static [&'static str] {
    lazy::symbols()
}
