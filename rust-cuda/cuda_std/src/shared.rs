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
//! [`shared_array!`](crate::shared_array) is a view of a static array, which needs no size at the launch.
//!
//! Phases that do not overlap share memory through a `#[repr(C)] union` of such structs, with a barrier between them.
//! `#[link_section = ".shared"] static mut` does not make shared memory with this compiler: it silently makes global
//! memory.

use crate::mem::{Shared, ViewMut};
use crate::sys;

/// Elements in the block's shared memory.
pub type SharedSlice<'a, T> = ViewMut<'a, T, Shared>;

/// A raw pointer to the block's launch-sized shared memory, as upstream's function of this name.
///
/// # Safety
/// The simulator and `checked` builds do not see accesses through the pointer: a missing barrier stays hidden. Use
/// [`dynamic_shared_slice`] or [`shared_field!`](crate::shared_field) where you can.
#[inline(always)]
#[track_caller]
pub unsafe fn dynamic_shared_mem<T>() -> *mut T {
    shared_mem()
}

/// The block's launch-sized shared memory as a view of as many `T` as fit.
///
/// `T` must be aligned to at most 16 bytes.
#[inline(always)]
#[track_caller]
pub fn dynamic_shared_slice<'a, T: SharedElement>() -> SharedSlice<'a, T> {
    const {
        assert!(
            align_of::<T>() <= 16 && size_of::<T>() > 0,
            "elements have a size and at most 16-byte alignment"
        )
    };
    let len = sys::dynamic_shared_bytes() as usize / size_of::<T>();
    // SAFETY: the launch reserved that many bytes, aligned to 16.
    unsafe { SharedSlice::from_raw_parts(shared_mem(), len) }
}

/// The address of the block's launch-sized shared memory, as the struct that `#[kernel(shared = …)]` names. View its
/// fields with [`shared_field!`](crate::shared_field); the simulator does not see accesses through the pointer itself.
#[inline(always)]
#[track_caller]
pub fn shared_mem<T>() -> *mut T {
    sys::shared_region(0, size_of::<T>(), align_of::<T>()).cast()
}

/// A view of an array field of a shared-memory struct: `shared_field!(smem, field)`, also `shared_field!(smem, a.b)`.
/// Rows of arrays of two or three dimensions are joined.
#[macro_export]
macro_rules! shared_field {
    ($smem:expr, $($field:tt)+) => {{
        let smem = $smem;
        // SAFETY: only the address of the field is computed; the region was reserved for this struct.
        $crate::shared::field(unsafe { &raw mut (*smem).$($field)+ }, stringify!($($field)+))
    }};
}

/// Returns a view of a field, and tells the simulator its name for reports; implements [`shared_field!`](crate::shared_field).
#[doc(hidden)]
#[inline(always)]
pub fn field<'a, A: SharedArray>(array: *mut A, name: &'static str) -> SharedSlice<'a, A::Element> {
    sys::name_shared(array.cast(), size_of::<A>(), name);
    view(array)
}

/// Returns a view of the array behind a pointer into shared memory; implements [`shared_field!`](crate::shared_field) and
/// [`shared_array!`](crate::shared_array).
#[doc(hidden)]
#[inline(always)]
pub fn view<'a, A: SharedArray>(array: *mut A) -> SharedSlice<'a, A::Element> {
    // SAFETY: the pointer comes from one of the two macros, so the array lies in the block's shared memory.
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
/// Element types of arrays in shared memory; implement it for your own plain types.
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

/// A static array of shared memory as a view: `shared_array![u32; 256]` is a
/// [`SharedSlice<u32>`](crate::shared::SharedSlice). Rows of arrays of two or three dimensions are joined. Each use in the
/// source is one array: all calls of a function with the macro share it.
///
/// Upstream's macro returns a raw pointer: `*tile.add(t) = x` there is `tile.store(t, x)` here, the same instruction on the
/// GPU, and the simulator finds a missing barrier between it and another thread's `tile.load(t)`. For the pointer use
/// [`as_raw_ptr`](crate::mem::ViewMut::as_raw_ptr), which is `unsafe`.
///
/// ```
/// use cuda_std::prelude::*;
///
/// /// The sum of each block's items.
/// #[kernel(block = 128)]
/// pub unsafe fn block_sum(input: Slice<u32>, sums: SliceMut<u32>) {
///     let tile = shared_array![u32; 128];
///     let t = thread::thread_idx_x() as usize;
///     tile.store(t, input.load(thread::index_1d() as usize));
///     thread::sync_threads();
///     if t == 0 {
///         let mut sum = 0;
///         let mut i = 0;
///         while i < tile.len() {
///             sum += tile.load(i);
///             i += 1;
///         }
///         sums.store(thread::block_idx_x() as usize, sum);
///     }
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! shared_array {
    ($t:ty; $n:expr) => {
        $crate::__shared_array!($t; $n)
    };
}
