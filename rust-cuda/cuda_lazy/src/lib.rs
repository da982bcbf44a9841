//! Calls of the CUDA driver without linking to it: the driver's library is opened at the first call.
//!
//! # Why
//!
//! A program that links to `libcuda` can be built only where a CUDA toolkit or driver is installed, and starts only
//! where the driver is installed: elsewhere the loader ends it before `main`. A program with this crate builds and
//! starts everywhere; without a driver the first call reports that:
//!
//! ```
//! use cuda_lazy::{Status, driver};
//!
//! match cuda_lazy::status() {
//!     Status::Loaded { library } => println!("CUDA driver: {library}"),
//!     Status::DriverMissing { searched, reason } => println!("{reason}; searched {}", searched.join(", ")),
//!     _ => println!("there is no search for the driver on this platform"),
//! }
//!
//! // SAFETY: the call takes no pointer.
//! match unsafe { driver::cuInit(0) } {
//!     0 => println!("there is a GPU"),
//!     100 => println!("there is no driver or no device"),
//!     code => println!("cuInit returns {code}"),
//! }
//! ```
//!
//! # Functions
//!
//! The module [`driver`] has the functions that kauri calls, with the names and arguments of NVIDIA's manual. They
//! return the driver's result code as an `i32`, so that a code of a newer driver is a number like any other. The
//! crate defines no `cu*` symbol, and several versions of it can be in one program.
//!
//! A crate that declares the driver's functions itself, such as [`cust`](https://docs.rs/cust), needs symbols to link
//! to. The crate `kauri-cuda-trampolines` defines them, and takes the functions from the library that this crate opens.
//!
//! # How it works
//!
//! Each function has a slot for an address. The first call opens the driver's library, finds the function and fills
//! the slot. Later calls cost a load, a test and an indirect call.
//!
//! The library is searched once: the file named by `KAURI_LIBCUDA` (ignored in programs that run with raised
//! rights), then `libcuda.so.1` in the loader's search path, then the known folders of drivers, containers and
//! WSL. Without a library every function returns [`NO_DEVICE`]; a function that the library lacks returns
//! [`NOT_FOUND`]. Neither writes through its pointer arguments.
//!
//! The search is for 64-bit Linux. On other platforms the crate compiles, [`status`] returns
//! [`Status::Unsupported`], and every function returns [`NO_DEVICE`].
//!
//! # Why this is sound
//!
//! - A slot is null or the address of a function that remains valid, because the library is never closed. It is
//!   written with release and read with acquire order; racing threads write equal addresses.
//! - A function is called through the signature of its declaration here, with the platform's calling convention.
//! - The machine decides which library is opened, as with an ordinary link.

pub mod driver;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod library;

/// Replaces the module `library` on platforms without a search.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
mod library {
    use crate::{NO_DEVICE, Status};
    use std::ffi::c_void;
    use std::ptr::NonNull;

    pub(crate) fn status() -> Status {
        Status::Unsupported
    }

    pub(crate) fn address(_name: &str) -> Result<NonNull<c_void>, i32> {
        Err(NO_DEVICE)
    }
}

use std::ffi::c_void;
use std::ptr::NonNull;

/// `CUDA_ERROR_NO_DEVICE`: the result of every function without the driver's library.
pub const NO_DEVICE: i32 = 100;

/// `CUDA_ERROR_NOT_FOUND`: the result of a function that this version of the driver's library lacks.
pub const NOT_FOUND: i32 = 500;

/// State of the driver's library.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// The library is open. This does not imply that there is a device; call `cuInit`.
    Loaded {
        /// The name or path that was given to the loader.
        library: String,
    },
    /// No library could be opened; every function of the driver returns [`NO_DEVICE`].
    DriverMissing {
        /// The candidates, in order: file names for the loader, and paths.
        searched: Vec<String>,
        /// The loader's message for the first existing file that does not open, or else for the first candidate.
        reason: String,
    },
    /// The library is not searched on this platform; every function of the driver returns [`NO_DEVICE`].
    Unsupported,
}

/// Opens the driver's library, if that has not happened yet, and returns its state, which is constant for the life of the
/// process.
pub fn status() -> Status {
    library::status()
}

/// Returns the address of the driver's function `name`, which remains valid for the life of the process. Opens the library
/// if that has not happened yet. For functions that [`driver`] does not declare.
///
/// # Errors
/// [`NO_DEVICE`] without a library, and [`NOT_FOUND`] if the library has no function of this name.
pub fn address(name: &str) -> Result<NonNull<c_void>, i32> {
    library::address(name)
}

/// Returns true if the driver's library has a function of this name. Opens the library if that has not happened yet.
pub fn symbol_available(name: &str) -> bool {
    address(name).is_ok()
}

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
