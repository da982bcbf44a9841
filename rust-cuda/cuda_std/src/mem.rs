//! Memory as views: [`Slice`] and [`SliceMut`] over device memory, the common type behind them, and fault reports.
//!
//! A view loads and stores values and never hands out a reference: references into memory that other threads write are
//! undefined behavior. On the GPU an access is one plain instruction; in the simulator it is checked; in a `checked`
//! build it is checked on the GPU as well.

use crate::atomic::{AtomicOp, AtomicValue, Ordering, Scope};
use crate::sys::{self, CacheHint};
use core::marker::PhantomData;

pub use crate::sys::{FaultRecord, Global, Shared, SpaceOf};

/// A view of elements in global or shared memory that may be read and written. Used as [`SliceMut`] and
/// [`SharedSlice`](crate::shared::SharedSlice).
///
/// On the host it is a kernel argument: a borrow of a device buffer, never dereferenced.
pub struct ViewMut<'a, T, S> {
    pointer: *mut T,
    len: usize,
    _life: PhantomData<&'a mut T>,
    _space: PhantomData<S>,
}

/// Device memory that a kernel reads and writes. As a kernel parameter it is two scalars, pointer and length.
pub type SliceMut<'a, T> = ViewMut<'a, T, Global>;

/// Device memory that a kernel only reads. As a kernel parameter it is two scalars, pointer and length.
pub struct Slice<'a, T> {
    view: SliceMut<'a, T>,
}

impl<T, S> Clone for ViewMut<'_, T, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, S> Copy for ViewMut<'_, T, S> {}
impl<T> Clone for Slice<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Slice<'_, T> {}
// SAFETY: a view is an address and a length; the kernel is responsible for races of accesses through it.
unsafe impl<T: Send, S> Send for ViewMut<'_, T, S> {}
// SAFETY: as above.
unsafe impl<T: Sync, S> Sync for ViewMut<'_, T, S> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Slice<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Slice<'_, T> {}

impl<'a, T, S: SpaceOf> ViewMut<'a, T, S> {
    /// A view of `len` elements.
    ///
    /// # Safety
    /// For every access made through the view, the memory must be valid at that time, in the address space `S`.
    #[inline(always)]
    pub const unsafe fn from_raw_parts(pointer: *mut T, len: usize) -> Self {
        Self { pointer, len, _life: PhantomData, _space: PhantomData }
    }

    /// Number of elements.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there are no elements.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The part from `begin`, `len` elements long.
    ///
    /// # Safety
    /// The part must lie within the view (checked like an access).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn part(&self, begin: usize, len: usize) -> Self {
        sys::check_range(begin, len, self.len);
        // SAFETY: within this view, says the caller.
        unsafe { Self::from_raw_parts(self.pointer.wrapping_add(begin), len) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn at(&self, i: usize) -> sys::Element<T, S> {
        sys::Element::new(self.pointer, i, self.len)
    }
}

impl<T: Copy, S: SpaceOf> ViewMut<'_, T, S> {
    /// Element `i`.
    ///
    /// # Safety
    /// `i` must be less than [`len`](Self::len), the element initialized, and no other thread may write it at the same
    /// time.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load(&self, i: usize) -> T {
        // SAFETY: passed on to the caller.
        unsafe { self.at(i).load(CacheHint::None) }
    }

    /// Sets element `i`.
    ///
    /// # Safety
    /// `i` must be less than [`len`](Self::len), and no other thread may access the element at the same time.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store(&self, i: usize, value: T) {
        // SAFETY: passed on to the caller.
        unsafe { self.at(i).store(value, CacheHint::None) }
    }

    /// Elements `i * N .. (i + 1) * N` by one 16-byte access.
    ///
    /// # Safety
    /// As [`load`](Self::load) for each element; `N` elements must be 16 bytes and the first one 16-byte aligned.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_16<const N: usize>(&self, i: usize) -> [T; N] {
        const { assert!(N * size_of::<T>() == 16, "load_16 moves 16 bytes") };
        // SAFETY: passed on to the caller.
        unsafe {
            ViewMut::<[T; N], S>::from_raw_parts(self.pointer.cast(), self.len / N)
                .at(i)
                .load(CacheHint::None)
        }
    }

    /// Sets elements `i * N .. (i + 1) * N` by one 16-byte access.
    ///
    /// # Safety
    /// As [`store`](Self::store) for each element; `N` elements must be 16 bytes and the first one 16-byte aligned.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_16<const N: usize>(&self, i: usize, values: [T; N]) {
        const { assert!(N * size_of::<T>() == 16, "store_16 moves 16 bytes") };
        // SAFETY: passed on to the caller.
        unsafe {
            ViewMut::<[T; N], S>::from_raw_parts(self.pointer.cast(), self.len / N)
                .at(i)
                .store(values, CacheHint::None)
        }
    }
}

impl<T> ViewMut<'_, T, Shared> {
    /// Address of the first element, for operations that views do not have.
    ///
    /// # Safety
    /// The simulator and `checked` builds do not see accesses through the pointer: a missing barrier stays hidden.
    #[inline(always)]
    pub const unsafe fn as_raw_ptr(&self) -> *mut T {
        self.pointer
    }
}

impl<'a, T> SliceMut<'a, T> {
    /// Address of the first element. The simulator does not see accesses through it.
    #[inline(always)]
    pub const fn as_ptr(&self) -> *mut T {
        self.pointer
    }

    /// Returns a read-only view of this memory.
    #[inline(always)]
    pub const fn read_only(&self) -> Slice<'a, T> {
        Slice { view: *self }
    }
}

impl<T: Copy> SliceMut<'_, T> {
    /// Element `i`, which will not be used again: its cache line may be evicted first.
    ///
    /// # Safety
    /// As [`load`](ViewMut::load).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_streaming(&self, i: usize) -> T {
        // SAFETY: passed on to the caller.
        unsafe { self.at(i).load(CacheHint::Streaming) }
    }

    /// Sets element `i`, which will not be used again soon.
    ///
    /// # Safety
    /// As [`store`](ViewMut::store).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_streaming(&self, i: usize, value: T) {
        // SAFETY: passed on to the caller.
        unsafe { self.at(i).store(value, CacheHint::Streaming) }
    }
}

macro_rules! atomic_methods {
    ($($name:ident, $op:ident, $what:literal;)*) => { $(
        #[doc = $what]
        ///
        /// # Safety
        /// `i` must be less than [`len`](Self::len); other threads in `scope` may access the element only atomically.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $name(&self, i: usize, value: T, order: Ordering, scope: Scope) -> T {
            // SAFETY: passed on to the caller.
            unsafe { self.at(i).rmw(AtomicOp::$op, value, order, scope) }
        }
    )* };
}

impl<T: AtomicValue, S: SpaceOf> ViewMut<'_, T, S> {
    atomic_methods! {
        atomic_add, Add, "Adds to element `i`, wrapping for integers; returns the value before.";
        atomic_min, Min, "Keeps the smaller of element `i` and `value`; returns the value before.";
        atomic_max, Max, "Keeps the larger of element `i` and `value`; returns the value before.";
        atomic_and, And, "Bitwise and; returns the value before.";
        atomic_or, Or, "Bitwise or; returns the value before.";
        atomic_xor, Xor, "Bitwise exclusive or; returns the value before.";
        atomic_exchange, Exchange, "Stores `value`; returns the value before.";
    }

    /// Subtracts from element `i`, wrapping for integers; returns the value before.
    ///
    /// # Safety
    /// As [`atomic_add`](Self::atomic_add).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_sub(&self, i: usize, value: T, order: Ordering, scope: Scope) -> T {
        // SAFETY: passed on to the caller.
        unsafe { self.at(i).rmw(AtomicOp::Add, value.negated(), order, scope) }
    }

    /// Stores `new` if element `i` is `expected`; returns the value before. Floats are compared by their bits.
    ///
    /// # Safety
    /// As [`atomic_add`](Self::atomic_add).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_compare_exchange(
        &self,
        i: usize,
        expected: T,
        new: T,
        order: Ordering,
        scope: Scope,
    ) -> T {
        // SAFETY: passed on to the caller.
        unsafe { self.at(i).compare_exchange(expected, new, order, scope) }
    }

    /// Loads element `i` atomically. `order` is Relaxed, Acquire or SeqCst.
    ///
    /// # Safety
    /// As [`atomic_add`](Self::atomic_add).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_load(&self, i: usize, order: Ordering, scope: Scope) -> T {
        // SAFETY: passed on to the caller.
        unsafe { self.at(i).load_atomic(order, scope) }
    }

    /// Stores element `i` atomically. `order` is Relaxed, Release or SeqCst.
    ///
    /// # Safety
    /// As [`atomic_add`](Self::atomic_add).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_store(&self, i: usize, value: T, order: Ordering, scope: Scope) {
        // SAFETY: passed on to the caller.
        unsafe { self.at(i).store_atomic(value, order, scope) }
    }
}

impl<S: SpaceOf> ViewMut<'_, u32, S> {
    /// Adds 1 to element `i`, or stores 0 if it is at least `limit`; returns the value before.
    ///
    /// # Safety
    /// As [`atomic_add`](Self::atomic_add).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_inc(&self, i: usize, limit: u32, order: Ordering, scope: Scope) -> u32 {
        // SAFETY: passed on to the caller.
        unsafe { self.at(i).increment(limit, order, scope) }
    }

    /// Subtracts 1 from element `i`, or stores `limit` if it is 0 or above `limit`; returns the value before.
    ///
    /// # Safety
    /// As [`atomic_add`](Self::atomic_add).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_dec(&self, i: usize, limit: u32, order: Ordering, scope: Scope) -> u32 {
        // SAFETY: passed on to the caller.
        unsafe { self.at(i).decrement(limit, order, scope) }
    }
}

impl<'a, T> Slice<'a, T> {
    /// A view of `len` elements.
    ///
    /// # Safety
    /// For every access made through the view, the memory must be valid at that time, in global memory.
    #[inline(always)]
    pub const unsafe fn from_raw_parts(pointer: *const T, len: usize) -> Self {
        // SAFETY: passed on to the caller.
        Self { view: unsafe { SliceMut::from_raw_parts(pointer.cast_mut(), len) } }
    }

    /// Number of elements.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.view.len
    }

    /// True if there are no elements.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.view.len == 0
    }

    /// Address of the first element. The simulator does not see accesses through it.
    #[inline(always)]
    pub const fn as_ptr(&self) -> *const T {
        self.view.pointer
    }

    /// The part from `begin`, `len` elements long.
    ///
    /// # Safety
    /// The part must lie within the view (checked like an access).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn part(&self, begin: usize, len: usize) -> Self {
        // SAFETY: passed on to the caller.
        Self { view: unsafe { self.view.part(begin, len) } }
    }

    /// Returns this memory as a Rust slice; accesses through it are not checked.
    ///
    /// # Safety
    /// The memory must stay unwritten for `'a`.
    #[inline(always)]
    pub unsafe fn as_slice(&self) -> &'a [T] {
        // SAFETY: passed on to the caller.
        unsafe { core::slice::from_raw_parts(self.view.pointer, self.view.len) }
    }
}

impl<T: Copy> Slice<'_, T> {
    /// Element `i`.
    ///
    /// # Safety
    /// `i` must be less than [`len`](Self::len), the element initialized, and nothing may write it at the same time.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load(&self, i: usize) -> T {
        // SAFETY: passed on to the caller.
        unsafe { self.view.at(i).load(CacheHint::None) }
    }

    /// Element `i` through the read-only cache.
    ///
    /// # Safety
    /// As [`load`](Self::load), and nothing may write the element during the whole kernel.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_readonly(&self, i: usize) -> T {
        // SAFETY: passed on to the caller.
        unsafe { self.view.at(i).load(CacheHint::ReadOnly) }
    }

    /// Element `i`, which will not be used again: its cache line may be evicted first.
    ///
    /// # Safety
    /// As [`load`](Self::load).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_streaming(&self, i: usize) -> T {
        // SAFETY: passed on to the caller.
        unsafe { self.view.at(i).load(CacheHint::Streaming) }
    }

    /// Elements `i * N .. (i + 1) * N` by one 16-byte access.
    ///
    /// # Safety
    /// As [`load`](Self::load) for each element; `N` elements must be 16 bytes and the first one 16-byte aligned.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_16<const N: usize>(&self, i: usize) -> [T; N] {
        // SAFETY: passed on to the caller.
        unsafe { self.view.load_16(i) }
    }
}

/// Bytes of launch-sized shared memory of the running kernel.
#[inline(always)]
pub fn dynamic_smem_size() -> u32 {
    sys::dynamic_shared_bytes()
}
