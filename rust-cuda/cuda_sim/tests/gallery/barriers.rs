//! Barriers and what the threads of a block do between them.

use crate::harness::{Case, Device, error, source};
use cuda_std::prelude::*;
use cuda_std::shared::dynamic_shared_slice;

const N: usize = 64;

#[repr(C)]
struct Smem {
    items: [u32; N],
    total: [u32; 1],
}

/// Each thread hands its item to its neighbor.
#[kernel(block = N, shared = Smem)]
unsafe fn exchange_without_barrier(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i)); // ! exchange without barrier
    out.store(i, items.load((t + 1) % N)); // ! exchange without barrier
}

#[kernel(block = N, shared = Smem)]
unsafe fn exchange(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i));
    thread::sync_threads();
    out.store(i, items.load((t + 1) % N));
}

/// Two rounds through the same memory: the second write comes before the first round's read (write after read).
#[kernel(block = N, shared = Smem)]
unsafe fn reuse_without_barrier(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i));
    thread::sync_threads();
    let first = items.load((t + 1) % N); // ! write after read
    items.store(t, 2 * first); // ! write after read
    thread::sync_threads();
    out.store(i, items.load((t + 1) % N));
}

#[kernel(block = N, shared = Smem)]
unsafe fn reuse(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i));
    thread::sync_threads();
    let first = items.load((t + 1) % N);
    thread::sync_threads();
    items.store(t, 2 * first);
    thread::sync_threads();
    out.store(i, items.load((t + 1) % N));
}

/// The sum of a block through a static array, which the first thread reads before it is whole.
#[kernel(block = N)]
unsafe fn static_array_without_barrier(input: Slice<u32>, out: SliceMut<u32>) {
    let tile = shared_array![u32; N];
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    tile.store(t, input.load(i)); // ! static array without barrier
    let mut sum = 0;
    for j in 0..N {
        sum = u32::wrapping_add(sum, tile.load(j)); // ! static array without barrier
    }
    out.store(i, sum);
}

#[kernel(block = N)]
unsafe fn static_array(input: Slice<u32>, out: SliceMut<u32>) {
    let tile = shared_array![u32; N];
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    tile.store(t, input.load(i));
    thread::sync_threads();
    let mut sum = 0;
    for j in 0..N {
        sum = u32::wrapping_add(sum, tile.load(j));
    }
    out.store(i, sum);
}

/// Launch-sized memory of any size, read by the neighbor too early.
#[kernel(block = N, shared = Smem)]
unsafe fn dynamic_without_barrier(input: Slice<u32>, out: SliceMut<u32>) {
    let tile = dynamic_shared_slice::<u32>();
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    tile.store(t, input.load(i)); // ! dynamic memory without barrier
    out.store(i, tile.load((t + 1) % N)); // ! dynamic memory without barrier
}

#[kernel(block = N, shared = Smem)]
unsafe fn dynamic(input: Slice<u32>, out: SliceMut<u32>) {
    let tile = dynamic_shared_slice::<u32>();
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    tile.store(t, input.load(i));
    thread::sync_threads();
    out.store(i, tile.load((t + 1) % N));
}

/// A tree sum whose last step has no barrier behind it.
#[kernel(block = N, shared = Smem)]
unsafe fn sum_without_last_barrier(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i));
    let mut half = N / 2;
    while half > 0 {
        thread::sync_threads();
        if t < half {
            items.store(t, items.load(t) + items.load(t + half)); // ! reduction without last barrier
        }
        half /= 2;
    }
    out.store(i, items.load(0)); // ! reduction without last barrier
}

#[kernel(block = N, shared = Smem)]
unsafe fn sum(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i));
    let mut half = N / 2;
    while half > 0 {
        thread::sync_threads();
        if t < half {
            items.store(t, items.load(t) + items.load(t + half));
        }
        half /= 2;
    }
    thread::sync_threads();
    out.store(i, items.load(0));
}

/// A sum by atomics whose accumulator one thread clears while others already add.
#[kernel(block = N, shared = Smem)]
unsafe fn clear_without_barrier(input: Slice<u32>, out: SliceMut<u32>) {
    let total = shared_field!(shared_mem::<Smem>(), total);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    if t == 0 {
        total.store(0, 0); // ! accumulator cleared too late
    }
    total.atomic_add(0, input.load(i), Ordering::Relaxed, Scope::Block); // ! accumulator cleared too late
    thread::sync_threads();
    out.store(i, total.load(0));
}

/// A sum by atomics whose accumulator nobody clears.
#[kernel(block = N, shared = Smem)]
unsafe fn sum_of_garbage(input: Slice<u32>, out: SliceMut<u32>) {
    let total = shared_field!(shared_mem::<Smem>(), total);
    let i = thread::index_1d() as usize;
    total.atomic_add(0, input.load(i), Ordering::Relaxed, Scope::Block); // ! uninitialized accumulator
    thread::sync_threads();
    out.store(i, total.load(0));
}

#[kernel(block = N, shared = Smem)]
unsafe fn sum_by_atomics(input: Slice<u32>, out: SliceMut<u32>) {
    let total = shared_field!(shared_mem::<Smem>(), total);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    if t == 0 {
        total.store(0, 0);
    }
    thread::sync_threads();
    total.atomic_add(0, input.load(i), Ordering::Relaxed, Scope::Block);
    thread::sync_threads();
    out.store(i, total.load(0));
}

/// Both branches have a barrier, but not the same one.
#[kernel(block = N, shared = Smem)]
unsafe fn divergent_barrier(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    if t < 40 {
        items.store(t, input.load(i));
        thread::sync_threads(); // ! divergent barrier
    } else {
        items.store(t, input.load(i));
        thread::sync_threads(); // ! divergent barrier
    }
    out.store(i, items.load((t + 1) % N));
}

/// Threads with more work pass a barrier more often.
#[kernel(block = N, shared = Smem)]
unsafe fn barrier_in_uneven_loop(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    let mut round = 0;
    while round <= t / 32 {
        items.store(t, input.load(i));
        thread::sync_threads(); // ! barrier in uneven loop
        round += 1;
    }
    thread::sync_threads(); // ! barrier in uneven loop
    out.store(i, items.load((t + 1) % N));
}

/// A counting barrier in one branch, a plain one in the other.
#[kernel(block = N, shared = Smem)]
unsafe fn mixed_barriers(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i));
    if t % 2 == 0 {
        thread::sync_threads_count(1); // ! mixed barriers
    } else {
        thread::sync_threads(); // ! mixed barriers
    }
    out.store(i, items.load((t + 1) % N));
}

#[inline(never)]
unsafe fn publish(items: SharedSlice<u32>, t: usize, item: u32) {
    items.store(t, item);
    thread::sync_threads(); // ! barrier through a helper
}

// Not inlined: the compiler would make one call of the two.
#[inline(never)]
unsafe fn publish_twice(items: SharedSlice<u32>, t: usize, item: u32) {
    publish(items, t, 2 * item);
}

/// As [`divergent_barrier`], but both barriers have one source location: only the callers differ.
#[kernel(block = N, shared = Smem)]
unsafe fn divergent_helper(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    if t < 40 {
        publish(items, t, input.load(i));
    } else {
        publish_twice(items, t, input.load(i));
    }
    out.store(i, items.load((t + 1) % N));
}

#[kernel(block = N, shared = Smem)]
unsafe fn common_helper(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    publish(items, t, input.load(i));
    out.store(i, items.load((t + 1) % N));
}

/// Half a warp waits at a barrier, while the other half waits for it at a warp sync.
#[kernel(block = N, shared = Smem)]
unsafe fn barrier_against_warp(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i));
    if t % 32 < 16 {
        warp::sync_warp(warp::FULL_MASK); // ! barrier against warp sync
    }
    thread::sync_threads(); // ! barrier against warp sync
    out.store(i, items.load((t + 1) % N));
}

#[kernel(block = N, shared = Smem)]
unsafe fn barrier_after_warp(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i));
    warp::sync_warp(warp::FULL_MASK);
    thread::sync_threads();
    out.store(i, items.load((t + 1) % N));
}

#[repr(C)]
union Phases {
    words: [u32; N],
    bytes: [u8; 4 * N],
}

/// Two phases share memory through a union, with nothing between them.
#[kernel(block = N, shared = Phases)]
unsafe fn phases_without_barrier(input: Slice<u32>, out: SliceMut<u32>) {
    let smem = shared_mem::<Phases>();
    let (words, bytes) = (shared_field!(smem, words), shared_field!(smem, bytes));
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    words.store(t, input.load(i));
    thread::sync_threads();
    let item = words.load((t + 1) % N); // ! union of phases without barrier
    bytes.store(t, item as u8); // ! union of phases without barrier
    thread::sync_threads();
    out.store(i, bytes.load(t).into());
}

#[kernel(block = N, shared = Phases)]
unsafe fn phases(input: Slice<u32>, out: SliceMut<u32>) {
    let smem = shared_mem::<Phases>();
    let (words, bytes) = (shared_field!(smem, words), shared_field!(smem, bytes));
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    words.store(t, input.load(i));
    thread::sync_threads();
    let item = words.load((t + 1) % N);
    thread::sync_threads();
    bytes.store(t, item as u8);
    thread::sync_threads();
    out.store(i, bytes.load(t).into());
}

/// One thread takes a number for the block, the others read it at once.
#[kernel(block = N, shared = Smem)]
unsafe fn broadcast_without_barrier(input: Slice<u32>, out: SliceMut<u32>) {
    let total = shared_field!(shared_mem::<Smem>(), total);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    if t == 0 {
        total.store(0, input.load(i)); // ! broadcast without barrier
    }
    out.store(i, total.load(0)); // ! broadcast without barrier
}

#[kernel(block = N, shared = Smem)]
unsafe fn broadcast(input: Slice<u32>, out: SliceMut<u32>) {
    let total = shared_field!(shared_mem::<Smem>(), total);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    if t == 0 {
        total.store(0, input.load(i));
    }
    thread::sync_threads();
    out.store(i, total.load(0));
}

/// As [`exchange_without_barrier`], and what is read is an index: garbage leads to other errors, but is none itself.
#[kernel(block = N, shared = Smem)]
unsafe fn index_without_barrier(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i)); // ! index without barrier
    let place = items.load((t + 1) % N); // ! index without barrier
    thread::sync_threads();
    out.store(i, input.load(place as usize));
}

const BLOCKS: usize = 3;
const ITEMS: usize = BLOCKS * N;

/// Expected values: each thread's neighbor item.
fn neighbors() -> Vec<u32> {
    (0..ITEMS).map(|i| (i / N * N + (i + 1) % N) as u32).collect()
}

/// The sum of each block's items, for each thread.
fn sums() -> Vec<u32> {
    (0..ITEMS).map(|i| (0..N).map(|t| (i / N * N + t) as u32).sum()).collect()
}

macro_rules! case {
    ($name:literal, $kind:ident, $always:literal, $wrong:ident, $right:ident, $values:expr) => {
        Case {
            name: $name,
            caught_as: error!($kind),
            always: $always,
            wrong: |d: &Device| d.in_out::<$wrong>(BLOCKS as u32, ITEMS, ITEMS),
            right: |d: &Device| d.in_out::<$right>(BLOCKS as u32, ITEMS, ITEMS),
            values: $values,
            source: source!("barriers.rs"),
        }
    };
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!("exchange without barrier", Race, true, exchange_without_barrier, exchange, neighbors),
        case!("static array without barrier", Race, true, static_array_without_barrier, static_array, sums),
        case!("dynamic memory without barrier", Race, true, dynamic_without_barrier, dynamic, neighbors),
        case!("index without barrier", Race, true, index_without_barrier, exchange, neighbors),
        case!("write after read", Race, true, reuse_without_barrier, reuse, || {
            (0..ITEMS).map(|i| 2 * (i / N * N + (i + 2) % N) as u32).collect()
        }),
        case!("reduction without last barrier", Race, true, sum_without_last_barrier, sum, sums),
        case!("accumulator cleared too late", Race, true, clear_without_barrier, sum_by_atomics, sums),
        case!("uninitialized accumulator", Uninitialized, true, sum_of_garbage, sum_by_atomics, sums),
        case!("divergent barrier", BarrierMismatch, true, divergent_barrier, exchange, neighbors),
        case!("barrier in uneven loop", BarrierMismatch, true, barrier_in_uneven_loop, exchange, neighbors),
        case!("mixed barriers", BarrierMismatch, true, mixed_barriers, exchange, neighbors),
        case!("barrier through a helper", BarrierMismatch, false, divergent_helper, common_helper, neighbors),
        case!(
            "barrier against warp sync",
            Deadlock,
            true,
            barrier_against_warp,
            barrier_after_warp,
            neighbors
        ),
        case!("union of phases without barrier", Race, true, phases_without_barrier, phases, || {
            neighbors().iter().map(|&x| x & 255).collect()
        }),
        case!("broadcast without barrier", Race, true, broadcast_without_barrier, broadcast, || {
            (0..ITEMS).map(|i| (i / N * N) as u32).collect()
        }),
    ]
}
