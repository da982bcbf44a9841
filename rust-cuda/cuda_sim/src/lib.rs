//! A SIMT simulator: runs kernels written with `cuda_std` on the CPU, unchanged, and is stricter than the hardware.
//!
//! A GPU hides races: its warps run in step, its caches are mostly coherent, its memory may hold the right value by chance.
//! Here each GPU thread is a coroutine that can be preempted anywhere, blocks start in any order, fresh memory is
//! poisoned, and each access is checked against the guarantees of the memory model, not by its result.
//!
//! ```
//! use cuda_sim::{Kind, LaunchSpec, Machine, MachineInfo, Options};
//! use cuda_std::kernel::Kernel;
//! use cuda_std::prelude::*;
//!
//! #[repr(C)]
//! pub struct Smem {
//!     items: [u32; 64],
//! }
//!
//! /// Passes items to the neighbor thread; a barrier is missing.
//! #[kernel(block = 64, shared = Smem)]
//! pub unsafe fn rotate(out: SliceMut<u32>) {
//!     let items = shared_field!(shared_mem::<Smem>(), items);
//!     let t = thread::thread_idx_x() as usize;
//!     items.store(t, t as u32);
//!     out.store(t, items.load((t + 1) % 64));
//! }
//!
//! let machine = Machine::new(MachineInfo::default(), Options::nth_order(3, 42));
//! let out = machine.alloc(256, "out")?;
//! // SAFETY: 64 words of the machine's memory.
//! let args = (unsafe { SliceMut::<u32>::from_raw_parts(out as *mut u32, 64) },);
//! // SAFETY: the machine calls this with a simulator in place.
//! let run = || unsafe { rotate::call(&args) };
//! let error = machine.launch(&LaunchSpec::new("rotate", 1, 64, 256, &run)).unwrap_err();
//! assert!(matches!(error.kind(), Kind::Race { .. }));
//! println!("{error}"); // both accesses, their locations and callers, and how to replay the run
//! # Ok::<(), cuda_sim::SimError>(())
//! ```
//!
//! # What is checked
//! - **Races** in shared and global memory, by happens-before: if two threads access the same bytes and one writes,
//!   barriers, warp syncs, or release and acquire at a scope that includes both must order the accesses. The simulator
//!   finds a race even if the schedule does not produce a wrong result.
//! - **Scopes** of atomics, and **read-only loads** of memory that the launch writes.
//! - **Barriers and warp operations**: every required thread arrives, at the same operation, with the same mask.
//! - **Bounds, alignment, lifetime** of every access through a view; red zones catch accesses through pointers.
//! - **Initialization**, one bit a byte, in global memory across launches and host copies.
//! - **Progress**: a spin loop that nobody will end is reported, with the state of each waiting thread.
//! - **Panics** of the kernel: overflow, array index, assertions.
//!
//! Run a kernel under the [20 standard schedules](Options::nth_order): races do not depend on the order, but wrong
//! results despite correct synchronization do, and so do hangs.
//!
//! # What is not checked
//! Accesses through raw pointers and `&[T]` are invisible, except that the initialization check notices bytes that they
//! wrote; the documentation of `cuda_std` has the complete list. If many unordered threads read the same bytes, a sample
//! of the reads is kept: a race can be missed, none is invented. Weak memory is modeled by stores that reach other blocks
//! late; loads are never early. A simulated thread has 256 KiB of stack; beyond it the process ends.
//!
//! # How it works
//! [`Machine`] keeps memory (`memory`, `region`) and runs launches (`launch`), one OS thread each. Threads are coroutines
//! (`fiber`); `schedule` picks the next; `engine` implements `cuda_std::simt::Simt`, the only interface between kernel and
//! simulator, on the `state` of the launch; `access` checks and performs loads and stores with `shadow` and `clock`;
//! `block` and `warp` complete barriers and warp operations; `delay` delays stores. All random choices follow from the
//! seed, so a launch can be repeated exactly: a second run recovers the earlier of two conflicting accesses for the report.

mod access;
mod block;
mod chain;
mod clock;
pub mod debug;
mod delay;
mod engine;
mod error;
mod fiber;
mod frontier;
mod hash;
mod launch;
mod machine;
mod memory;
mod options;
mod panic;
mod random;
mod region;
mod report;
mod schedule;
mod shadow;
mod shared;
mod stack;
mod state;
mod warp;

pub use chain::{Chain, Frame};
pub use error::{AccessInfo, Action, BadAddress, Event, Group, Kind, Mode, SimError, ThreadId};
pub use machine::{LaunchSpec, Machine, MachineInfo};
pub use options::{Checks, Options, Order, Resident, Start};
pub use state::{LaunchStats, Printed};

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
