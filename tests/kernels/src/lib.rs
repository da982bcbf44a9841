//! Kernels that use every call of `cuda_std` once, in the way a user's own kernel crate would.
//!
//! Each writes what it sees; the tests compare that with the definition of the call.
#![no_std]
#![allow(unsafe_op_in_unsafe_fn, clippy::missing_safety_doc, clippy::undocumented_unsafe_blocks)]

pub mod atomics;
pub mod block;
pub mod large;
pub mod launch;
pub mod memory;
pub mod ordering;
pub mod prints;
pub mod visit;
pub mod warp;
