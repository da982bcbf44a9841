//! The greatest item of an array and its index. A block reduces each tile of the input to a key; a second launch of one block
//! reduces the keys of all tiles.

use cuda_std::prelude::*;
use kauri_kernels::thread::operator::{Max, Operator};
use kauri_kernels::warp::scan::reduce;

/// Threads of a block.
pub const THREADS: usize = 128;
/// Items of a tile, which one block reduces.
pub const TILE: usize = 8 * THREADS;

const WARPS: usize = THREADS / 32;

/// The input of a launch. Every field becomes a parameter of the kernel.
#[derive(Clone, Copy, KernelArgs)]
pub struct ExampleOpInput<'a> {
    /// The items.
    pub items: Slice<'a, u32>,
    /// Items of a tile.
    pub tile_items: u32,
}

/// Shared memory of a block.
#[repr(C)]
pub struct ExampleOpSmem {
    warp_keys: [u64; WARPS],
}

/// Reduces each tile of the items to a key: block `b` writes key `b`.
///
/// # Safety
/// There is a block for each tile, and a key for each block.
#[kernel(block = THREADS, shared = ExampleOpSmem)]
pub unsafe fn example_op_tiles(input: ExampleOpInput<'_>, keys: SliceMut<u64>) {
    let tile = thread::block_idx_x() as usize;
    let block = ExampleOp { keys };
    let best = block.best_of_tile(input, tile);
    block.write_best(best, tile);
}

/// Reduces the keys of the tiles to one.
///
/// # Safety
/// There is one block, and one item of output.
#[kernel(block = THREADS, shared = ExampleOpSmem)]
pub unsafe fn example_op_finish(tile_keys: Slice<u64>, key: SliceMut<u64>) {
    let block = ExampleOp { keys: key };
    let best = block.best_of_keys(tile_keys);
    block.write_best(best, 0);
}

/// Returns the key of an item: greater for a greater item, and among equal items for a lower index. The index is below
/// `u32::MAX`, so that every key exceeds 0, the key of no item.
#[inline(always)]
pub const fn key(item: u32, index: u32) -> u64 {
    (item as u64) << 32 | !index as u64
}

/// The work of one block: an agent, whose methods are its phases.
struct ExampleOp<'a> {
    keys: SliceMut<'a, u64>,
}

impl ExampleOp<'_> {
    /// Returns the greatest key among the thread's items of a tile.
    #[inline(always)]
    unsafe fn best_of_tile(&self, input: ExampleOpInput<'_>, tile: usize) -> u64 {
        let begin = tile * input.tile_items as usize;
        let tile_end = begin + input.tile_items as usize;
        let end = if tile_end < input.items.len() { tile_end } else { input.items.len() };
        let mut best = 0;
        let mut i = begin + thread::thread_idx_x() as usize;
        while i < end {
            best = Max::combine(best, key(input.items.load(i), i as u32));
            i += THREADS;
        }
        best
    }

    /// Returns the greatest of the thread's keys.
    #[inline(always)]
    unsafe fn best_of_keys(&self, tile_keys: Slice<'_, u64>) -> u64 {
        let mut best = 0;
        let mut i = thread::thread_idx_x() as usize;
        while i < tile_keys.len() {
            best = Max::combine(best, tile_keys.load(i));
            i += THREADS;
        }
        best
    }

    /// Writes the greatest key of all threads to `keys[to]`: each warp reduces its keys by shuffles, and the first warp reduces
    /// the keys of the warps. All threads of the block call it.
    #[inline(always)]
    unsafe fn write_best(&self, thread_best: u64, to: usize) {
        let warp_keys = shared_field!(shared_mem::<ExampleOpSmem>(), warp_keys);
        let (lane, warp) = (warp::lane_id() as usize, thread::thread_idx_x() as usize / 32);
        let warp_best = reduce::<u64, Max>(thread_best);
        if lane == 0 {
            warp_keys.store(warp, warp_best);
        }
        thread::sync_threads();
        if warp == 0 {
            let best = reduce::<u64, Max>(if lane < WARPS { warp_keys.load(lane) } else { 0 });
            if lane == 0 {
                self.keys.store(to, best);
            }
        }
    }
}
