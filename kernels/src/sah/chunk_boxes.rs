//! Bounding boxes of the references of large nodes, as order-preserving keys.

use super::aabb::{Aabb, BOX_WORDS, from_keys, to_keys};
use super::chunks::{ChunkSmem, LevelReferences};
use super::large_nodes::LargeNode;
use crate::policy::SAH_CHUNK_TRIANGLES as THREADS;
use cuda_std::prelude::*;
use cuda_std::warp::WarpReductionOp;

/// Loads the box of a node from `keys`, which has a row of `nodes` keys for each of the six coordinates.
#[inline(always)]
pub(super) unsafe fn load_box(keys: Slice<'_, u32>, node: usize) -> Aabb {
    let row = keys.len() / BOX_WORDS;
    from_keys([0, 1, 2, 3, 4, 5].map(|i| keys.load(i * row + node)))
}

/// Reduces each key to its minimum over the block; thread `i` returns the minimum of key `i`. All threads must call.
#[inline(always)]
pub(super) unsafe fn block_min_keys<const LANES: usize, const WORDS: usize>(
    thread_keys: [u32; WORDS],
    smem: *mut ChunkSmem,
) -> u32 {
    let (keys, thread) = (shared_field!(smem, keys), thread::thread_idx_x() as usize);
    let mut i = 0;
    if LANES == 1 {
        while i < WORDS {
            keys.store(i * THREADS + thread, thread_keys[i]);
            i += 1;
        }
        thread::sync_threads();
        let mut half = THREADS / 2;
        while half > 0 {
            if thread < half {
                let mut i = 0;
                while i < WORDS {
                    let at = i * THREADS + thread;
                    keys.store(at, keys.load(at).min(keys.load(at + half)));
                    i += 1;
                }
            }
            thread::sync_threads();
            half /= 2;
        }
    } else {
        while i < WORDS {
            let min_key = warp::warp_reduce(warp::FULL_MASK, thread_keys[i], WarpReductionOp::Min);
            if warp::lane_id() == 0 {
                keys.store(i * THREADS + thread / 32, min_key);
            }
            i += 1;
        }
        thread::sync_threads();
    }
    let mut min_key = u32::MAX;
    if thread < WORDS {
        let (num, mut i) = (if LANES == 1 { 1 } else { THREADS / 32 }, 0);
        while i < num {
            min_key = min_key.min(keys.load(thread * THREADS + i));
            i += 1;
        }
    }
    min_key
}

/// Computes the bounding box of each node's references with atomics; one block per chunk.
#[kernel(family = "sah", block = THREADS, shared = ChunkSmem)]
#[instances(LANES = [1, 32])]
pub unsafe fn sah_boxes<const LANES: usize>(
    nodes: Slice<LargeNode>,
    of_chunks: Slice<u32>,
    listed: Slice<u32>,
    boxes: Slice<Aabb>,
    are_clipped: u32,
    keys: SliceMut<u32>,
) {
    let reference = LevelReferences {
        nodes,
        chunk_nodes: of_chunks,
        references: listed,
        boxes,
        are_clipped: are_clipped != 0,
    }
    .reference();
    let min_key = block_min_keys::<LANES, _>(to_keys(reference.bounds), shared_mem::<ChunkSmem>());
    let word = thread::thread_idx_x() as usize;
    if word < BOX_WORDS {
        keys.atomic_min(word * nodes.len() + reference.node, min_key, Ordering::Relaxed, Scope::Device);
    }
}

/// Writes the bounding box of each chunk's references; one block per chunk.
#[kernel(family = "sah", block = THREADS, shared = ChunkSmem)]
#[instances(LANES = [1, 32])]
pub unsafe fn sah_chunk_boxes<const LANES: usize>(
    nodes: Slice<LargeNode>,
    of_chunks: Slice<u32>,
    listed: Slice<u32>,
    boxes: Slice<Aabb>,
    are_clipped: u32,
    keys: SliceMut<u32>,
) {
    let reference = LevelReferences {
        nodes,
        chunk_nodes: of_chunks,
        references: listed,
        boxes,
        are_clipped: are_clipped != 0,
    }
    .reference();
    let min_key = block_min_keys::<LANES, _>(to_keys(reference.bounds), shared_mem::<ChunkSmem>());
    let word = thread::thread_idx_x() as usize;
    if word < BOX_WORDS {
        keys.store(word * of_chunks.len() + thread::block_idx_x() as usize, min_key);
    }
}
