//! Partition of the references of large nodes by their split planes.

use super::aabb::{Aabb, Side, component};
use super::chunk_boxes::load_box;
use super::chunks::{ChunkSmem, LevelReferences, Reference};
use super::clip::clipped;
use super::cost::{reaches_above, reaches_below};
use super::large_nodes::{LargeNode, SplitPlan};
use super::triangle::Corners;
use crate::block::scan::exclusive_sum;
use crate::policy::{PER_ITEM_THREADS, SAH_CHUNK_TRIANGLES as THREADS};
use cuda_std::prelude::*;

/// The reference of a thread, split by the plane of its node.
struct SplitReference {
    reference: Reference,
    /// The clipped box below and above the plane, if that side exists.
    parts: [Aabb; 2],
    exists: [bool; 2],
}

/// The references of a level, and the input of the split plans of its nodes.
#[derive(Clone, Copy)]
struct Splitter<'a> {
    references: LevelReferences<'a>,
    /// The bounding boxes of the nodes' references, as keys.
    keys: Slice<'a, u32>,
    empty_space: f32,
    corners: Slice<'a, Corners>,
}

/// The reference list of the next level.
#[derive(Clone, Copy)]
struct NextReferences<'a> {
    references: SliceMut<'a, u32>,
    boxes: SliceMut<'a, Aabb>,
    are_clipped: bool,
}

impl Splitter<'_> {
    #[inline(always)]
    unsafe fn split(&self) -> SplitReference {
        let reference = self.references.reference();
        let plan = SplitPlan::new(&reference.large, load_box(self.keys, reference.node), self.empty_space);
        let (low, high) =
            (component(reference.bounds.low, plan.axis), component(reference.bounds.high, plan.axis));
        let is_split = reference.exists && plan.has_plane();
        let mut exists =
            [is_split && reaches_below(low, high, plan.plane), is_split && reaches_above(high, plan.plane)];
        let mut parts = [reference.bounds; 2];
        if self.references.are_clipped && exists[0] && exists[1] {
            let corners = self.corners.load(reference.triangle as usize).positions();
            parts[0] = clipped(corners, reference.bounds, plan.axis, plan.plane, Side::Below);
            parts[1] = clipped(corners, reference.bounds, plan.axis, plan.plane, Side::Above);
            exists = [!parts[0].is_empty(), !parts[1].is_empty()];
        }
        SplitReference { reference, parts, exists }
    }
}

impl NextReferences<'_> {
    /// Stores a reference on each side where it exists, given the number of the node's references before it on both sides.
    #[inline(always)]
    unsafe fn store(&self, split: &SplitReference, before: [u32; 2]) {
        let mut side = 0;
        while side < 2 {
            if split.exists[side] {
                let child = if side == 1 { Side::Above } else { Side::Below };
                let begin = split.reference.large.child_chunk(child) as usize * THREADS;
                let slot = begin + before[side] as usize;
                self.references.store(slot, split.reference.triangle);
                if self.are_clipped {
                    self.boxes.store(slot, split.parts[side]);
                }
            }
            side += 1;
        }
    }
}

impl SplitReference {
    /// Returns, for both sides, the number of references of the block before the thread's, and the number in the block. All
    /// threads must call.
    #[inline(always)]
    unsafe fn ranks<const LANES: usize>(&self, smem: *mut ChunkSmem) -> ([u32; 2], [u32; 2]) {
        // Both sums are at most 256: one scan adds them, 16 bits each.
        let packed = u32::from(self.exists[0]) | u32::from(self.exists[1]) << 16;
        let (before, all) = if LANES == 1 {
            exclusive_sum_in_shared_memory(packed, shared_field!(smem, keys))
        } else {
            exclusive_sum(packed, &raw mut (*smem).sums)
        };
        ([before & 0xFFFF, before >> 16], [all & 0xFFFF, all >> 16])
    }
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

/// Partitions references by the planes of their nodes and counts each side; one block per chunk. A block reserves its output
/// slots with two atomic additions.
#[kernel(family = "sah", block = THREADS, shared = ChunkSmem)]
#[instances(LANES = [1, 32])]
pub unsafe fn sah_sort<const LANES: usize>(
    nodes: Slice<LargeNode>,
    of_chunks: Slice<u32>,
    listed: Slice<u32>,
    boxes: Slice<Aabb>,
    are_clipped: u32,
    keys: Slice<u32>,
    empty_space: f32,
    corners: Slice<Corners>,
    counts: SliceMut<u32>,
    next_listed: SliceMut<u32>,
    next_boxes: SliceMut<Aabb>,
) {
    let references = LevelReferences {
        nodes,
        chunk_nodes: of_chunks,
        references: listed,
        boxes,
        are_clipped: are_clipped != 0,
    };
    let splitter = Splitter { references, keys, empty_space, corners };
    let next = NextReferences { references: next_listed, boxes: next_boxes, are_clipped: are_clipped != 0 };
    let (split, smem) = (splitter.split(), shared_mem::<ChunkSmem>());
    let (before, all) = split.ranks::<LANES>(smem);
    let (bases, thread) = (shared_field!(smem, bases), thread::thread_idx_x() as usize);
    if thread < 2 {
        let count = if thread == 0 { all[0] } else { all[1] };
        let counter = thread * nodes.len() + split.reference.node;
        bases.store(thread, counts.atomic_add(counter, count, Ordering::Relaxed, Scope::Device));
    }
    thread::sync_threads();
    next.store(&split, [bases.load(0) + before[0], bases.load(1) + before[1]]);
}

/// Writes the number of each chunk's references below and above the plane of their node, a row for each side; one block per
/// chunk.
#[kernel(family = "sah", block = THREADS, shared = ChunkSmem)]
#[instances(LANES = [1, 32])]
pub unsafe fn sah_count<const LANES: usize>(
    nodes: Slice<LargeNode>,
    of_chunks: Slice<u32>,
    listed: Slice<u32>,
    boxes: Slice<Aabb>,
    are_clipped: u32,
    keys: Slice<u32>,
    empty_space: f32,
    corners: Slice<Corners>,
    counts: SliceMut<u32>,
) {
    let references = LevelReferences {
        nodes,
        chunk_nodes: of_chunks,
        references: listed,
        boxes,
        are_clipped: are_clipped != 0,
    };
    let split = Splitter { references, keys, empty_space, corners }.split();
    let (_, all) = split.ranks::<LANES>(shared_mem::<ChunkSmem>());
    let thread = thread::thread_idx_x() as usize;
    if thread < 2 {
        let count = if thread == 0 { all[0] } else { all[1] };
        counts.store(thread * of_chunks.len() + thread::block_idx_x() as usize, count);
    }
}

/// Partitions references by the planes of their nodes, given the number of the node's references before each chunk on both
/// sides; one block per chunk.
#[kernel(family = "sah", block = THREADS, shared = ChunkSmem)]
#[instances(LANES = [1, 32])]
pub unsafe fn sah_scatter<const LANES: usize>(
    nodes: Slice<LargeNode>,
    of_chunks: Slice<u32>,
    listed: Slice<u32>,
    boxes: Slice<Aabb>,
    are_clipped: u32,
    keys: Slice<u32>,
    empty_space: f32,
    corners: Slice<Corners>,
    before_chunks: Slice<u32>,
    next_listed: SliceMut<u32>,
    next_boxes: SliceMut<Aabb>,
) {
    let references = LevelReferences {
        nodes,
        chunk_nodes: of_chunks,
        references: listed,
        boxes,
        are_clipped: are_clipped != 0,
    };
    let next = NextReferences { references: next_listed, boxes: next_boxes, are_clipped: are_clipped != 0 };
    let split = Splitter { references, keys, empty_space, corners }.split();
    let (before, _) = split.ranks::<LANES>(shared_mem::<ChunkSmem>());
    let chunk = thread::block_idx_x() as usize;
    let bases = [before_chunks.load(chunk), before_chunks.load(of_chunks.len() + chunk)];
    next.store(&split, [bases[0] + before[0], bases[1] + before[1]]);
}

/// Sums the references of each node on both sides, given the counts of its chunks and their prefix sums; one thread per
/// node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_node_counts(
    nodes: Slice<LargeNode>,
    of_chunks: Slice<u32>,
    counts: Slice<u32>,
    before_chunks: Slice<u32>,
    of_nodes: SliceMut<u32>,
) {
    let node = thread::index_1d_u64() as usize;
    if node < nodes.len() {
        let large = nodes.load(node);
        let last = (large.first_chunk + large.num_chunks() - 1) as usize;
        let mut side = 0;
        while side < 2 {
            let at = side * of_chunks.len() + last;
            of_nodes.store(side * nodes.len() + node, before_chunks.load(at) + counts.load(at));
            side += 1;
        }
    }
}

/// Copies the references of nodes that try another axis to the next level's list; one block per chunk.
#[kernel(family = "sah", block = THREADS)]
pub unsafe fn sah_stay(
    nodes: Slice<LargeNode>,
    of_chunks: Slice<u32>,
    listed: Slice<u32>,
    boxes: Slice<Aabb>,
    are_clipped: u32,
    stays: Slice<u8>,
    next_listed: SliceMut<u32>,
    next_boxes: SliceMut<Aabb>,
) {
    let reference = LevelReferences {
        nodes,
        chunk_nodes: of_chunks,
        references: listed,
        boxes,
        are_clipped: are_clipped != 0,
    }
    .reference();
    if reference.exists && stays.load(reference.node) != 0 {
        let chunk =
            thread::block_idx_x() - reference.large.first_chunk + reference.large.child_chunk(Side::Below);
        let slot = chunk as usize * THREADS + thread::thread_idx_x() as usize;
        next_listed.store(slot, reference.triangle);
        if are_clipped != 0 {
            // By words, which keeps the box out of local memory.
            next_boxes.store(slot, Aabb::from_words(reference.bounds.to_words()));
        }
    }
}
