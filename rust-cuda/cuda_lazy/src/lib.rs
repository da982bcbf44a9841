//! Opens the CUDA driver's library at the first use of one of its symbols.
//!
//! # Why
//!
//! [`cust`](https://docs.rs/cust) declares the driver's functions and links to `libcuda`. A program with `cust`
//! can therefore be linked only where a CUDA toolkit or driver is installed, and starts only where the driver
//! is installed: elsewhere the loader ends it before `main`. With this crate the program links and starts
//! everywhere; without a driver the first call reports that:
//!
//! ```
//! use cuda_lazy::Status;
//!
//! match cuda_lazy::status() {
//!     Status::Loaded { library } => println!("CUDA driver: {library}"),
//!     Status::DriverMissing { searched, reason } => println!("{reason}; searched {}", searched.join(", ")),
//!     _ => println!("the driver is linked directly"),
//! }
//! ```
//!
//! # How to use it
//!
//! Depend on it next to `cust`, and name it once in a crate that is linked into the program: call [`status`],
//! or write `use cuda_lazy as _;`. A library may do this for its users.
//!
//! `cust`'s build script searches a folder with a `lib64/libcuda.so` and fails without one. With a CUDA toolkit
//! nothing needs to be done. Without one, give it a folder in which `lib64/libcuda.so` is a text file with only
//! a comment; the linker reads it as a script that defines nothing:
//!
//! ```sh
//! mkdir -p no-cuda/lib64 && echo '/* empty */' > no-cuda/lib64/libcuda.so
//! CUDA_LIBRARY_PATH=$PWD/no-cuda cargo build
//! ```
//!
//! The folder `link` of this package is such a folder. A workspace can set the variable in `.cargo/config.toml`:
//!
//! ```toml
//! [env]
//! CUDA_LIBRARY_PATH = { value = "no-cuda", relative = true }
//! ```
//!
//! # How it works
//!
//! The crate defines every `cu*` symbol that `cust` declares, so the linker needs no library for them. Each
//! symbol is a trampoline: a few instructions that jump to an address in a table. The table starts empty. The
//! first call saves all registers that may carry arguments, opens the driver's library, finds the function,
//! stores its address in the table, restores the registers and jumps. Later calls cost a load, a test and a jump.
//!
//! The library is searched once: the file named by `KAURI_LIBCUDA` (ignored in programs that run with raised
//! rights), then `libcuda.so.1` in the loader's search path, then the known folders of drivers, containers and
//! WSL. Without a library every function returns `CUDA_ERROR_NO_DEVICE` (100); a function that the library
//! lacks returns `CUDA_ERROR_NOT_FOUND` (500). Neither writes through its pointer arguments. Therefore do not
//! format an error of `cust` without a driver: `cust` takes the text from the driver.
//!
//! Supports Linux on x86-64 and AArch64. On other targets the crate defines nothing, [`status`] returns
//! [`Status::Unsupported`], and `cust` links the driver's library directly.
//!
//! # Why this is sound
//!
//! - A trampoline runs between a call and the callee's first instruction. It changes only registers that the
//!   calling convention leaves free at that point, and does not change the stack. The driver's function
//!   therefore sees the state of a direct call, for every signature, and returns to the caller.
//! - A table entry is null or the address of a function that remains valid, because the library is never closed.
//!   It is written with release and read with acquire order; racing threads write equal addresses.
//! - The resolver does not unwind: it catches panics and then returns a function that returns an error.
//! - The substitutes of missing functions take no arguments and return an `i32`. A call through another C
//!   signature with an `i32`-sized result is harmless on these two architectures, where the caller owns the
//!   argument space; all functions of the driver return such a code.
//! - The machine decides which library is opened, as with an ordinary link.

#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod lazy;

/// Replaces the module `lazy` on targets without trampolines.
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

/// State of the driver's library.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// The library is open. This does not imply that there is a device; call `cuInit`.
    Loaded {
        /// The name or path that was given to the loader.
        library: String,
    },
    /// No library could be opened; every function of the driver returns 100, `CUDA_ERROR_NO_DEVICE`.
    DriverMissing {
        /// The candidates, in order: file names for the loader, and paths.
        searched: Vec<String>,
        /// The loader's message for the first existing file that does not open, or else for the first candidate.
        reason: String,
    },
    /// This crate does nothing on this target; `cust` links the driver directly.
    Unsupported,
}

/// Opens the driver's library, if that has not happened yet, and returns its state, which is constant for the life of the
/// process.
pub fn status() -> Status {
    lazy::status()
}

/// True if the driver's library has a function of this name, with or without a trampoline. Opens the library if
/// that has not happened yet. False without a library, and on unsupported targets.
pub fn symbol_available(name: &str) -> bool {
    lazy::symbol_available(name)
}

/// Returns the sorted names of the functions that can be called through this crate; empty on unsupported targets.
pub fn symbols() -> &'static [&'static str] {
    lazy::symbols()
}
