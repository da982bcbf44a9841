//! One level of large nodes, a thread per node: decides about each node, and emits the nodes of the next level and small
//! roots.

use super::large_nodes::{CHUNK_TRIANGLES, LargeNode, Outcome, SMALL_TRIANGLES, SplitPlan};
use super::small_roots::SmallRoot;
use super::top_nodes::{Child, TopNode};
use crate::block::scan::exclusive_over_warps;
use crate::policy::PER_ITEM_THREADS;
use crate::rays::aabb::{BOX_WORDS, Side};
use crate::thread::items::own_item;
use crate::thread::operator::Sum;
use crate::thread::search::partition_point;
use crate::warp::scan::{exclusive_of, inclusive};
use cuda_std::prelude::*;

/// Layout of a level's totals, which the host reads.
pub mod totals {
    /// Low half: large nodes of the next level. High half: their chunks.
    pub const LARGE: usize = 0;
    /// Low half: small roots. High half: their references.
    pub const SMALL: usize = 1;
    /// Flags, see [`RETRIES`] and [`OVERFLOW`].
    pub const FLAGS: usize = 2;
    /// Number of words.
    pub const WORDS: usize = 3;

    /// Flag: nodes exist that stay and try another axis.
    pub const RETRIES: u64 = 1;
    /// Flag: overflow leaves exist, which have more references than bits.
    pub const OVERFLOW: u64 = 2;

    /// Packs two numbers into a word.
    #[inline(always)]
    pub const fn pack(low: u32, high: u32) -> u64 {
        low as u64 | (high as u64) << 32
    }

    /// Unpacks a word.
    #[inline(always)]
    pub const fn unpack(word: u64) -> (u32, u32) {
        (word as u32, (word >> 32) as u32)
    }
}

/// The accumulators of a level.
#[derive(Clone, Copy, KernelArgs)]
pub struct LevelSums<'a> {
    /// The bounding boxes of the nodes' references: a row of keys for each coordinate.
    pub keys: SliceMut<'a, u32>,
    /// The references of the nodes below and above their planes, a row for each side.
    pub counts: SliceMut<'a, u32>,
    /// See [`totals`].
    pub totals: SliceMut<'a, u64>,
}

/// Maps chunks to nodes, and resets the accumulators: keys to the maximum, counts and totals to zero. One thread per chunk;
/// there are at least as many chunks as nodes.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_chunk_nodes(nodes: Slice<LargeNode>, chunk_nodes: SliceMut<u32>, sums: LevelSums<'_>) {
    let Some(chunk) = own_item(chunk_nodes.len()) else { return };
    let node = partition_point(0, nodes.len(), |node| nodes.load(node).first_chunk as usize <= chunk) - 1;
    chunk_nodes.store(chunk, node as u32);
    if chunk < nodes.len() {
        for i in 0..BOX_WORDS {
            sums.keys.store(i * nodes.len() + chunk, u32::MAX);
        }
        sums.counts.store(chunk, 0);
        sums.counts.store(nodes.len() + chunk, 0);
    }
    if chunk == 0 {
        for i in 0..sums.totals.len() {
            sums.totals.store(i, 0);
        }
    }
}

/// The nodes of a level, and the parameters of their splits.
#[derive(Clone, Copy, KernelArgs)]
pub struct LevelNodes<'a> {
    /// The nodes.
    pub nodes: Slice<'a, crate::sah::large_nodes::LargeNode>,
    /// Their split plans.
    pub plans: crate::sah::plans::Plans<'a>,
    /// The references below and above their planes, a row for each side.
    pub counts: Slice<'a, u32>,
    /// The cost of a traversal step in intersection tests.
    pub step_cost: f32,
    /// 1 if the tree has reached its [reference limit](super::large_nodes::max_references).
    pub is_full: u32,
}

/// The output of a level: nodes of the next level, small roots and top nodes.
#[derive(Clone, Copy, KernelArgs)]
pub struct NextLevel<'a> {
    /// Index of the next level's first top node.
    pub first_top_node: u32,
    /// Index of the first new small root.
    pub first_small_root: u32,
    /// Index of its first reference on the list of all small roots.
    pub first_small_reference: u32,
    /// The large nodes of the next level.
    pub nodes: SliceMut<'a, crate::sah::large_nodes::LargeNode>,
    /// All small roots.
    pub small_roots: SliceMut<'a, crate::sah::small_roots::SmallRoot>,
    /// The top nodes of this level.
    pub top_nodes: SliceMut<'a, crate::sah::top_nodes::TopNode>,
    /// 1 for each node of this level that tries another axis.
    pub retries: SliceMut<'a, u8>,
    /// See [`totals`]; zeros at first.
    pub totals: SliceMut<'a, u64>,
}

/// A processed node, and the number of references of each child. The first child has all of them if the node does not split.
#[derive(Clone, Copy)]
struct ProcessedNode {
    large: LargeNode,
    plan: SplitPlan,
    outcome: Outcome,
    lens: [u32; 2],
}

impl LevelNodes<'_> {
    #[inline(always)]
    unsafe fn node(&self, node: usize) -> ProcessedNode {
        let large = self.nodes.load(node);
        let plan = self.plans.plan(node, &large);
        let counts = [self.counts.load(node), self.counts.load(self.nodes.len() + node)];
        let is_cheapest = !self.plans.planes.is_empty();
        let outcome = plan.outcome(&large, counts, self.step_cost, is_cheapest, self.is_full != 0);
        ProcessedNode {
            large,
            plan,
            outcome,
            lens: if outcome == Outcome::Split { counts } else { [large.len, 0] },
        }
    }
}

impl ProcessedNode {
    /// True for a child that is a large node of the next level.
    #[inline(always)]
    fn is_large(&self, child: usize) -> bool {
        self.outcome != Outcome::Leaf && self.lens[child] > SMALL_TRIANGLES
    }

    /// Returns the node's share of the totals `LARGE` and `SMALL` ([`totals`]).
    #[inline(always)]
    fn totals(&self) -> [u64; 2] {
        let (mut large, mut small) = (0, 0);
        for i in 0..2 {
            let len = self.lens[i];
            if self.is_large(i) {
                large += totals::pack(1, len.div_ceil(CHUNK_TRIANGLES));
            } else if len > 0 {
                small += totals::pack(1, len);
            }
        }
        [large, small]
    }

    /// Returns the node's flags ([`totals`]).
    #[inline(always)]
    fn flags(&self) -> u64 {
        match self.outcome {
            Outcome::NextAxis => totals::RETRIES,
            Outcome::Leaf if self.large.len > SMALL_TRIANGLES => totals::OVERFLOW,
            _ => 0,
        }
    }
}

/// Shared memory of a block that assigns output indices.
#[repr(C)]
pub struct LevelSmem {
    warp_sums: [[u64; PER_ITEM_THREADS / 32]; 2],
    bases: [u64; 2],
}

/// Processes a level: writes the nodes of the next level, small roots, top nodes, and the [`totals`]. One thread per node. The
/// order of the lists is nondeterministic, but chunks are in the order of their nodes; the tree does not depend on it.
#[kernel(family = "sah", block = PER_ITEM_THREADS, shared = LevelSmem)]
pub unsafe fn sah_level(level: LevelNodes<'_>, next: NextLevel<'_>) {
    let node = thread::index_1d_u64() as usize;
    let exists = node < level.nodes.len();
    let processed = level.node(if exists { node } else { 0 });
    let own_totals = if exists { processed.totals() } else { [0; 2] };
    let smem = shared_mem::<LevelSmem>();
    let (sums, bases) = (shared_field!(smem, warp_sums), shared_field!(smem, bases));
    let (mut before, mut all) = ([0; 2], [0; 2]);
    for i in 0..2 {
        let (before_in_warp, warp_sum) = exclusive_of::<u64, Sum>(inclusive::<u64, Sum>(own_totals[i]));
        let (warps_before, block_sum) = exclusive_over_warps::<u64, Sum>(
            warp_sum,
            sums.part(i * (PER_ITEM_THREADS / 32), PER_ITEM_THREADS / 32),
        );
        (before[i], all[i]) = (before_in_warp + warps_before, block_sum);
    }
    let thread = thread::thread_idx_x() as usize;
    if thread < 2 {
        let sum = if thread == 0 { all[0] } else { all[1] };
        bases.store(thread, next.totals.atomic_add(thread, sum, Ordering::Relaxed, Scope::Device));
    }
    thread::sync_threads();
    if !exists {
        return;
    }
    if processed.flags() != 0 {
        next.totals.atomic_or(totals::FLAGS, processed.flags(), Ordering::Relaxed, Scope::Device);
    }
    next.retries.store(node, (processed.outcome == Outcome::NextAxis).into());
    let (mut next_number, mut chunk) = totals::unpack(bases.load(0) + before[0]);
    let (mut small_number, mut small_references) = totals::unpack(bases.load(1) + before[1]);
    let ProcessedNode { large, plan, outcome, lens } = processed;
    let boxes = plan.remainder.split_at(plan.axis, plan.plane);
    let mut children = [Child::EMPTY, Child::EMPTY];
    for i in 0..2 {
        let side = if i == 1 { Side::Above } else { Side::Below };
        let (len, child_chunk) = (lens[i], large.child_chunk(side));
        let bounds = if outcome == Outcome::Split { boxes[i] } else { plan.remainder };
        let depth = plan.depth(&large) + u32::from(outcome == Outcome::Split);
        if processed.is_large(i) {
            let tried_axes = if outcome == Outcome::NextAxis { large.tried_axes + 1 } else { 0 };
            let child =
                LargeNode { bounds, depth, tried_axes, len, first_chunk: chunk, begin_chunk: child_chunk };
            next.nodes.store(next_number as usize, child);
            children[i] = Child::large(next.first_top_node + next_number);
            next_number += 1;
            chunk += child.num_chunks();
        } else if len > 0 {
            let from_current_level = outcome == Outcome::Leaf;
            let source_chunk = if from_current_level { large.begin_chunk } else { child_chunk };
            let begin = next.first_small_reference + small_references;
            let root = SmallRoot {
                bounds,
                depth,
                begin,
                len,
                source_chunk,
                from_current_level: from_current_level.into(),
            };
            next.small_roots.store((next.first_small_root + small_number) as usize, root);
            children[i] = Child::small(next.first_small_root + small_number);
            small_number += 1;
            small_references += len;
        }
    }
    let above = if outcome == Outcome::Split { children[1] } else { Child::NONE };
    next.top_nodes.store(node, TopNode { plan, below: children[0], above });
}
