//! Barriers and shared memory.

use cuda_std::prelude::*;
use cuda_std::shared::dynamic_shared_slice;

const BLOCK: usize = 128;

/// Writes three words for each thread: how many inputs of the block are not 0, whether all are, whether any is.
#[kernel(family = "test", block = BLOCK)]
pub unsafe fn test_barriers(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let predicate = input.load(i);
    out.store(3 * i, thread::sync_threads_count(predicate));
    out.store(3 * i + 1, thread::sync_threads_and(predicate));
    out.store(3 * i + 2, thread::sync_threads_or(predicate));
}

/// Launch-sized shared memory of [`test_shared()`].
#[repr(C)]
pub struct Smem {
    items: [u32; BLOCK],
    rows: [[u64; BLOCK / 2]; 2],
}

/// Reverses the block's items through three kinds of shared memory: a field, a two-dimensional field, static arrays.
#[kernel(family = "test", block = BLOCK, shared = Smem)]
pub unsafe fn test_shared(input: Slice<u32>, out: SliceMut<u32>) {
    let smem = shared_mem::<Smem>();
    let (items, rows) = (shared_field!(smem, items), shared_field!(smem, rows));
    let (plain, other) = (shared_array![u32; BLOCK], shared_array![u32; 1]);
    let t = thread::thread_idx_x() as usize;
    let i = thread::index_1d() as usize;

    let item = input.load(i);
    items.store(t, item);
    rows.store(t, u64::from(item) << 8);
    plain.store(t, item);
    if t == 0 {
        other.store(0, 1000);
    }
    thread::sync_threads();
    let mirrored = BLOCK - 1 - t;
    let sum = items.load(mirrored) + (rows.load(mirrored) >> 8) as u32 + plain.load(mirrored) + other.load(0);
    out.store(i, sum);
}

/// Waits at a barrier after a divergent branch with work on both sides: the compiler must not duplicate the barrier.
#[kernel(family = "test", block = BLOCK, shared = Smem)]
pub unsafe fn test_divergent_then_barrier(input: Slice<u32>, out: SliceMut<u32>, bound: u32) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let t = thread::thread_idx_x() as usize;
    let i = thread::index_1d() as usize;
    let item = input.load(i);
    let chosen = item < bound;
    items.store(t, if chosen { item * 2 } else { 1 });
    thread::sync_threads();
    if chosen {
        out.store(i, items.load((t + 1) % BLOCK));
    } else {
        out.store(i, 0);
    }
}

/// Sums each block's items through a static array, with the necessary barrier or without it.
#[kernel(family = "test", block = BLOCK, hot)]
pub unsafe fn test_block_sum(input: Slice<u32>, sums: SliceMut<u32>, with_barrier: u32) {
    let tile = shared_array![u32; BLOCK];
    let t = thread::thread_idx_x() as usize;
    tile.store(t, input.load(thread::index_1d() as usize));
    if with_barrier != 0 {
        thread::sync_threads();
    }
    if t == 0 {
        let (mut sum, mut i) = (0, 0);
        while i < BLOCK {
            // Without the barrier the sum is undefined.
            sum = u32::wrapping_add(sum, tile.load(i));
            i += 1;
        }
        sums.store(thread::block_idx_x() as usize, sum);
    }
}

/// Passes each item to the neighbor thread through a view of all launch-sized memory.
#[kernel(family = "test", block = BLOCK, shared = [u32; BLOCK], hot)]
pub unsafe fn test_dynamic_shared(input: Slice<u32>, out: SliceMut<u32>) {
    let tile = dynamic_shared_slice::<u32>();
    let t = thread::thread_idx_x() as usize;
    let i = thread::index_1d() as usize;
    tile.store(t, input.load(i));
    thread::sync_threads();
    out.store(i, tile.load((t + 1) % tile.len()));
}
