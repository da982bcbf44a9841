//! Communication between blocks, which needs memory order in addition to atomicity.

use cuda_std::prelude::*;

/// Shared memory of [`test_last_block()`].
#[repr(C)]
pub struct Smem {
    is_last: [u32; 1],
}

/// Each block writes its sum. The last block to finish adds up all sums.
#[kernel(family = "test", block = 64, shared = Smem)]
pub unsafe fn test_last_block(
    input: Slice<u32>,
    partial: SliceMut<u32>,
    done: SliceMut<u32>,
    out: SliceMut<u32>,
) {
    LastBlock { input, partial, done, out }.run(Ordering::AcqRel)
}

/// A wrong [`test_last_block()`]: nothing makes the sums of other blocks visible to the last block.
#[kernel(family = "test", block = 64, shared = Smem)]
pub unsafe fn test_last_block_unordered(
    input: Slice<u32>,
    partial: SliceMut<u32>,
    done: SliceMut<u32>,
    out: SliceMut<u32>,
) {
    LastBlock { input, partial, done, out }.run(Ordering::Relaxed)
}

struct LastBlock<'a> {
    input: Slice<'a, u32>,
    partial: SliceMut<'a, u32>,
    done: SliceMut<'a, u32>,
    out: SliceMut<'a, u32>,
}

impl LastBlock<'_> {
    #[inline(always)]
    unsafe fn run(self, order: Ordering) {
        let is_last = shared_field!(shared_mem::<Smem>(), is_last);
        let (t, b) = (thread::thread_idx_x(), thread::block_idx_x());
        if t == 0 {
            let mut sum = 0u32;
            let mut j = 0;
            while j < 64 {
                sum = sum.wrapping_add(self.input.load(b as usize * 64 + j));
                j += 1;
            }
            self.partial.store(b as usize, sum);
            let before = self.done.atomic_add(0, 1, order, Scope::Device);
            is_last.store(0, (before + 1 == thread::grid_dim_x()).into());
        }
        thread::sync_threads();
        if is_last.load(0) != 0 && t == 0 {
            let mut sum = 0u32;
            let mut j = 0;
            while j < self.partial.len() {
                sum = sum.wrapping_add(self.partial.load(j));
                j += 1;
            }
            self.out.store(0, sum);
        }
    }
}

/// A chained scan: block b waits for the flag of block b - 1, adds its item to that block's value and sets its own flag.
/// Blocks take their numbers from a ticket counter, so that a block waits only for blocks that have started.
#[kernel(family = "test", block = 32, shared = Smem)]
pub unsafe fn test_chain(
    input: Slice<u32>,
    ticket: SliceMut<u32>,
    values: SliceMut<u32>,
    flags: SliceMut<u32>,
) {
    if thread::thread_idx_x() == 0 {
        let b = ticket.atomic_add(0, 1, Ordering::Relaxed, Scope::Device) as usize;
        let mut sum = input.load(b);
        if b > 0 {
            while flags.atomic_load(b - 1, Ordering::Acquire, Scope::Device) == 0 {
                thread::spin_hint();
            }
            sum = sum.wrapping_add(values.load(b - 1));
        }
        values.store(b, sum);
        flags.atomic_store(b, 1, Ordering::Release, Scope::Device);
    }
}
