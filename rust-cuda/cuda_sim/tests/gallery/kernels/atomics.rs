//! Atomic operations: each operation on each type, and each memory order with each scope.

use cuda_std::atomic::{AtomicValue, fence};
use cuda_std::prelude::*;
use cuda_std::shared::SharedElement;

/// Cells that [`atomic_operations`] updates.
pub const CELLS: usize = 9;

/// Shared memory of [`atomic_operations`].
#[repr(C)]
pub struct Smem<T> {
    cells: [T; CELLS],
}

/// Applies add, sub, min, max, and, or, xor and exchange with each thread's operand, and a sum by compare-exchange, to nine
/// cells in global memory and to nine in shared memory.
#[kernel(block = 64, shared = Smem<T>)]
#[instances(T = [u32, i32, u64, i64, f32, f64])]
pub unsafe fn atomic_operations<T>(
    operands: Slice<T>,
    start: Slice<T>,
    global: SliceMut<T>,
    shared_out: SliceMut<T>,
) where
    T: AtomicValue + SharedElement + core::ops::Add<Output = T> + 'static,
{
    let shared = shared_field!(shared_mem::<Smem<T>>(), cells);
    let t = thread::thread_idx_x() as usize;
    if t < CELLS {
        shared.store(t, start.load(t));
    }
    thread::sync_threads();
    let x = operands.load(t);
    macro_rules! update {
        ($cells:expr, $scope:expr) => {
            $cells.atomic_add(0, x, Ordering::Relaxed, $scope);
            $cells.atomic_sub(1, x, Ordering::Relaxed, $scope);
            $cells.atomic_min(2, x, Ordering::Relaxed, $scope);
            $cells.atomic_max(3, x, Ordering::Relaxed, $scope);
            $cells.atomic_and(4, x, Ordering::Relaxed, $scope);
            $cells.atomic_or(5, x, Ordering::Relaxed, $scope);
            $cells.atomic_xor(6, x, Ordering::Relaxed, $scope);
            $cells.atomic_exchange(7, x, Ordering::Relaxed, $scope);
            let mut sum = $cells.atomic_load(8, Ordering::Relaxed, $scope);
            loop {
                let seen = $cells.atomic_compare_exchange(8, sum, sum + x, Ordering::Relaxed, $scope);
                if seen == sum {
                    break;
                }
                sum = seen;
                thread::spin_hint();
            }
        };
    }
    update!(global, Scope::Device);
    update!(shared, Scope::Block);
    thread::sync_threads();
    if t < CELLS {
        shared_out.store(t, shared.load(t));
    }
}

/// Counts threads up and down in rings of `limit + 1` values; writes the values before.
#[kernel(block = 64)]
pub unsafe fn atomic_counters(rings: SliceMut<u32>, before: SliceMut<u32>, limit: u32) {
    let t = thread::thread_idx_x() as usize;
    before.store(2 * t, rings.atomic_inc(0, limit, Ordering::Relaxed, Scope::Device));
    before.store(2 * t + 1, rings.atomic_dec(1, limit, Ordering::Relaxed, Scope::Device));
}

/// A memory order as a type.
pub trait Order: 'static {
    /// The order.
    const ORDER: Ordering;
}

/// A scope as a type.
pub trait ScopeOf: 'static {
    /// The scope.
    const SCOPE: Scope;
}

macro_rules! values {
    ($of:ident, $name:ident, $ty:ident: $($value:ident)*) => { $(
        #[doc = concat!("`", stringify!($ty), "::", stringify!($value), "`.")]
        pub struct $value;
        impl $of for $value {
            const $name: $ty = $ty::$value;
        }
    )* };
}
values!(Order, ORDER, Ordering: Relaxed Acquire Release AcqRel SeqCst);
values!(ScopeOf, SCOPE, Scope: Block Device System);

/// One of each operation that takes an order: fence, add, compare-exchange, load and store if they have the order.
#[kernel(block = 32)]
#[instances(O = [Relaxed, Acquire, Release, AcqRel, SeqCst], S = [Block, Device, System])]
pub unsafe fn atomic_orders<O: Order, S: ScopeOf>(cells: SliceMut<u32>) {
    fence(O::ORDER, S::SCOPE);
    cells.atomic_add(0, 1, O::ORDER, S::SCOPE);
    cells.atomic_compare_exchange(1, 0, 1, O::ORDER, S::SCOPE);
    if matches!(O::ORDER, Ordering::Relaxed | Ordering::Acquire | Ordering::SeqCst) {
        cells.atomic_load(2, O::ORDER, S::SCOPE);
    }
    if matches!(O::ORDER, Ordering::Relaxed | Ordering::Release | Ordering::SeqCst) {
        cells.atomic_store(3, 1, O::ORDER, S::SCOPE);
    }
}

/// Passes a value from the first block to the second by a flag, which is stored with the order `W` and loaded with `R`.
#[kernel(block = 32)]
#[instance(Release, Acquire, Device)]
pub unsafe fn atomic_message<W: Order, R: Order, S: ScopeOf>(
    data: SliceMut<u32>,
    flag: SliceMut<u32>,
    out: SliceMut<u32>,
) {
    if thread::thread_idx_x() != 0 {
        return;
    }
    // The blocks take tickets: the second one to start waits for the first.
    if flag.atomic_add(1, 1, Ordering::Relaxed, Scope::Device) == 0 {
        data.store(0, 7);
        flag.atomic_store(0, 1, W::ORDER, S::SCOPE);
    } else {
        while flag.atomic_load(0, R::ORDER, S::SCOPE) == 0 {
            thread::spin_hint();
        }
        out.store(0, data.load(0));
    }
}
