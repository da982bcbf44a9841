//! The kernels of kauri, and the arithmetic they share with the host.
//!
//! Building blocks are named by the hardware scope that cooperates in them: [`thread`], [`warp`], [`block`]. Every
//! other module is a family of device-wide algorithms: agents (one block's part of the algorithm) and thin kernel
//! entries. The folder of the same name in the crate `kauri` is its host half.
#![no_std]
// Device code is unsafe as a whole: the launch and its sizes make a memory access valid, not a single line.
#![allow(unsafe_op_in_unsafe_fn, clippy::missing_safety_doc, clippy::undocumented_unsafe_blocks)]
// An array in registers is indexed by the number of an unrolled loop.
#![allow(clippy::needless_range_loop)]

pub mod balanced;
pub mod block;
pub mod bvh;
pub mod join;
pub mod kdtree;
mod plain;
pub mod policy;
pub mod primitives;
pub mod quadtree;
pub mod query;
pub mod rays;
pub mod render;
pub mod rtree;
pub mod sah;
pub mod terrain;
pub mod thread;
pub mod warp;
