//! Defines the symbols of the CUDA driver, and opens its library at the first call of one.
//!
//! # Why
//!
//! [`cust`](https://docs.rs/cust) declares the driver's functions and links to `libcuda`. A program with `cust`
//! can therefore be linked only where a CUDA toolkit or driver is installed, and starts only where the driver
//! is installed: elsewhere the loader ends it before `main`. With this crate the program links and starts
//! everywhere; without a driver the first call reports that:
//!
//! ```
//! use cuda_trampolines as _;
//!
//! unsafe extern "C" {
//!     safe fn cuInit(flags: u32) -> i32;
//! }
//! match cuInit(0) {
//!     0 => println!("there is a GPU"),
//!     100 => println!("there is no driver or no device"),
//!     code => println!("cuInit returns {code}"),
//! }
//! ```
//!
//! # How to use it
//!
//! Depend on it next to `cust`, and write `use cuda_trampolines as _;` in a crate that is linked into the program. A
//! library may do this for its users.
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
//! first call saves all registers that may carry arguments, asks [`cuda_lazy`] for the function, stores its address
//! in the table, restores the registers and jumps. Later calls cost a load, a test and a jump.
//!
//! [`cuda_lazy`] opens the library, and says where it is searched. Without a library every function returns
//! `CUDA_ERROR_NO_DEVICE` (100); a function that the library lacks returns `CUDA_ERROR_NOT_FOUND` (500). Neither
//! writes through its pointer arguments. Therefore do not format an error of `cust` without a driver: `cust` takes the
//! text from the driver.
//!
//! Supports Linux on x86-64 and AArch64. On other targets the crate defines nothing, and `cust` links the driver's
//! library directly.
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
//! - The key `links` of the package keeps a second version of the symbols out of the program.

#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod trampolines;

/// Replaces the module `trampolines` on targets without them.
#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod trampolines {
    pub(crate) static NAMES: &[&str] = &[];
}

/// Returns the sorted names of the symbols that this crate defines; empty on unsupported targets.
pub fn symbols() -> &'static [&'static str] {
    trampolines::NAMES
}

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
