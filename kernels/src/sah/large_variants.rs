//! Boxes and partition of large nodes in the variants that Chang, Seo and Ihm (2015) compare. The default kernels are in
//! [`partition`](super::partition).
//!
//! Blocks combine their results by atomics on the node, or by segmented scans and reductions. Threads of a block exchange
//! values through shared memory (`LANES` = 1) or by shuffles (`LANES` = 32). One block per chunk, unless stated otherwise.

use super::chunks::{ChunkSmem, LevelReferences, ReferenceListMut, block_min_keys};
use super::large_nodes::LargeNode;
use super::partition::{LevelSplits, Ranks, SplitReference, min_by_atomics, store_by_atomics};
use crate::block::scan::exclusive_sum;
use crate::policy::{PER_ITEM_THREADS, SAH_CHUNK_TRIANGLES as THREADS};
use crate::rays::aabb::{BOX_WORDS, to_keys};
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Shared memory of a block that processes a chunk, without shuffles or with them.
#[repr(C)]
pub struct VariantSmem {
    keys: [[u32; THREADS]; BOX_WORDS],
    chunk: ChunkSmem,
}

/// Reduces each key of a box to its minimum over the block; thread `i` returns the minimum of key `i`. All threads must call.
#[inline(always)]
unsafe fn min_keys<const LANES: usize>(thread_keys: [u32; BOX_WORDS], smem: *mut VariantSmem) -> u32 {
    if LANES > 1 {
        return block_min_keys(thread_keys, &raw mut (*smem).chunk);
    }
    let (keys, thread) = (shared_field!(smem, keys), thread::thread_idx_x() as usize);
    for i in 0..BOX_WORDS {
        keys.store(i * THREADS + thread, thread_keys[i]);
    }
    thread::sync_threads();
    let mut half = THREADS / 2;
    while half > 0 {
        if thread < half {
            for i in 0..BOX_WORDS {
                let at = i * THREADS + thread;
                keys.store(at, keys.load(at).min(keys.load(at + half)));
            }
        }
        thread::sync_threads();
        half /= 2;
    }
    if thread < BOX_WORDS { keys.load(thread * THREADS) } else { u32::MAX }
}

/// Returns the ranks of the thread's reference. All threads must call.
#[inline(always)]
unsafe fn ranks<const LANES: usize>(split: &SplitReference, smem: *mut VariantSmem) -> Ranks {
    split.ranks(|flags| {
        if LANES > 1 {
            exclusive_sum(flags, &raw mut (*smem).chunk.sums)
        } else {
            exclusive_sum_in_shared_memory(flags, shared_field!(smem, keys))
        }
    })
}

/// Exclusive prefix sum and total of the block without shuffles (Hillis, Steele 1986). All threads must call.
#[inline(always)]
unsafe fn exclusive_sum_in_shared_memory(value: u32, sums: SharedSlice<'_, u32>) -> (u32, u32) {
    let thread = thread::thread_idx_x() as usize;
    let (mut sum, mut delta) = (value, 1);
    sums.store(thread, value);
    thread::sync_threads();
    while delta < THREADS {
        let below = if thread >= delta { sums.load(thread - delta) } else { 0 };
        thread::sync_threads();
        sum += below;
        sums.store(thread, sum);
        thread::sync_threads();
        delta *= 2;
    }
    let all = sums.load(THREADS - 1);
    thread::sync_threads();
    (sum - value, all)
}

/// Computes the bounding box of each node's references with atomics, without shuffles.
#[kernel(family = "research-sah", block = THREADS, shared = VariantSmem)]
pub unsafe fn sah_boxes_shared(level: LevelReferences<'_>, keys: SliceMut<u32>) {
    let reference = level.reference();
    let min_key = min_keys::<1>(to_keys(reference.bounds), shared_mem::<VariantSmem>());
    min_by_atomics(&reference, min_key, keys);
}

/// Writes the bounding box of each chunk's references.
#[kernel(family = "research-sah", block = THREADS, shared = VariantSmem)]
#[instances(LANES = [1, 32])]
pub unsafe fn sah_chunk_boxes<const LANES: usize>(level: LevelReferences<'_>, keys: SliceMut<u32>) {
    let min_key = min_keys::<LANES>(to_keys(level.reference().bounds), shared_mem::<VariantSmem>());
    let word = thread::thread_idx_x() as usize;
    if word < BOX_WORDS {
        keys.store(word * level.chunk_nodes.len() + thread::block_idx_x() as usize, min_key);
    }
}

/// Partitions references with atomics, without shuffles.
#[kernel(family = "research-sah", block = THREADS, shared = VariantSmem)]
pub unsafe fn sah_sort_shared(splits: LevelSplits<'_>, counts: SliceMut<u32>, next: ReferenceListMut<'_>) {
    let (split, smem) = (splits.split(), shared_mem::<VariantSmem>());
    let chunk = &raw mut (*smem).chunk;
    store_by_atomics(&split, &ranks::<1>(&split, smem), counts, next, shared_field!(chunk, bases));
}

/// Writes the number of each chunk's references below and above the plane of their node, a row for each side.
#[kernel(family = "research-sah", block = THREADS, shared = VariantSmem)]
#[instances(LANES = [1, 32])]
pub unsafe fn sah_count<const LANES: usize>(splits: LevelSplits<'_>, counts: SliceMut<u32>) {
    let Ranks { all, .. } = ranks::<LANES>(&splits.split(), shared_mem::<VariantSmem>());
    let thread = thread::thread_idx_x() as usize;
    if thread < 2 {
        let count = if thread == 0 { all[0] } else { all[1] };
        counts.store(thread * splits.level.chunk_nodes.len() + thread::block_idx_x() as usize, count);
    }
}

/// Partitions references by the planes of their nodes, given the number of the node's references before each chunk on both
/// sides.
#[kernel(family = "research-sah", block = THREADS, shared = VariantSmem)]
#[instances(LANES = [1, 32])]
pub unsafe fn sah_scatter<const LANES: usize>(
    splits: LevelSplits<'_>,
    before_chunks: Slice<u32>,
    next: ReferenceListMut<'_>,
) {
    let split = splits.split();
    let Ranks { before, .. } = ranks::<LANES>(&split, shared_mem::<VariantSmem>());
    let (chunk, num_chunks) = (thread::block_idx_x() as usize, splits.level.chunk_nodes.len());
    let bases = [before_chunks.load(chunk), before_chunks.load(num_chunks + chunk)];
    next.store_sides(&split, [bases[0] + before[0], bases[1] + before[1]]);
}

/// Writes a head flag for the first chunk of each node, and the first chunk of each node as offsets; one thread per chunk.
#[kernel(family = "research-sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_chunk_heads(
    nodes: Slice<LargeNode>,
    chunk_nodes: Slice<u32>,
    heads: SliceMut<u8>,
    offsets: SliceMut<u64>,
) {
    let Some(chunk) = own_item(chunk_nodes.len()) else { return };
    let node = chunk_nodes.load(chunk) as usize;
    let is_first = nodes.load(node).first_chunk as usize == chunk;
    heads.store(chunk, is_first.into());
    if is_first {
        offsets.store(node, chunk as u64);
    }
}

/// Sums the references of each node on both sides, given the counts of its chunks and their prefix sums; one thread per
/// node.
#[kernel(family = "research-sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_node_counts(
    nodes: Slice<LargeNode>,
    counts: Slice<u32>,
    before_chunks: Slice<u32>,
    node_counts: SliceMut<u32>,
) {
    let Some(node) = own_item(nodes.len()) else { return };
    let large = nodes.load(node);
    let last = (large.first_chunk + large.num_chunks() - 1) as usize;
    for side in 0..2 {
        let at = side * (counts.len() / 2) + last;
        node_counts.store(side * nodes.len() + node, before_chunks.load(at) + counts.load(at));
    }
}
