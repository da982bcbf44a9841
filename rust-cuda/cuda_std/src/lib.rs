//! Device library for CUDA kernels in Rust, on a stock rustc (target `nvptx64-nvidia-cuda`).
//!
//! A kernel is an `unsafe fn` with [`#[kernel]`](macro@kernel); it reaches the GPU's operations through this crate:
//!
//! ```
//! use cuda_std::prelude::*;
//!
//! /// y = a x + y.
//! #[kernel(block = 256)]
//! pub unsafe fn saxpy(a: f32, x: Slice<f32>, y: SliceMut<f32>) {
//!     let i = thread::index_1d() as usize;
//!     if i < y.len() {
//!         y.store(i, a * x.load(i) + y.load(i));
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! A kernel may be generic, with the instances that it lists, and may take structs of views and numbers:
//!
//! ```
//! use cuda_std::prelude::*;
//!
//! /// Samples, and the factor that scales them.
//! #[derive(Clone, Copy, KernelArgs)]
//! pub struct Samples<'a, T> {
//!     pub values: Slice<'a, T>,
//!     pub factor: f64,
//! }
//!
//! /// Entries `scale_f32` and `scale_u32`.
//! #[kernel(block = 128)]
//! #[instances(T = [f32, u32])]
//! pub unsafe fn scale<T: Copy + Into<f64> + 'static>(samples: Samples<'_, T>, scaled: SliceMut<f64>) {
//!     let i = thread::index_1d() as usize;
//!     if i < scaled.len() {
//!         scaled.store(i, samples.factor * samples.values.load(i).into());
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! The module `device` of kauri launches this kernel: `stream.launch_items::<scale<f32>>(n, (samples, scaled.slice_mut()))`.
//!
//! A kernel function also compiles for the CPU, where every call goes to a simulator through one trait, [`simt::Simt`].
//!
//! # Which accesses are checked
//! The simulator sees every access through a view and every function of [`atomic`]: bounds, alignment, initialization,
//! races. A `checked` build checks the bounds of views on the GPU. Neither sees accesses through pointers and references:
//!
//! | access | seen |
//! |---|---|
//! | `load`, `store`, `load_16`, `store_16`, `load_readonly`, `load_streaming`, `atomic_*` of [`Slice`](mem::Slice), [`SliceMut`](mem::SliceMut), [`SharedSlice`](shared::SharedSlice) | yes |
//! | [`shared_array!`], [`shared_field!`], [`shared::dynamic_shared_slice`] | yes: they are views |
//! | [`atomic::atomic_fetch_add`] and the other functions over pointers | yes, as accesses to one element of global memory |
//! | a parameter `&[T]`, [`Slice::as_slice`](mem::Slice::as_slice) | no |
//! | a parameter `*const T` or `*mut T`, [`as_ptr`](mem::ViewMut::as_ptr), [`as_raw_ptr`](mem::ViewMut::as_raw_ptr), [`shared_mem`](shared::shared_mem), [`shared::dynamic_shared_mem`] | no: of writes the simulator sees that memory was written, and writes beside an allocation |
//! | a view made by `from_raw_parts` of such a pointer | yes, with the length given there |
//! | registers and local arrays | no need: no other thread reaches them |
//!
//! There are no asynchronous copies (`cp.async`) and no vector types: 16 bytes at once are `load_16` and `store_16`.
//!
#![doc = include_str!("../UPSTREAM.md")]
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(
        abi_unadjusted,
        asm_experimental_arch,
        core_intrinsics,
        gpu_intrinsics,
        gpu_launch_sized_workgroup_mem,
        link_llvm_intrinsics,
        stdarch_nvptx
    ),
    allow(internal_features)
)]
// Kernels are unsafe as a whole: their safety depends on the launch, not on single lines.
#![allow(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

// The macros name this crate by its path, also in its own examples.
extern crate self as cuda_std;

pub mod atomic;
pub mod float;
pub mod io;
#[cfg(not(target_arch = "nvptx64"))]
pub mod kernel;
pub mod mem;
pub mod misc;
pub mod ptr;
pub mod shared;
#[cfg(not(target_arch = "nvptx64"))]
pub mod simt;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod sys;
pub mod thread;
pub mod warp;

pub use cuda_std_macros::{__kernel_entries, __shared_array, KernelArgs, kernel};

/// The items that most kernels need: `use cuda_std::prelude::*;`.
pub mod prelude {
    pub use crate::atomic::{Ordering, Scope};
    pub use crate::mem::{Slice, SliceMut};
    pub use crate::shared::{SharedSlice, shared_mem};
    pub use crate::{KernelArgs, kernel, shared_array, shared_field};
    pub use crate::{thread, warp};
}

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
