//! Kernels that wait for an event that never happens.

use crate::harness::{Case, Device, error, source};
use cuda_sim::SimError;
use cuda_std::kernel::Kernel;
use cuda_std::prelude::*;

const N: usize = 32;
const BLOCKS: usize = 24;

#[repr(C)]
struct Smem {
    tile: [u32; 1],
}

/// Each tile adds 1 to the value of the tile before. The tile is the block's index: but blocks start in any order, and
/// the one waited for may never start.
#[kernel(block = N)]
unsafe fn tile_is_block(values: SliceMut<u32>, flags: SliceMut<u32>) {
    if thread::thread_idx_x() == 0 {
        let tile = thread::block_idx_x() as usize;
        let mut value = 1;
        if tile > 0 {
            while flags.atomic_load(tile - 1, Ordering::Acquire, Scope::Device) == 0 {
                thread::spin_hint(); // ! tile number from the block index
            }
            value += values.load(tile - 1);
        }
        values.store(tile, value);
        flags.atomic_store(tile, 1, Ordering::Release, Scope::Device);
    }
}

/// The tile is a ticket, taken from the last word of the flags.
#[kernel(block = N)]
unsafe fn tile_is_ticket(values: SliceMut<u32>, flags: SliceMut<u32>) {
    if thread::thread_idx_x() == 0 {
        let tile = flags.atomic_add(BLOCKS, 1, Ordering::Relaxed, Scope::Device) as usize;
        let mut value = 1;
        if tile > 0 {
            while flags.atomic_load(tile - 1, Ordering::Acquire, Scope::Device) == 0 {
                thread::spin_hint();
            }
            value += values.load(tile - 1);
        }
        values.store(tile, value);
        flags.atomic_store(tile, 1, Ordering::Release, Scope::Device);
    }
}

/// The first block waits for the last one: with few blocks on the device at a time that one does not start.
#[kernel(block = N)]
unsafe fn waits_for_last(values: SliceMut<u32>, flags: SliceMut<u32>) {
    let b = thread::block_idx_x() as usize;
    if thread::thread_idx_x() == 0 {
        values.store(b, b as u32 + 1);
        flags.atomic_store(b, 1, Ordering::Release, Scope::Device);
        if b < BLOCKS / 2 {
            while flags.atomic_load(BLOCKS - 1 - b, Ordering::Acquire, Scope::Device) == 0 {
                thread::spin_hint(); // ! hang on a block that has not started
            }
        }
    }
}

/// Nobody waits.
#[kernel(block = N)]
unsafe fn waits_for_none(values: SliceMut<u32>, flags: SliceMut<u32>) {
    let b = thread::block_idx_x() as usize;
    if thread::thread_idx_x() == 0 {
        values.store(b, b as u32 + 1);
        flags.atomic_store(b, 1, Ordering::Release, Scope::Device);
    }
}

/// A barrier over all blocks, of which not all are on the device.
#[kernel(block = N)]
unsafe fn grid_barrier(values: SliceMut<u32>, flags: SliceMut<u32>) {
    let b = thread::block_idx_x() as usize;
    if thread::thread_idx_x() == 0 {
        flags.atomic_add(0, 1, Ordering::AcqRel, Scope::Device);
        while flags.atomic_load(0, Ordering::Acquire, Scope::Device) < thread::grid_dim_x() {
            thread::spin_hint(); // ! barrier over all blocks
        }
    }
    thread::sync_threads(); // ! barrier over all blocks
    if thread::thread_idx_x() == 0 {
        values.store(b, b as u32 + 1);
    }
}

/// A flag that is set and cleared again: a late reader misses it. The first block to start signals, the second waits.
#[kernel(block = N)]
unsafe fn flag_up_and_down(values: SliceMut<u32>, flags: SliceMut<u32>) {
    let b = thread::block_idx_x() as usize;
    if thread::thread_idx_x() == 0 {
        let ticket = flags.atomic_add(1, 1, Ordering::Relaxed, Scope::Device);
        if ticket == 0 {
            flags.atomic_xor(0, 1, Ordering::Relaxed, Scope::Device);
            flags.atomic_xor(0, 1, Ordering::Relaxed, Scope::Device);
        }
        while ticket == 1 && flags.atomic_load(0, Ordering::Relaxed, Scope::Device) == 0 {
            thread::spin_hint(); // ! counter that comes back to its value (ABA)
        }
        values.store(b, b as u32 + 1);
    }
}

/// A counter that only grows.
#[kernel(block = N)]
unsafe fn counter_up(values: SliceMut<u32>, flags: SliceMut<u32>) {
    let b = thread::block_idx_x() as usize;
    if thread::thread_idx_x() == 0 {
        let ticket = flags.atomic_add(1, 1, Ordering::Relaxed, Scope::Device);
        if ticket == 0 {
            flags.atomic_add(0, 1, Ordering::Relaxed, Scope::Device);
            flags.atomic_add(0, 1, Ordering::Relaxed, Scope::Device);
        }
        while ticket == 1 && flags.atomic_load(0, Ordering::Relaxed, Scope::Device) == 0 {
            thread::spin_hint();
        }
        values.store(b, b as u32 + 1);
    }
}

/// An endless loop without a spin hint.
#[kernel(block = N)]
unsafe fn endless(values: SliceMut<u32>, flags: SliceMut<u32>) {
    let b = thread::block_idx_x() as usize;
    if thread::thread_idx_x() == 0 {
        values.store(b, b as u32 + 1);
        let mut turns = 0u32;
        while turns != u32::MAX {
            turns = flags.atomic_load(0, Ordering::Relaxed, Scope::Device); // ! endless loop
        }
    }
}

/// One thread waits at a barrier for its neighbor, who waits for a flag that comes after the barrier.
#[kernel(block = N, shared = Smem)]
unsafe fn flag_behind_barrier(values: SliceMut<u32>, flags: SliceMut<u32>) {
    let b = thread::block_idx_x() as usize;
    if thread::thread_idx_x() == 1 {
        while flags.atomic_load(b, Ordering::Acquire, Scope::Device) == 0 {
            thread::spin_hint(); // ! flag behind a barrier
        }
    }
    thread::sync_threads(); // ! flag behind a barrier
    if thread::thread_idx_x() == 0 {
        flags.atomic_store(b, 1, Ordering::Release, Scope::Device);
        values.store(b, b as u32 + 1);
    }
}

#[kernel(block = N, shared = Smem)]
unsafe fn flag_before_barrier(values: SliceMut<u32>, flags: SliceMut<u32>) {
    let b = thread::block_idx_x() as usize;
    if thread::thread_idx_x() == 0 {
        flags.atomic_store(b, 1, Ordering::Release, Scope::Device);
        values.store(b, b as u32 + 1);
    }
    if thread::thread_idx_x() == 1 {
        while flags.atomic_load(b, Ordering::Acquire, Scope::Device) == 0 {
            thread::spin_hint();
        }
    }
    thread::sync_threads();
}

fn run<K>(d: &Device) -> Result<Vec<u32>, SimError>
where
    K: for<'a> Kernel<Args<'a> = (SliceMut<'a, u32>, SliceMut<'a, u32>)>,
{
    let (values, flags) = (d.fresh::<u32>(BLOCKS), d.zeros(BLOCKS + 1));
    d.launch::<K>(BLOCKS as u32, (values.slice_mut(), flags.slice_mut()))?;
    d.read(values)
}

fn numbers() -> Vec<u32> {
    (1..=BLOCKS as u32).collect()
}

macro_rules! case {
    ($name:literal, $kind:ident, $always:literal, $wrong:ident, $right:ident) => {
        Case {
            name: $name,
            caught_as: error!($kind),
            always: $always,
            wrong: run::<$wrong>,
            right: run::<$right>,
            values: numbers,
            source: source!("progress.rs"),
        }
    };
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!("tile number from the block index", NoProgress, false, tile_is_block, tile_is_ticket),
        case!("hang on a block that has not started", NoProgress, false, waits_for_last, waits_for_none),
        case!("barrier over all blocks", NoProgress, true, grid_barrier, waits_for_none),
        case!("counter that comes back to its value (ABA)", NoProgress, false, flag_up_and_down, counter_up),
        case!("endless loop", StepBudget, true, endless, waits_for_none),
        case!("flag behind a barrier", NoProgress, true, flag_behind_barrier, flag_before_barrier),
    ]
}
