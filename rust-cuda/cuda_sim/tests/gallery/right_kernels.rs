//! Correct kernels that a simpler check would reject: their accesses are ordered by a long chain of synchronization.

use crate::harness::{Device, schedule};
use cuda_sim::{LaunchSpec, Options, SimError};
use cuda_std::atomic::fence;
use cuda_std::kernel::Kernel;
use cuda_std::prelude::*;

const N: usize = 64;
const BLOCKS: usize = 6;

/// Runs under the standard schedules and compares.
fn passes(name: &str, values: &[u32], run: impl Fn(&Device) -> Result<Vec<u32>, SimError>) {
    for i in 0..Options::ORDERS {
        match run(&Device::new(schedule(i))) {
            Ok(got) => assert_eq!(got, values, "{name} under schedule {i}"),
            Err(error) => panic!("{name} under schedule {i}:\n{error}"),
        }
    }
}

#[repr(C)]
struct Smem {
    items: [u32; N],
    word: [u32; 1],
    bytes: [u8; N],
}

/// Decoupled look-back with states and values apart, ordered by fences and relaxed flags. Aggregates first, so that a
/// tile may add up several tiles before it.
#[kernel(block = N, shared = Smem)]
unsafe fn look_back_by_fences(
    input: Slice<u32>,
    states: SliceMut<u32>,
    aggregates: SliceMut<u32>,
    out: SliceMut<u32>,
) {
    let word = shared_field!(shared_mem::<Smem>(), word);
    let t = thread::thread_idx_x();
    if t == 0 {
        word.store(0, states.atomic_add(BLOCKS, 1, Ordering::Relaxed, Scope::Device));
    }
    thread::sync_threads();
    let tile = word.load(0) as usize;
    if t == 0 {
        let own = input.load(tile);
        aggregates.store(tile, own);
        thread::device_fence();
        states.atomic_store(tile, if tile == 0 { 2 } else { 1 }, Ordering::Relaxed, Scope::Device);
        let (mut sum, mut before) = (own, tile);
        if tile == 0 {
            out.store(0, own);
            thread::device_fence();
            states.atomic_store(0, 2, Ordering::Relaxed, Scope::Device);
        }
        while before > 0 {
            let state = states.atomic_load(before - 1, Ordering::Relaxed, Scope::Device);
            if state == 0 {
                thread::spin_hint();
                continue;
            }
            thread::device_fence();
            sum += if state == 2 && before > 1 { out.load(before - 1) } else { aggregates.load(before - 1) };
            before = if state == 2 { 0 } else { before - 1 };
        }
        if tile > 0 {
            out.store(tile, sum);
            thread::device_fence();
            states.atomic_store(tile, 2, Ordering::Relaxed, Scope::Device);
        }
    }
}

#[test]
fn look_back_with_aggregates_and_fences() {
    let input: Vec<u32> = (1..=BLOCKS as u32).map(|x| x * x).collect();
    let sums: Vec<u32> = (1..=BLOCKS).map(|n| input[..n].iter().sum()).collect();
    passes("look-back", &sums, |d| {
        let (states, out) = (d.zeros(BLOCKS + 1), d.fresh::<u32>(BLOCKS));
        let aggregates = d.fresh::<u32>(BLOCKS);
        let args = (d.array(&input).slice(), states.slice_mut(), aggregates.slice_mut(), out.slice_mut());
        d.launch::<look_back_by_fences>(BLOCKS as u32, args)?;
        d.read(out)
    });
}

/// All threads of a block write; after a barrier one of them releases for all. In the last block one thread acquires, and
/// a barrier passes the order to all.
#[kernel(block = N, shared = Smem)]
unsafe fn one_speaks_for_all(out: SliceMut<u32>, done: SliceMut<u32>) {
    let word = shared_field!(shared_mem::<Smem>(), word);
    let (t, b) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize);
    out.store(b * N + t, (b * N + t) as u32);
    thread::sync_threads();
    if t == 40 {
        let before = done.atomic_add(0, 1, Ordering::AcqRel, Scope::Device);
        word.store(0, before);
    }
    thread::sync_threads();
    if word.load(0) + 1 == thread::grid_dim_x() {
        let mut block = 0;
        while block < BLOCKS {
            let i = block * N + (t + 1) % N;
            out.store(i, out.load(i) * 2);
            block += 1;
        }
    }
}

#[test]
fn one_thread_releases_and_acquires_for_its_block() {
    let values: Vec<u32> = (0..(BLOCKS * N) as u32).map(|i| 2 * i).collect();
    passes("one for all", &values, |d| {
        let (out, done) = (d.fresh::<u32>(BLOCKS * N), d.zeros(1));
        d.launch::<one_speaks_for_all>(BLOCKS as u32, (out.slice_mut(), done.slice_mut()))?;
        d.read(out)
    });
}

/// A release sequence through relaxed updates of other threads, over three blocks.
#[kernel(block = N)]
unsafe fn through_others(data: SliceMut<u32>, flags: SliceMut<u32>, out: SliceMut<u32>) {
    if thread::thread_idx_x() != 0 {
        return;
    }
    let wait = |flag: usize, value: u32| {
        while flags.atomic_load(flag, Ordering::Relaxed, Scope::Device) < value {
            thread::spin_hint();
        }
    };
    match flags.atomic_add(3, 1, Ordering::Relaxed, Scope::Device) {
        0 => {
            data.store(0, 5);
            flags.atomic_add(0, 1, Ordering::Release, Scope::Device);
        }
        // Nothing of its own to say: keeps the sequence going.
        1 => {
            wait(0, 1);
            flags.atomic_add(0, 1, Ordering::Relaxed, Scope::Device);
        }
        2 => {
            wait(0, 2);
            fence(Ordering::Acquire, Scope::Device);
            data.store(1, data.load(0) + 1);
            fence(Ordering::Release, Scope::Device);
            flags.atomic_store(1, 1, Ordering::Relaxed, Scope::Device);
        }
        3 => {
            wait(1, 1);
            fence(Ordering::SeqCst, Scope::System);
            out.store(0, data.load(0) * data.load(1));
        }
        _ => {}
    }
}

#[test]
fn order_goes_through_other_threads() {
    passes("through others", &[30], |d| {
        let (data, flags, out) = (d.fresh::<u32>(2), d.zeros(4), d.fresh::<u32>(1));
        d.launch::<through_others>(BLOCKS as u32, (data.slice_mut(), flags.slice_mut(), out.slice_mut()))?;
        d.read(out)
    });
}

/// Within a block, block scope is sufficient, also in shared memory; syncs of parts of a warp combine.
#[kernel(block = N, shared = Smem)]
unsafe fn within_a_block(input: Slice<u32>, out: SliceMut<u32>) {
    let smem = shared_mem::<Smem>();
    let (items, word, bytes) =
        (shared_field!(smem, items), shared_field!(smem, word), shared_field!(smem, bytes));
    let t = thread::thread_idx_x() as usize;
    let i = thread::index_1d() as usize;
    // Bytes of one word, by four threads.
    bytes.store(t, t as u8);
    if t == 0 {
        word.store(0, 0);
    }
    thread::sync_threads();
    // Warp 0 signals warp 1 by a flag in shared memory.
    if t < 32 {
        items.store(t, input.load(i));
        if t < 16 {
            warp::sync_warp(0xFFFF);
        }
        if t == 3 || t >= 16 {
            warp::sync_warp(0xFFFF_0008);
        }
        // Lane 3 knows the lower half by the first sync, the upper one by the second.
        if t == 3 {
            word.atomic_store(0, 1, Ordering::Release, Scope::Block);
        }
    } else {
        if t == 40 {
            while word.atomic_load(0, Ordering::Acquire, Scope::Block) == 0 {
                thread::spin_hint();
            }
        }
        warp::sync_warp(warp::FULL_MASK);
        out.store(i, items.load(t - 32) + u32::from(bytes.load(t ^ 1)));
    }
}

#[test]
fn block_scope_and_partial_syncs_within_a_block() {
    let value = |i: u32| if i % 64 < 32 { 0 } else { i - 32 + ((i % 64) ^ 1) };
    let values: Vec<u32> = (0..(BLOCKS * N) as u32).map(value).collect();
    passes("within a block", &values, |d| d.in_out::<within_a_block>(BLOCKS as u32, BLOCKS * N, BLOCKS * N));
}

/// Blocks that are no multiple of a warp, threads that end before a barrier, three dimensions.
#[kernel(shared = Smem)]
unsafe fn odd_shapes(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let [w, h, d] = thread::block_dim();
    let [x, y, z] = thread::thread_idx();
    let t = x + w * (y + h * z);
    let [bx, by, bz] = thread::block_idx();
    let [gx, gy, _] = thread::grid_dim();
    let first = (bx + gx * (by + gy * bz)) * w * h * d;
    let votes = warp::warp_vote_ballot(warp::FULL_MASK, true).count_ones();
    items.store(t as usize, input.load((first + t) as usize));
    if z == 1 {
        return;
    }
    thread::sync_threads();
    let above = items.load((t + w * h) as usize);
    // The number of the thread in the launch, which is `first + t`.
    out.store(thread::index() as usize, above + 1000 * votes);
}

#[test]
fn odd_block_sizes_early_ends_and_three_dimensions() {
    let (block, grid) = ([5, 4, 2], [2, 1, 3]);
    let value = |i: u32| if i % 40 < 20 { i + 20 + 1000 * 32 } else { 0 };
    passes("odd shapes", &(0..240).map(value).collect::<Vec<_>>(), |d| {
        let (input, out) = (d.array(&(0..240).collect::<Vec<u32>>()), d.zeros(240));
        let args = (input.slice(), out.slice_mut());
        let run = || unsafe { odd_shapes::call(&args) };
        let shared_bytes = size_of::<Smem>();
        d.machine.launch(&LaunchSpec { kernel: "odd_shapes", grid, block, shared_bytes, run: &run })?;
        d.read(out)
    });
}

/// Everybody reads one word, by all kinds of loads, and takes part in atomics of several kinds and scopes.
#[kernel(block = N)]
unsafe fn many_readers(input: Slice<u32>, out: SliceMut<u32>) {
    let sum = input.load(0) + input.load_readonly(0) + input.load_streaming(0);
    out.atomic_add(0, sum, Ordering::Relaxed, Scope::Device);
    out.atomic_max(1, thread::index_1d(), Ordering::SeqCst, Scope::System);
    let b = thread::block_idx_x() as usize;
    out.atomic_or(2 + b, 1 << (thread::thread_idx_x() % 4), Ordering::AcqRel, Scope::Block);
    thread::sync_threads();
    // After the barrier only this block accesses the word.
    if thread::thread_idx_x() == 7 {
        out.store(2 + b, out.load(2 + b) + 1);
    }
}

#[test]
fn many_readers_and_atomics_of_all_kinds() {
    let threads = (BLOCKS * N) as u32;
    let mut values = vec![16; BLOCKS + 2];
    (values[0], values[1]) = (9 * threads, threads - 1);
    passes("many readers", &values, |d| {
        let (input, out) = (d.array(&[3u32]), d.zeros(BLOCKS + 2));
        d.launch::<many_readers>(BLOCKS as u32, (input.slice(), out.slice_mut()))?;
        d.read(out)
    });
}

/// One thread polls a flag, while another works for long without writing.
#[kernel(block = N)]
unsafe fn long_work(flag: SliceMut<u32>, out: SliceMut<u32>) {
    let t = thread::thread_idx_x();
    if t == 0 {
        while flag.atomic_load(0, Ordering::Acquire, Scope::Device) == 0 {
            thread::spin_hint();
        }
        out.store(0, out.load(1) + 1);
    }
    if t == 40 {
        let (mut sum, mut round) = (0, 0);
        while round < 30_000 {
            sum += flag.atomic_load(1, Ordering::Relaxed, Scope::Device);
            round += 1;
        }
        out.store(1, sum);
        flag.atomic_store(0, 1, Ordering::Release, Scope::Device);
    }
}

#[test]
fn waiting_long_is_not_being_stuck() {
    passes("long work", &[60_001, 60_000], |d| {
        let (flag, out) = (d.array(&[0u32, 2]), d.fresh::<u32>(2));
        d.launch::<long_work>(1, (flag.slice_mut(), out.slice_mut()))?;
        d.read(out)
    });
}

/// A loop that waits for a fixed time: it ends by itself.
#[kernel(block = N)]
unsafe fn fixed_wait(out: SliceMut<u32>) {
    let mut round = 0;
    while round < 200 {
        thread::nanosleep(100);
        round += 1;
    }
    let start = cuda_std::misc::clock();
    while cuda_std::misc::clock() < start + 5000 {
        thread::spin_hint();
    }
    out.store(thread::index_1d() as usize, round);
}

#[test]
fn waiting_for_time_is_not_being_stuck() {
    passes("fixed wait", &[200; N], |d| {
        let out = d.fresh::<u32>(N);
        d.launch::<fixed_wait>(1, (out.slice_mut(),))?;
        d.read(out)
    });
}
