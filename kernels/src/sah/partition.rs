//! References of large nodes: their bounding boxes, and their partition by split planes. One block per chunk.

use super::chunks::{ChunkSmem, LevelReferences, Reference, ReferenceListMut, block_min_keys};
use super::clip::clipped;
use super::cost::{reaches_above, reaches_below};
use crate::block::scan::exclusive_sum;
use crate::policy::SAH_CHUNK_TRIANGLES as THREADS;
use crate::rays::aabb::{Aabb, BOX_WORDS, Side, component, to_keys};
use cuda_std::prelude::*;

/// The references of a level, and the split plans of its nodes.
#[derive(Clone, Copy, KernelArgs)]
pub struct LevelSplits<'a> {
    /// The nodes and their references.
    pub level: crate::sah::chunks::LevelReferences<'a>,
    /// The split plans of the nodes.
    pub plans: crate::sah::plans::Plans<'a>,
    /// The corners of all triangles.
    pub corners: Slice<'a, crate::rays::triangle::Corners>,
}

/// The reference of a thread, split by the plane of its node.
pub(super) struct SplitReference {
    pub(super) reference: Reference,
    /// The clipped box below and above the plane, if that side exists.
    parts: [Aabb; 2],
    exists: [bool; 2],
}

impl LevelSplits<'_> {
    #[inline(always)]
    pub(super) unsafe fn split(&self) -> SplitReference {
        let reference = self.level.reference();
        let plan = self.plans.plan(reference.node, &reference.large);
        let (low, high) =
            (component(reference.bounds.low, plan.axis), component(reference.bounds.high, plan.axis));
        let is_split = reference.exists && plan.has_plane();
        let mut exists =
            [is_split && reaches_below(low, high, plan.plane), is_split && reaches_above(high, plan.plane)];
        let mut parts = [reference.bounds; 2];
        if self.level.list.are_clipped != 0 && exists[0] && exists[1] {
            let corners = self.corners.load(reference.triangle as usize).positions();
            parts[0] = clipped(corners, reference.bounds, plan.axis, plan.plane, Side::Below);
            parts[1] = clipped(corners, reference.bounds, plan.axis, plan.plane, Side::Above);
            exists = [!parts[0].is_empty(), !parts[1].is_empty()];
        }
        SplitReference { reference, parts, exists }
    }
}

/// Positions of a thread's reference on both sides.
pub(super) struct Ranks {
    /// The references of the block before it.
    pub(super) before: [u32; 2],
    /// The references of the block.
    pub(super) all: [u32; 2],
}

impl SplitReference {
    /// Returns the ranks, given a function that computes the exclusive prefix sum and the sum over the block. All threads
    /// must call.
    #[inline(always)]
    pub(super) unsafe fn ranks(&self, exclusive_sum: impl FnOnce(u32) -> (u32, u32)) -> Ranks {
        // Both sums are at most 256: one scan adds them, 16 bits each.
        let (before, all) = exclusive_sum(u32::from(self.exists[0]) | u32::from(self.exists[1]) << 16);
        Ranks { before: [before & 0xFFFF, before >> 16], all: [all & 0xFFFF, all >> 16] }
    }
}

impl ReferenceListMut<'_> {
    /// Stores a reference on each side where it exists, given the number of the node's references before it on both sides.
    #[inline(always)]
    pub(super) unsafe fn store_sides(&self, split: &SplitReference, before: [u32; 2]) {
        for side in 0..2 {
            if split.exists[side] {
                let child = if side == 1 { Side::Above } else { Side::Below };
                let begin = split.reference.large.child_chunk(child) as usize * THREADS;
                self.store(begin + before[side] as usize, split.reference.triangle, split.parts[side]);
            }
        }
    }
}

/// Adds the block's references to the counts of its node, which reserves output slots, and stores the references there.
#[inline(always)]
pub(super) unsafe fn store_by_atomics(
    split: &SplitReference,
    ranks: &Ranks,
    counts: SliceMut<'_, u32>,
    next: ReferenceListMut<'_>,
    bases: SharedSlice<'_, u32>,
) {
    let (thread, before) = (thread::thread_idx_x() as usize, ranks.before);
    if thread < 2 {
        let count = if thread == 0 { ranks.all[0] } else { ranks.all[1] };
        let counter = thread * (counts.len() / 2) + split.reference.node;
        bases.store(thread, counts.atomic_add(counter, count, Ordering::Relaxed, Scope::Device));
    }
    thread::sync_threads();
    next.store_sides(split, [bases.load(0) + before[0], bases.load(1) + before[1]]);
}

/// Reduces the keys of a node by the block's: thread `i` has key `i` of the box.
#[inline(always)]
pub(super) unsafe fn min_by_atomics(reference: &Reference, min_key: u32, keys: SliceMut<'_, u32>) {
    let word = thread::thread_idx_x() as usize;
    if word < BOX_WORDS {
        let at = word * (keys.len() / BOX_WORDS) + reference.node;
        keys.atomic_min(at, min_key, Ordering::Relaxed, Scope::Device);
    }
}

/// Computes the bounding box of each node's references with atomics.
#[kernel(family = "sah", block = THREADS, shared = ChunkSmem)]
pub unsafe fn sah_boxes(level: LevelReferences<'_>, keys: SliceMut<u32>) {
    let reference = level.reference();
    let min_key = block_min_keys(to_keys(reference.bounds), shared_mem::<ChunkSmem>());
    min_by_atomics(&reference, min_key, keys);
}

/// Partitions references by the planes of their nodes and counts each side, in a row of `counts` each. A block reserves its
/// output slots with two atomic additions.
#[kernel(family = "sah", block = THREADS, shared = ChunkSmem)]
pub unsafe fn sah_sort(splits: LevelSplits<'_>, counts: SliceMut<u32>, next: ReferenceListMut<'_>) {
    let (split, smem) = (splits.split(), shared_mem::<ChunkSmem>());
    let ranks = split.ranks(|side_flags| exclusive_sum(side_flags, &raw mut (*smem).sums));
    store_by_atomics(&split, &ranks, counts, next, shared_field!(smem, bases));
}

/// Copies the references of nodes that try another axis to the next level's list.
#[kernel(family = "sah", block = THREADS)]
pub unsafe fn sah_stay(level: LevelReferences<'_>, stays: Slice<u8>, next: ReferenceListMut<'_>) {
    let reference = level.reference();
    if reference.exists && stays.load(reference.node) != 0 {
        let chunk =
            thread::block_idx_x() - reference.large.first_chunk + reference.large.child_chunk(Side::Below);
        let slot = chunk as usize * THREADS + thread::thread_idx_x() as usize;
        next.store(slot, reference.triangle, reference.bounds);
    }
}
