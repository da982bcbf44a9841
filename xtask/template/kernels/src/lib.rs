//! The kernels, and the arithmetic that they share with the host.
#![no_std]
// Device code is unsafe as a whole: the launch and its sizes make a memory access valid, not a single line.
#![allow(unsafe_op_in_unsafe_fn)]

pub mod example_op;
