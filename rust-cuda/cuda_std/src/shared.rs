//! Shared memory: one launch-sized region a block, seen through typed views.
//!
//! An agent declares one `#[repr(C)]` struct with everything it keeps in shared memory, names it in
//! `#[kernel(shared = …)]`, so that the launch reserves its size, and views its fields:
//!
//! ```
//! use cuda_std::prelude::*;
//!
//! #[repr(C)]
//! pub struct Smem {
//!     counts: [u32; 256],
//!     total: [u32; 1],
//! }
//!
//! #[kernel(block = 256, shared = Smem)]
//! pub unsafe fn clear_counts() {
//!     let smem = shared_mem::<Smem>();
//!     let counts = shared_field!(smem, counts);
//!     counts.store(thread::thread_idx_x() as usize, 0);
//!     thread::sync_threads();
//! }
//! ```
//!
//! Phases that do not overlap share memory through a `#[repr(C)] union` of such structs, with a barrier between them.
//! `#[link_section = ".shared"] static mut` does not make shared memory with this compiler: it silently makes global
//! memory.

use crate::mem::{Shared, ViewMut};
use crate::sys;

/// Elements in the block's shared memory.
pub type SharedSlice<'a, T> = ViewMut<'a, T, Shared>;

/// A pointer to the block's launch-sized shared memory, as upstream's function of this name.
#[inline(always)]
#[track_caller]
pub fn dynamic_shared_mem<T>() -> *mut T {
    sys::shared_region(0, size_of::<T>(), align_of::<T>()).cast()
}

/// The block's launch-sized shared memory as the struct that `#[kernel(shared = …)]` names. View its fields with
/// [`shared_field!`](crate::shared_field).
#[inline(always)]
#[track_caller]
pub fn shared_mem<T>() -> *mut T {
    dynamic_shared_mem()
}

/// A view of an array field of a shared-memory struct: `shared_field!(smem, field)`, also `shared_field!(smem, a.b)`.
/// Rows of arrays of two or three dimensions are joined.
#[macro_export]
macro_rules! shared_field {
    ($smem:expr, $($field:tt)+) => {{
        let smem = $smem;
        // SAFETY: only the address of the field is computed; the region was reserved for this struct.
        $crate::shared::view(unsafe { &raw mut (*smem).$($field)+ })
    }};
}

/// The array that a pointer into shared memory names, as a view; the work of [`shared_field!`](crate::shared_field).
#[doc(hidden)]
#[inline(always)]
pub fn view<'a, A: SharedArray>(array: *mut A) -> SharedSlice<'a, A::Element> {
    // SAFETY: the pointer comes from shared_field!, so the array lies in the block's shared memory.
    unsafe { SharedSlice::from_raw_parts(array.cast(), A::LEN) }
}

/// Arrays of any rank, seen as their elements.
#[doc(hidden)]
pub trait SharedArray {
    /// Element type.
    type Element;
    /// Number of elements.
    const LEN: usize;
}

macro_rules! scalars {
    ($($t:ty),*) => { $( impl SharedElement for $t {} )* };
}
/// What a field of shared memory may be an array of; implement it for your own plain types.
pub trait SharedElement: Copy {}
scalars!(u8, u16, u32, u64, u128, i8, i16, i32, i64, f32, f64);

impl<T: SharedElement, const N: usize> SharedArray for [T; N] {
    type Element = T;
    const LEN: usize = N;
}
impl<T: SharedElement, const N: usize, const M: usize> SharedArray for [[T; N]; M] {
    type Element = T;
    const LEN: usize = N * M;
}
impl<T: SharedElement, const N: usize, const M: usize, const L: usize> SharedArray for [[[T; N]; M]; L] {
    type Element = T;
    const LEN: usize = N * M * L;
}

/// A static array of shared memory, `shared_array![u32; 256]`, as a `*mut u32`; upstream's macro. One array a place in
/// the source: calls through one place share it.
#[macro_export]
macro_rules! shared_array {
    ($t:ty; $n:expr) => {
        $crate::__shared_array!($t; $n)
    };
}
