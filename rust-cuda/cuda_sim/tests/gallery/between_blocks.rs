//! Messages between blocks: fences, orders, scopes.

use crate::harness::{Case, CaughtAs, Device, error, source};
use cuda_sim::{Kind, SimError};
use cuda_std::prelude::*;

const N: usize = 32;
const BLOCKS: usize = 12;
const ITEMS: usize = BLOCKS * N;

// Orders and fences as const arguments, so that a wrong kernel and its twin are one text.
const RELAXED: u8 = 0;
const ACQUIRE: u8 = 1;
const RELEASE: u8 = 2;
const BOTH: u8 = 3;
const DEVICE: bool = true;
const BLOCK: bool = false;

fn order(order: u8) -> Ordering {
    [Ordering::Relaxed, Ordering::Acquire, Ordering::Release, Ordering::AcqRel][order as usize]
}

fn scope(device: bool) -> Scope {
    if device { Scope::Device } else { Scope::Block }
}

#[repr(C)]
struct Smem {
    word: [u32; 1],
}

/// The sum of a tile's items, by one thread.
unsafe fn sum_of_tile(input: Slice<u32>, tile: usize) -> u32 {
    let (mut sum, mut j) = (0, 0);
    while j < N {
        sum += input.load(tile * N + j);
        j += 1;
    }
    sum
}

/// The last block to be done adds up the partial sums of all. Who is last, says an atomic counter.
#[kernel(block = N, shared = Smem)]
unsafe fn last_block<const FENCE: u8, const ORDER: u8, const SCOPE: bool>(
    input: Slice<u32>,
    partial: SliceMut<u32>,
    done: SliceMut<u32>,
    out: SliceMut<u32>,
) {
    let is_last = shared_field!(shared_mem::<Smem>(), word);
    let (t, b) = (thread::thread_idx_x(), thread::block_idx_x() as usize);
    if t == 0 {
        partial.store(b, sum_of_tile(input, b)); // ! last block
        cuda_std::atomic::fence(order(FENCE), scope(SCOPE));
        let counter_scope = if FENCE == RELAXED { scope(SCOPE) } else { Scope::Device };
        let before = done.atomic_add(0, 1, order(ORDER), counter_scope); // ! counter of block scope
        cuda_std::atomic::fence(order(FENCE), scope(SCOPE));
        is_last.store(0, (before + 1 == thread::grid_dim_x()).into());
    }
    thread::sync_threads();
    if is_last.load(0) != 0 && t == 0 {
        let (mut sum, mut j) = (0, 0);
        while j < partial.len() {
            sum += partial.load(j); // ! last block
            j += 1;
        }
        out.store(0, sum);
    }
}

fn last<const FENCE: u8, const ORDER: u8, const SCOPE: bool>(d: &Device) -> Result<Vec<u32>, SimError> {
    let input = d.array(&(0..ITEMS as u32).collect::<Vec<_>>());
    let (partial, done, out) = (d.fresh::<u32>(BLOCKS), d.zeros(1), d.fresh::<u32>(1));
    let args = (input.slice(), partial.slice_mut(), done.slice_mut(), out.slice_mut());
    d.launch::<last_block<FENCE, ORDER, SCOPE>>(BLOCKS as u32, args)?;
    d.read(out)
}

/// Running sums: a tile waits for the one before, and publishes its own sum by a flag. Tiles are numbered by a ticket.
#[kernel(block = N, shared = Smem)]
unsafe fn look_back<const STORE: u8, const LOAD: u8, const SCOPE: bool, const DATA_FIRST: bool>(
    input: Slice<u32>,
    ticket: SliceMut<u32>,
    sums: SliceMut<u32>,
    flags: SliceMut<u32>,
) {
    if thread::thread_idx_x() != 0 {
        return;
    }
    let tile = ticket.atomic_add(0, 1, Ordering::Relaxed, Scope::Device) as usize;
    let mut sum = sum_of_tile(input, tile);
    if tile > 0 {
        let mut flag = 0;
        while flag == 0 {
            thread::spin_hint();
            flag = flags.atomic_load(tile - 1, order(LOAD), Scope::Device); // ! flag of block scope
        }
        sum += sums.load(tile - 1); // ! look-back
    }
    if DATA_FIRST {
        sums.store(tile, sum); // ! look-back
    }
    flags.atomic_store(tile, 1, order(STORE), scope(SCOPE)); // ! flag of block scope
    if !DATA_FIRST {
        sums.store(tile, sum); // ! look-back
    }
}

fn chain<const STORE: u8, const LOAD: u8, const SCOPE: bool, const DATA_FIRST: bool>(
    d: &Device,
) -> Result<Vec<u32>, SimError> {
    let input = d.array(&(0..ITEMS as u32).collect::<Vec<_>>());
    let (ticket, sums, flags) = (d.zeros(1), d.fresh::<u32>(BLOCKS), d.zeros(BLOCKS));
    let args = (input.slice(), ticket.slice_mut(), sums.slice_mut(), flags.slice_mut());
    d.launch::<look_back<STORE, LOAD, SCOPE, DATA_FIRST>>(BLOCKS as u32, args)?;
    d.read(sums)
}

/// A counter behind a lock.
#[kernel(block = N)]
unsafe fn locked_counter<const LOCK: u8, const UNLOCK: u8>(lock: SliceMut<u32>, out: SliceMut<u32>) {
    if thread::thread_idx_x() % 8 == 0 {
        while lock.atomic_exchange(0, 1, order(LOCK), Scope::Device) != 0 {
            thread::spin_hint();
        }
        out.store(0, out.load(0) + 1); // ! lock
        lock.atomic_store(0, 0, order(UNLOCK), Scope::Device);
    }
}

fn locked<const LOCK: u8, const UNLOCK: u8>(d: &Device) -> Result<Vec<u32>, SimError> {
    let (lock, out) = (d.zeros(1), d.zeros(1));
    d.launch::<locked_counter<LOCK, UNLOCK>>(BLOCKS as u32, (lock.slice_mut(), out.slice_mut()))?;
    d.read(out)
}

/// The first block clears the counter that all count with.
#[kernel(block = N)]
unsafe fn count_and_clear(counter: SliceMut<u32>, out: SliceMut<u32>) {
    if thread::index_1d() == 0 {
        counter.store(0, 0); // ! plain store among atomics
    }
    let before = counter.atomic_add(0, 1, Ordering::Relaxed, Scope::Device); // ! plain store among atomics
    if before + 1 == ITEMS as u32 {
        out.store(0, before + 1);
    }
}

/// The host has cleared it.
#[kernel(block = N)]
unsafe fn count(counter: SliceMut<u32>, out: SliceMut<u32>) {
    let before = counter.atomic_add(0, 1, Ordering::Relaxed, Scope::Device);
    if before + 1 == ITEMS as u32 {
        out.store(0, before + 1);
    }
}

/// Waits by plain loads for a plain store.
#[kernel(block = N)]
unsafe fn spin_on_plain(flag: SliceMut<u32>, out: SliceMut<u32>) {
    if thread::index_1d() == 0 {
        flag.store(0, 1); // ! spin on a plain load
    }
    if thread::index_1d() == 1 {
        let mut raised = 0;
        while raised == 0 {
            thread::spin_hint();
            raised = flag.load(0); // ! spin on a plain load
        }
        out.store(0, 1);
    }
}

#[kernel(block = N)]
unsafe fn spin_on_atomic(flag: SliceMut<u32>, out: SliceMut<u32>) {
    if thread::index_1d() == 0 {
        flag.atomic_store(0, 1, Ordering::Relaxed, Scope::Device);
    }
    if thread::index_1d() == 1 {
        while flag.atomic_load(0, Ordering::Relaxed, Scope::Device) == 0 {
            thread::spin_hint();
        }
        out.store(0, 1);
    }
}

/// An increment in two halves, each atomic.
#[kernel(block = N)]
unsafe fn load_then_store(counter: SliceMut<u32>, out: SliceMut<u32>) {
    let seen = counter.atomic_load(0, Ordering::Relaxed, Scope::Device);
    counter.atomic_store(0, seen + 1, Ordering::Relaxed, Scope::Device);
    out.store(thread::index_1d() as usize, 1);
}

#[kernel(block = N)]
unsafe fn add_at_once(counter: SliceMut<u32>, out: SliceMut<u32>) {
    counter.atomic_add(0, 1, Ordering::Relaxed, Scope::Device);
    out.store(thread::index_1d() as usize, 1);
}

const NODES: usize = 4;
const EMPTY: u32 = 0xFFFF;

/// Threads take nodes from a list and put them back. The head is compared by its index alone, or by a version too.
#[kernel(block = N)]
unsafe fn free_list<const VERSIONED: bool>(
    head: SliceMut<u32>,
    next: SliceMut<u32>,
    owners: SliceMut<u32>,
    out: SliceMut<u32>,
) {
    if thread::thread_idx_x() % 4 != 0 {
        return;
    }
    let version = if VERSIONED { 1 << 16 } else { 0 };
    let swap = |seen: u32, node: u32| {
        let new = (seen & !EMPTY).wrapping_add(version) | node;
        head.atomic_compare_exchange(0, seen, new, Ordering::AcqRel, Scope::Device) == seen
    };
    let mut round = 0;
    while round < 4 {
        let node = loop {
            let seen = head.atomic_load(0, Ordering::Acquire, Scope::Device);
            let node = seen & EMPTY;
            if node == EMPTY {
                thread::spin_hint(); // ! free list
                continue;
            }
            let rest = next.atomic_load(node as usize, Ordering::Relaxed, Scope::Device);
            if swap(seen, rest) {
                break node;
            }
        };
        // Nobody else may have it.
        if owners.atomic_add(node as usize, 1, Ordering::Relaxed, Scope::Device) != 0 {
            out.atomic_add(0, 1, Ordering::Relaxed, Scope::Device);
        }
        owners.atomic_add(node as usize, u32::MAX, Ordering::Relaxed, Scope::Device);
        loop {
            let seen = head.atomic_load(0, Ordering::Acquire, Scope::Device);
            next.atomic_store(node as usize, seen & EMPTY, Ordering::Relaxed, Scope::Device);
            if swap(seen, node) {
                break;
            }
        }
        round += 1;
    }
}

fn listed<const VERSIONED: bool>(d: &Device) -> Result<Vec<u32>, SimError> {
    let head = d.zeros(1);
    let next = d.array(&[1, 2, 3, EMPTY]);
    let (owners, out) = (d.zeros(NODES), d.zeros(1));
    let args = (head.slice_mut(), next.slice_mut(), owners.slice_mut(), out.slice_mut());
    d.launch::<free_list<VERSIONED>>(BLOCKS as u32, args)?;
    d.read(out)
}

/// A counter and an output.
macro_rules! counting {
    ($kernel:ident, $outputs:expr, $result:ident) => {
        |d: &Device| {
            let (counter, out) = (d.zeros(1), d.zeros($outputs));
            d.launch::<$kernel>(BLOCKS as u32, (counter.slice_mut(), out.slice_mut()))?;
            d.read($result(counter, out))
        }
    };
}

fn first<T>(a: T, _: T) -> T {
    a
}

fn second<T>(_: T, b: T) -> T {
    b
}

fn total() -> Vec<u32> {
    vec![(0..ITEMS as u32).sum()]
}

fn running_sums() -> Vec<u32> {
    (1..=BLOCKS).map(|tiles| (0..(tiles * N) as u32).sum()).collect()
}

macro_rules! case {
    ($name:literal, $kind:expr, $always:literal, $wrong:expr, $right:expr, $values:expr) => {
        Case {
            name: $name,
            caught_as: $kind,
            always: $always,
            wrong: $wrong,
            right: $right,
            values: $values,
            source: source!("between_blocks.rs"),
        }
    };
}

pub(crate) fn cases() -> Vec<Case> {
    let race = error!(Race);
    let narrow = error!(NarrowScope);
    // A list that fell apart keeps its users waiting or going round.
    let list = CaughtAs::WrongValues(|k| matches!(k, Kind::NoProgress { .. }));
    let values = CaughtAs::WrongValues(|_| false);
    let right_last = last::<RELAXED, BOTH, DEVICE>;
    let right_chain = chain::<RELEASE, ACQUIRE, DEVICE, true>;
    vec![
        case!("last block without order", race, true, last::<RELAXED, RELAXED, DEVICE>, right_last, total),
        case!("last block without acquire", race, true, last::<RELAXED, RELEASE, DEVICE>, right_last, total),
        case!("last block without release", race, true, last::<RELAXED, ACQUIRE, DEVICE>, right_last, total),
        case!(
            "last block with release fences only",
            race,
            true,
            last::<RELEASE, RELAXED, DEVICE>,
            last::<BOTH, RELAXED, DEVICE>,
            total
        ),
        case!(
            "last block with fences of block scope",
            race,
            true,
            last::<BOTH, RELAXED, BLOCK>,
            last::<BOTH, RELAXED, DEVICE>,
            total
        ),
        case!("counter of block scope", narrow, true, last::<RELAXED, BOTH, BLOCK>, right_last, total),
        case!(
            "look-back without release",
            race,
            true,
            chain::<RELAXED, ACQUIRE, DEVICE, true>,
            right_chain,
            running_sums
        ),
        case!(
            "look-back without acquire",
            race,
            true,
            chain::<RELEASE, RELAXED, DEVICE, true>,
            right_chain,
            running_sums
        ),
        case!(
            "look-back with a relaxed flag",
            race,
            true,
            chain::<RELAXED, RELAXED, DEVICE, true>,
            right_chain,
            running_sums
        ),
        case!(
            "look-back with the flag before the data",
            race,
            true,
            chain::<RELEASE, ACQUIRE, DEVICE, false>,
            right_chain,
            running_sums
        ),
        case!(
            "flag of block scope",
            narrow,
            true,
            chain::<RELEASE, ACQUIRE, BLOCK, true>,
            right_chain,
            running_sums
        ),
        case!(
            "lock with relaxed unlock",
            race,
            true,
            locked::<ACQUIRE, RELAXED>,
            locked::<ACQUIRE, RELEASE>,
            || vec![BLOCKS as u32 * 4]
        ),
        case!(
            "lock with relaxed lock",
            race,
            true,
            locked::<RELAXED, RELEASE>,
            locked::<ACQUIRE, RELEASE>,
            || vec![BLOCKS as u32 * 4]
        ),
        case!(
            "plain store among atomics",
            race,
            true,
            counting!(count_and_clear, 1, second),
            counting!(count, 1, second),
            || vec![ITEMS as u32]
        ),
        case!(
            "spin on a plain load",
            race,
            true,
            counting!(spin_on_plain, 1, second),
            counting!(spin_on_atomic, 1, second),
            || vec![1]
        ),
        case!(
            "increment in two halves",
            values,
            false,
            counting!(load_then_store, ITEMS, first),
            counting!(add_at_once, ITEMS, first),
            || vec![ITEMS as u32]
        ),
        case!(
            "free list whose head comes back (ABA)",
            list,
            false,
            listed::<false>,
            listed::<true>,
            || vec![0]
        ),
    ]
}
