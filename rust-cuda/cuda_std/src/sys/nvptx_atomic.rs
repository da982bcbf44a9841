//! Atomics and fences of the NVPTX target.

use super::{Element, SpaceOf};
use crate::atomic::{AtomicOp, AtomicValue, Ordering, Scope};
use core::arch::asm;

#[inline(always)]
pub fn fence(order: Ordering, scope: Scope) {
    // Memory-clobbering asm: the compiler does not move accesses across it either.
    unsafe {
        match (order, scope) {
            (Ordering::Relaxed, _) => {}
            (Ordering::SeqCst, Scope::Block) => asm!("fence.sc.cta;", options(nostack)),
            (Ordering::SeqCst, Scope::Device) => asm!("fence.sc.gpu;", options(nostack)),
            (Ordering::SeqCst, Scope::System) => asm!("fence.sc.sys;", options(nostack)),
            (_, Scope::Block) => asm!("fence.acq_rel.cta;", options(nostack)),
            (_, Scope::Device) => asm!("fence.acq_rel.gpu;", options(nostack)),
            (_, Scope::System) => asm!("fence.acq_rel.sys;", options(nostack)),
        }
    }
}

#[inline(always)]
fn fence_before(order: Ordering, scope: Scope) {
    match order {
        Ordering::Release | Ordering::AcqRel => fence(Ordering::Release, scope),
        Ordering::SeqCst => fence(Ordering::SeqCst, scope),
        _ => {}
    }
}

/// Evaluates `$access` with `$name` true if the order acquires. An instruction that acquires drops stale lines of the first-level cache, where a
/// fence also waits for earlier stores.
macro_rules! acquiring {
    ($order:expr, $name:ident => $access:expr) => {
        match $order {
            Ordering::Relaxed | Ordering::Release => {
                const $name: bool = false;
                $access
            }
            _ => {
                const $name: bool = true;
                $access
            }
        }
    };
}

/// The instructions of one type, relaxed or acquiring.
pub trait RawAtomic: Sized {
    #[doc(hidden)]
    unsafe fn raw_rmw<const ACQUIRES: bool>(
        op: AtomicOp,
        shared: bool,
        scope: Scope,
        p: *mut Self,
        v: Self,
    ) -> Self;
    #[doc(hidden)]
    unsafe fn raw_cas<const ACQUIRES: bool>(
        shared: bool,
        scope: Scope,
        p: *mut Self,
        expected: Self,
        new: Self,
    ) -> Self;
    #[doc(hidden)]
    unsafe fn raw_load<const ACQUIRES: bool>(shared: bool, scope: Scope, p: *const Self) -> Self;
    #[doc(hidden)]
    unsafe fn raw_store(shared: bool, scope: Scope, p: *mut Self, v: Self);
}

/// Calls `$emit` with the literals of space, scope and order. Shared addresses are 32-bit numbers within the window: the
/// instruction converts the generic one.
macro_rules! by_space_and_scope {
    ($shared:expr, $scope:expr, $order:literal, $emit:ident) => {
        match ($shared, $scope) {
            (false, Scope::Block) => $emit!("", "", $order, "cta", "global"),
            (false, Scope::Device) => $emit!("", "", $order, "gpu", "global"),
            (false, Scope::System) => $emit!("", "", $order, "sys", "global"),
            // All observers of shared memory are in the block.
            (true, _) => {
                $emit!("{{ .reg .b64 a; cvta.to.shared.u64 a, {p}; ", " }}", $order, "cta", "shared")
            }
        }
    };
    ($acquires:ident, $shared:expr, $scope:expr, $emit:ident) => {
        if $acquires {
            by_space_and_scope!($shared, $scope, "acquire", $emit)
        } else {
            by_space_and_scope!($shared, $scope, "relaxed", $emit)
        }
    };
}

macro_rules! address {
    ("global") => {
        "[{p}]"
    };
    ("shared") => {
        "[a]"
    };
}

macro_rules! rmw {
    ([$($op:literal),+], $reg:ident, $acquires:ident, $shared:expr, $scope:expr, $p:expr, $v:expr, $out:ident) => {{
        macro_rules! emit {
            ($pre:literal, $post:literal, $order:literal, $s:literal, $space:tt) => {
                asm!(concat!($pre, "atom.", $order, ".", $s, ".", $space, ".", $($op),+, " {o}, ", address!($space), ", {v};", $post),
                    o = out($reg) $out, p = in(reg64) $p, v = in($reg) $v, options(nostack))
            };
        }
        by_space_and_scope!($acquires, $shared, $scope, emit)
    }};
}

macro_rules! raw_atomic {
    ($($t:ty, $reg:ident, $bits:literal, $add:literal, $min:literal, $max:literal;)*) => { $(
        impl RawAtomic for $t {
            #[inline(always)]
            unsafe fn raw_rmw<const ACQUIRES: bool>(op: AtomicOp, shared: bool, scope: Scope, p: *mut Self, v: Self) -> Self {
                let old: $t;
                unsafe {
                    match op {
                        AtomicOp::Add => rmw!([$add], $reg, ACQUIRES, shared, scope, p, v, old),
                        AtomicOp::Min => rmw!([$min], $reg, ACQUIRES, shared, scope, p, v, old),
                        AtomicOp::Max => rmw!([$max], $reg, ACQUIRES, shared, scope, p, v, old),
                        AtomicOp::And => rmw!(["and.", $bits], $reg, ACQUIRES, shared, scope, p, v, old),
                        AtomicOp::Or => rmw!(["or.", $bits], $reg, ACQUIRES, shared, scope, p, v, old),
                        AtomicOp::Xor => rmw!(["xor.", $bits], $reg, ACQUIRES, shared, scope, p, v, old),
                        AtomicOp::Exchange => rmw!(["exch.", $bits], $reg, ACQUIRES, shared, scope, p, v, old),
                    }
                }
                old
            }

            #[inline(always)]
            unsafe fn raw_cas<const ACQUIRES: bool>(shared: bool, scope: Scope, p: *mut Self, expected: Self, new: Self) -> Self {
                let old: $t;
                macro_rules! emit {
                    ($pre:literal, $post:literal, $order:literal, $s:literal, $space:tt) => {
                        asm!(concat!($pre, "atom.", $order, ".", $s, ".", $space, ".cas.", $bits, " {o}, ", address!($space),
                                ", {c}, {v};", $post),
                            o = out($reg) old, p = in(reg64) p, c = in($reg) expected, v = in($reg) new, options(nostack))
                    };
                }
                unsafe { by_space_and_scope!(ACQUIRES, shared, scope, emit) }
                old
            }

            #[inline(always)]
            unsafe fn raw_load<const ACQUIRES: bool>(shared: bool, scope: Scope, p: *const Self) -> Self {
                let value: $t;
                macro_rules! emit {
                    ($pre:literal, $post:literal, $order:literal, $s:literal, $space:tt) => {
                        asm!(concat!($pre, "ld.", $order, ".", $s, ".", $space, ".", $bits, " {o}, ", address!($space), ";", $post),
                            o = out($reg) value, p = in(reg64) p, options(nostack))
                    };
                }
                unsafe { by_space_and_scope!(ACQUIRES, shared, scope, emit) }
                value
            }

            #[inline(always)]
            unsafe fn raw_store(shared: bool, scope: Scope, p: *mut Self, v: Self) {
                macro_rules! emit {
                    ($pre:literal, $post:literal, $order:literal, $s:literal, $space:tt) => {
                        asm!(concat!($pre, "st.", $order, ".", $s, ".", $space, ".", $bits, " ", address!($space), ", {v};", $post),
                            p = in(reg64) p, v = in($reg) v, options(nostack))
                    };
                }
                unsafe { by_space_and_scope!(shared, scope, "relaxed", emit) }
            }
        }
    )* };
}
raw_atomic! {
    u32, reg32, "b32", "add.u32", "min.u32", "max.u32";
    i32, reg32, "b32", "add.s32", "min.s32", "max.s32";
    u64, reg64, "b64", "add.u64", "min.u64", "max.u64";
    // Two's complement: the unsigned addition is also the signed one, for which there is no instruction.
    i64, reg64, "b64", "add.u64", "min.s64", "max.s64";
}

macro_rules! raw_float {
    ($($t:ty, $unsigned:ty, $signed:ty, $reg:ident, $add:literal;)*) => { $(
        impl RawAtomic for $t {
            #[inline(always)]
            unsafe fn raw_rmw<const ACQUIRES: bool>(op: AtomicOp, shared: bool, scope: Scope, p: *mut Self, v: Self) -> Self {
                // There is no float minimum. Among values of one sign the bits order like integers, upside down for negatives,
                // and as signed integers all negatives are below all positives: one integer operation does for either sign of v.
                let negative = v.is_sign_negative();
                let unsigned = |op| unsafe {
                    Self::from_bits(<$unsigned>::raw_rmw::<ACQUIRES>(op, shared, scope, p.cast(), v.to_bits()))
                };
                match op {
                    AtomicOp::Add => {
                        let old: $t;
                        unsafe { rmw!([$add], $reg, ACQUIRES, shared, scope, p, v, old) };
                        old
                    }
                    AtomicOp::Min if negative => unsigned(AtomicOp::Max),
                    AtomicOp::Max if negative => unsigned(AtomicOp::Min),
                    AtomicOp::Min | AtomicOp::Max => {
                        let bits = v.to_bits() as $signed;
                        let old = unsafe { <$signed>::raw_rmw::<ACQUIRES>(op, shared, scope, p.cast(), bits) };
                        Self::from_bits(old as $unsigned)
                    }
                    _ => unsigned(op),
                }
            }

            #[inline(always)]
            unsafe fn raw_cas<const ACQUIRES: bool>(shared: bool, scope: Scope, p: *mut Self, expected: Self, new: Self) -> Self {
                let (expected, new) = (expected.to_bits(), new.to_bits());
                Self::from_bits(unsafe { <$unsigned>::raw_cas::<ACQUIRES>(shared, scope, p.cast(), expected, new) })
            }

            #[inline(always)]
            unsafe fn raw_load<const ACQUIRES: bool>(shared: bool, scope: Scope, p: *const Self) -> Self {
                Self::from_bits(unsafe { <$unsigned>::raw_load::<ACQUIRES>(shared, scope, p.cast()) })
            }

            #[inline(always)]
            unsafe fn raw_store(shared: bool, scope: Scope, p: *mut Self, v: Self) {
                unsafe { <$unsigned>::raw_store(shared, scope, p.cast(), v.to_bits()) }
            }
        }
    )* };
}
raw_float! {
    f32, u32, i32, reg32, "add.f32";
    f64, u64, i64, reg64, "add.f64";
}

macro_rules! counter {
    ($($name:ident $instruction:literal;)*) => { $(
        impl<S: SpaceOf> Element<u32, S> {
            #[inline(always)]
            pub unsafe fn $name(self, limit: u32, order: Ordering, scope: Scope) -> u32 {
                fence_before(order, scope);
                let old: u32;
                acquiring!(order, ACQUIRES => unsafe {
                    rmw!([$instruction], reg32, ACQUIRES, S::IS_SHARED, scope, self.pointer, limit, old)
                });
                old
            }
        }
    )* };
}
counter! {
    increment "inc.u32";
    decrement "dec.u32";
}

impl<T: AtomicValue, S: SpaceOf> Element<T, S> {
    #[inline(always)]
    pub unsafe fn rmw(self, op: AtomicOp, value: T, order: Ordering, scope: Scope) -> T {
        fence_before(order, scope);
        acquiring!(order, ACQUIRES => unsafe { T::raw_rmw::<ACQUIRES>(op, S::IS_SHARED, scope, self.pointer, value) })
    }

    #[inline(always)]
    pub unsafe fn compare_exchange(self, expected: T, new: T, order: Ordering, scope: Scope) -> T {
        fence_before(order, scope);
        acquiring!(order, ACQUIRES => unsafe { T::raw_cas::<ACQUIRES>(S::IS_SHARED, scope, self.pointer, expected, new) })
    }

    #[inline(always)]
    pub unsafe fn load_atomic(self, order: Ordering, scope: Scope) -> T {
        fence_before(order, scope);
        acquiring!(order, ACQUIRES => unsafe { T::raw_load::<ACQUIRES>(S::IS_SHARED, scope, self.pointer) })
    }

    #[inline(always)]
    pub unsafe fn store_atomic(self, value: T, order: Ordering, scope: Scope) {
        fence_before(order, scope);
        unsafe { T::raw_store(S::IS_SHARED, scope, self.pointer, value) }
    }
}
