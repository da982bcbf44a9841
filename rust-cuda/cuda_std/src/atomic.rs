//! Atomics with a scope and a memory order.
//!
//! LLVM drops order and scope of `fetch_add` and similar functions of `core` on this target. Here an access that
//! releases is a fence and an access, and one that acquires is an instruction of that kind. Most kernels use the methods of
//! [`SliceMut`] and [`SharedSlice`](crate::shared::SharedSlice), which check bounds in the simulator; the functions
//! here take raw pointers to global memory, as upstream's do.

use crate::mem::SliceMut;

pub use core::sync::atomic::Ordering;

/// The threads among which an operation is atomic or ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The thread's block.
    Block,
    /// All threads of the device.
    Device,
    /// All threads of all devices and of the host.
    System,
}

/// A read-modify-write operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AtomicOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
}

/// A type with atomic operations: `u32`, `i32`, `u64`, `i64`, `f32`, `f64`.
///
/// Min and max of floats order by sign and magnitude and must not meet NaN. And, or and xor of floats act on the bits.
pub trait AtomicValue: Copy + PartialEq + crate::sys::RawAtomic {
    /// The result of the operation on a stored value.
    fn apply(op: AtomicOp, stored: Self, operand: Self) -> Self;
    /// The value whose addition subtracts this one.
    #[doc(hidden)]
    fn negated(self) -> Self;
}

macro_rules! atomic_int {
    ($($t:ty),*) => { $(
        impl AtomicValue for $t {
            #[inline(always)]
            fn apply(op: AtomicOp, stored: Self, operand: Self) -> Self {
                match op {
                    AtomicOp::Add => stored.wrapping_add(operand),
                    AtomicOp::Min => stored.min(operand),
                    AtomicOp::Max => stored.max(operand),
                    AtomicOp::And => stored & operand,
                    AtomicOp::Or => stored | operand,
                    AtomicOp::Xor => stored ^ operand,
                    AtomicOp::Exchange => operand,
                }
            }
            #[inline(always)]
            fn negated(self) -> Self {
                self.wrapping_neg()
            }
        }
    )* };
}
atomic_int!(u32, i32, u64, i64);

macro_rules! atomic_float {
    ($($t:ty),*) => { $(
        impl AtomicValue for $t {
            #[inline(always)]
            fn apply(op: AtomicOp, stored: Self, operand: Self) -> Self {
                let (a, b) = (stored.to_bits(), operand.to_bits());
                match op {
                    AtomicOp::Add => stored + operand,
                    AtomicOp::Min => stored.min(operand),
                    AtomicOp::Max => stored.max(operand),
                    AtomicOp::And => Self::from_bits(a & b),
                    AtomicOp::Or => Self::from_bits(a | b),
                    AtomicOp::Xor => Self::from_bits(a ^ b),
                    AtomicOp::Exchange => operand,
                }
            }
            #[inline(always)]
            fn negated(self) -> Self {
                -self
            }
        }
    )* };
}
atomic_float!(f32, f64);

/// Orders the calling thread's memory accesses before and after it, for observers in `scope`.
///
/// [`Ordering::Relaxed`] does nothing; [`Ordering::SeqCst`] also orders with all other such fences.
#[inline(always)]
#[track_caller]
pub fn fence(order: Ordering, scope: Scope) {
    crate::sys::fence(order, scope)
}

#[inline(always)]
unsafe fn one<'a, T>(pointer: *mut T) -> SliceMut<'a, T> {
    // SAFETY: the caller says that the pointer is to one valid element.
    unsafe { SliceMut::from_raw_parts(pointer, 1) }
}

macro_rules! pointer_functions {
    ($($name:ident, $method:ident, $what:literal;)*) => { $(
        #[doc = $what]
        ///
        /// # Safety
        /// `pointer` must be valid and aligned, in global memory.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $name<T: AtomicValue>(pointer: *mut T, value: T, order: Ordering, scope: Scope) -> T {
            // SAFETY: passed on to the caller.
            unsafe { one(pointer).$method(0, value, order, scope) }
        }
    )* };
}
pointer_functions! {
    atomic_fetch_add, atomic_add, "Adds, wrapping for integers; returns the value before.";
    atomic_fetch_sub, atomic_sub, "Subtracts, wrapping for integers; returns the value before.";
    atomic_fetch_min, atomic_min, "Keeps the smaller value; returns the value before.";
    atomic_fetch_max, atomic_max, "Keeps the larger value; returns the value before.";
    atomic_fetch_and, atomic_and, "Bitwise and; returns the value before.";
    atomic_fetch_or, atomic_or, "Bitwise or; returns the value before.";
    atomic_fetch_xor, atomic_xor, "Bitwise exclusive or; returns the value before.";
    atomic_exchange, atomic_exchange, "Stores; returns the value before.";
}

/// Stores `new` if the value is `expected`; returns the value before.
///
/// # Safety
/// `pointer` must be valid and aligned, in global memory.
#[inline(always)]
#[track_caller]
pub unsafe fn atomic_compare_exchange<T: AtomicValue>(
    pointer: *mut T,
    expected: T,
    new: T,
    order: Ordering,
    scope: Scope,
) -> T {
    // SAFETY: passed on to the caller.
    unsafe { one(pointer).atomic_compare_exchange(0, expected, new, order, scope) }
}

/// Loads atomically.
///
/// # Safety
/// `pointer` must be valid and aligned, in global memory.
#[inline(always)]
#[track_caller]
pub unsafe fn atomic_load<T: AtomicValue>(pointer: *const T, order: Ordering, scope: Scope) -> T {
    // SAFETY: passed on to the caller; nothing is written.
    unsafe { one(pointer.cast_mut()).atomic_load(0, order, scope) }
}

/// Stores atomically.
///
/// # Safety
/// `pointer` must be valid and aligned, in global memory.
#[inline(always)]
#[track_caller]
pub unsafe fn atomic_store<T: AtomicValue>(pointer: *mut T, value: T, order: Ordering, scope: Scope) {
    // SAFETY: passed on to the caller.
    unsafe { one(pointer).atomic_store(0, value, order, scope) }
}
