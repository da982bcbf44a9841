//! Kernels that compilers and runtimes of Rust on GPUs have broken, by the public reports.
//!
//! The module `broken` has each of them in the form in which this compiler breaks it, too: the tests of the PTX must notice.

use cuda_std::prelude::*;
use cuda_std::warp;

/// Threads of a block.
pub const N: usize = 64;

/// Two sections of the first thread, with a barrier behind each. Jump threading knows the first section's condition at the
/// second one, and copies the barrier between them into both branches (rust-lang/rust#137086, NVlabs/cuda-oxide#403).
#[kernel(block = N)]
pub unsafe fn hazard_barriers(out: SliceMut<u32>) {
    sections(out, || thread::sync_threads())
}

#[inline(always)]
unsafe fn sections(out: SliceMut<u32>, barrier: impl Fn()) {
    let tile = shared_array![u32; 2];
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    let is_first = t == 0;
    if is_first {
        tile.store(0, 7);
    }
    barrier();
    if is_first {
        tile.store(1, tile.load(0) * 3);
    }
    barrier();
    out.store(i, tile.load(0) + tile.load(1));
}

/// Lanes with one key find each other before a branch, and only one branch uses the result. A compiler that does not take
/// match and activemask for convergent moves them into the branch or merges them (NVlabs/cuda-oxide#229).
#[kernel(block = N)]
pub unsafe fn hazard_collectives(keys: Slice<u32>, peers: SliceMut<u32>, active: SliceMut<u32>, chosen: u32) {
    collectives(
        keys,
        peers,
        active,
        chosen,
        |key| warp::warp_match_any(warp::FULL_MASK, key),
        warp::activemask,
    )
}

#[inline(always)]
unsafe fn collectives(
    keys: Slice<u32>,
    peers: SliceMut<u32>,
    active: SliceMut<u32>,
    chosen: u32,
    match_any: impl Fn(u32) -> u32,
    activemask: impl Fn() -> u32,
) {
    let i = thread::index_1d() as usize;
    let key = keys.load(i);
    let same = match_any(key);
    let lanes = if key == chosen {
        peers.store(i, same);
        activemask()
    } else {
        activemask()
    };
    active.store(i, lanes);
}

/// Two threads of each block exchange the block's number through shared memory; a runtime whose blocks share it mixes the
/// numbers of blocks (tracel-ai/cubecl#1575).
#[kernel(block = 2)]
pub unsafe fn hazard_shared(out: SliceMut<u32>) {
    let tile = shared_array![u32; 2];
    let (t, b) = (thread::thread_idx_x() as usize, thread::block_idx_x());
    tile.store(t, b);
    thread::sync_threads();
    out.store(thread::index_1d() as usize, tile.load(1 - t));
}

#[cfg(target_arch = "nvptx64")]
mod broken {
    use super::*;
    use core::arch::asm;

    // Assembly is not convergent: LLVM may copy it into branches.
    #[kernel(block = N)]
    pub unsafe fn broken_barriers(out: SliceMut<u32>) {
        sections(out, || asm!("bar.sync 0;"))
    }

    #[kernel(block = N)]
    pub unsafe fn broken_collectives(
        keys: Slice<u32>,
        peers: SliceMut<u32>,
        active: SliceMut<u32>,
        chosen: u32,
    ) {
        let match_any = |key: u32| {
            let lanes: u32;
            asm!("match.any.sync.b32 {}, {}, 0xffffffff;", out(reg32) lanes, in(reg32) key, options(pure, nomem, nostack));
            lanes
        };
        let activemask = || {
            let lanes: u32;
            asm!("activemask.b32 {};", out(reg32) lanes, options(pure, nomem, nostack));
            lanes
        };
        collectives(keys, peers, active, chosen, match_any, activemask)
    }

    // Rustc puts this into global memory, which all blocks share.
    #[unsafe(link_section = ".shared")]
    static mut TILE: [u32; 2] = [0; 2];

    #[kernel(block = 2)]
    pub unsafe fn broken_shared(out: SliceMut<u32>) {
        let tile = (&raw mut TILE).cast::<u32>();
        let (t, b) = (thread::thread_idx_x() as usize, thread::block_idx_x());
        *tile.add(t) = b;
        thread::sync_threads();
        out.store(thread::index_1d() as usize, *tile.add(1 - t));
    }
}
