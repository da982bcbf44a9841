//! Calls of the driver's functions, to a fake driver and to the real one.
//!
//! The fake driver is built with the rustc beside the cargo that runs the tests. Where that cargo or the sources are not
//! there, because the tests were built on another machine, those tests say that they are skipped.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod calls;
mod toolchain;
