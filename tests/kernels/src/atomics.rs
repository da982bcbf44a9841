//! Atomic operations on global and shared memory.

use cuda_std::atomic::{self, AtomicValue};
use cuda_std::prelude::*;
use cuda_std::shared::SharedElement;

/// Shared memory of [`test_atomics()`].
#[repr(C)]
pub struct Smem<T> {
    cells: [T; 7],
}

/// Applies add, min, max, and, or, xor and exchange with each thread's operand to seven cells in global memory and to seven
/// in shared memory, which are copied out at the end. The cells start with the values of `start`.
#[kernel(family = "test", block = 256, shared = Smem<T>)]
#[instances(T = [u32, i32, u64, i64, f32, f64])]
pub unsafe fn test_atomics<T: AtomicValue + SharedElement + 'static>(
    operands: Slice<T>,
    start: Slice<T>,
    global: SliceMut<T>,
    shared_out: SliceMut<T>,
) {
    let cells = shared_field!(shared_mem::<Smem<T>>(), cells);
    let i = thread::index_1d() as usize;
    let t = thread::thread_idx_x() as usize;
    if t < 7 {
        cells.store(t, start.load(t));
    }
    thread::sync_threads();
    let x = operands.load(i);
    global.atomic_add(0, x, Ordering::Relaxed, Scope::Device);
    global.atomic_min(1, x, Ordering::AcqRel, Scope::Device);
    global.atomic_max(2, x, Ordering::Acquire, Scope::System);
    global.atomic_and(3, x, Ordering::Release, Scope::Device);
    global.atomic_or(4, x, Ordering::SeqCst, Scope::Device);
    global.atomic_xor(5, x, Ordering::Relaxed, Scope::System);
    atomic::atomic_exchange(global.as_ptr().add(6), x, Ordering::Relaxed, Scope::Device);
    cells.atomic_add(0, x, Ordering::Relaxed, Scope::Block);
    cells.atomic_min(1, x, Ordering::AcqRel, Scope::Block);
    cells.atomic_max(2, x, Ordering::Relaxed, Scope::Block);
    cells.atomic_and(3, x, Ordering::Relaxed, Scope::Block);
    cells.atomic_or(4, x, Ordering::Relaxed, Scope::Block);
    cells.atomic_xor(5, x, Ordering::Relaxed, Scope::Block);
    cells.atomic_exchange(6, x, Ordering::Relaxed, Scope::Block);
    thread::sync_threads();
    if t < 7 {
        shared_out.store(7 * thread::block_idx_x() as usize + t, cells.load(t));
    }
}

/// Counts each thread up and down in rings of `limit + 1` values, and subtracts 3.
#[kernel(family = "test", block = 64)]
pub unsafe fn test_counters(cells: SliceMut<u32>, limit: u32) {
    cells.atomic_inc(0, limit, Ordering::Relaxed, Scope::Device);
    cells.atomic_dec(1, limit, Ordering::Relaxed, Scope::Device);
    atomic::atomic_fetch_sub(cells.as_ptr().add(2), 3, Ordering::Relaxed, Scope::Device);
}

/// Each thread takes a ticket by compare-exchange and marks it.
#[kernel(family = "test", block = 64)]
pub unsafe fn test_tickets(next: SliceMut<u32>, taken: SliceMut<u32>) {
    let mut ticket = next.atomic_load(0, Ordering::Relaxed, Scope::Device);
    loop {
        let seen = next.atomic_compare_exchange(0, ticket, ticket + 1, Ordering::Relaxed, Scope::Device);
        if seen == ticket {
            break;
        }
        ticket = seen;
        thread::spin_hint();
    }
    if (ticket as usize) < taken.len() {
        taken.atomic_add(ticket as usize, 1, Ordering::Relaxed, Scope::Device);
    }
}
