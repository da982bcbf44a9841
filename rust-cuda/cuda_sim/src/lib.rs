//! A SIMT simulator: runs kernels written with `cuda_std` on the CPU, unchanged, and is stricter than the hardware.
//!
//! A GPU hides races: its warps run in step, its caches are mostly coherent, its memory holds the right thing by chance.
//! Here each GPU thread is a coroutine that can be stopped anywhere, blocks start in any order, fresh memory is poison,
//! and each access is judged by what the memory model promises rather than by what came out.
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
//! /// Hands items to the neighbor, and forgets the barrier.
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
//! println!("{error}"); // both accesses, their places and callers, and how to replay the run
//! # Ok::<(), cuda_sim::SimError>(())
//! ```
//!
//! # What is checked
//! - **Races** in shared and global memory, by happens-before: each of two accesses to a place of which one writes must
//!   be ordered before the other by barriers, warp syncs, or release and acquire at a scope that includes both. A
//!   schedule need not show the wrong result for the race to be found.
//! - **Scopes** of atomics, **read-only loads** of what the launch writes.
//! - **Barriers and warp operations**: who must come comes, to the same one, with the same mask.
//! - **Bounds, alignment, lifetime** of every access through a view; red zones for those through pointers.
//! - **Initialization**, a bit a byte, in global memory across launches and host copies.
//! - **Progress**: spinning for what nobody will do is reported, with who waits for what.
//! - **Panics** of the kernel: overflow, index of an array, assertions.
//!
//! Run a kernel under the [20 standard schedules](Options::nth_order): races do not depend on the order, but wrong
//! results of right synchronisation do, and so do hangs.
//!
//! # What is not
//! Accesses through raw pointers and `&[T]` are not seen (the effect of writes is, for initialization): the documentation
//! of `cuda_std` lists what is seen and what is not. Of many unordered
//! readers of a place a sample is kept: a race can be missed, none is invented. Weak memory is modeled as stores that
//! reach other blocks late; loads are never early. A simulated thread has 256 KiB of stack; beyond it the process ends.
//!
//! # How it works
//! [`Machine`] keeps memory (`memory`, `region`) and runs launches (`launch`), one OS thread each. Threads are coroutines
//! (`fiber`); `schedule` picks the next; `engine` implements `cuda_std::simt::Simt`, the one door between kernel and
//! simulator, on the `state` of the launch; `access` checks and performs loads and stores with `shadow` and `clock`;
//! `block` and `warp` let threads meet; `delay` holds stores back. All that is random comes from the seed, so a launch
//! can be repeated exactly: that is how a report knows the earlier of two accesses, which nobody wrote down.

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
pub use state::LaunchStats;
