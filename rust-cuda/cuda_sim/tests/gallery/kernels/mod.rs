//! Kernels that run in the simulator and are compiled to PTX: what the two must agree on.
#![allow(unreachable_pub, reason = "entries are public in the crate that is compiled to PTX")]

pub mod atomics;
pub mod hazards;
pub mod prints;
pub mod warps;
