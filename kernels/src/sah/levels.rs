//! One level of large nodes, a thread per node: decides about each node, and emits the nodes of the next level and small
//! roots.

use super::chunks::load_box;
use super::large::{CHUNK_TRIANGLES, Large, Outcome, Plan, SMALL_TRIANGLES};
use crate::block::scan::exclusive_over_warps;
use crate::plain::plain;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::operator::Sum;
use crate::warp::scan::{exclusive_of, inclusive};
use cuda_std::prelude::*;

/// A node of the top tree: a processed large node.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Upper {
    /// Empty-space cuts and split plane.
    pub plan: Plan,
    /// The child below the plane, or the only child if the node did not split.
    pub below: Child,
    /// The child above the plane; [`Child::NONE`] if the node did not split.
    pub above: Child,
}

plain! {
    Child { u32 }
    Upper { Plan, Child, Child }
}

/// A child of a top node.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child(u32);

impl Child {
    const SMALL: u32 = 1 << 31;

    /// No child: the node did not split.
    pub const NONE: Self = Self(u32::MAX);
    /// An empty leaf.
    pub const EMPTY: Self = Self(u32::MAX - 1);

    /// Refers to a top node by its index.
    #[inline(always)]
    pub const fn large(number: u32) -> Self {
        Self(number)
    }

    /// Refers to a small root by its index.
    #[inline(always)]
    pub const fn small(number: u32) -> Self {
        Self(number | Self::SMALL)
    }

    /// Returns the index of a top node, if it is one.
    #[inline(always)]
    pub const fn as_large(self) -> Option<u32> {
        if self.0 & Self::SMALL == 0 { Some(self.0) } else { None }
    }

    /// Returns the index of a small root. The child must be one.
    #[inline(always)]
    pub const fn small_number(self) -> u32 {
        self.0 & !Self::SMALL
    }
}

/// A root of the second stage: a node with at most 64 references, a bit each, or an overflow leaf, which has more.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SmallRoot {
    /// Bounding box.
    pub bounds: super::aabb::Aabb,
    /// Depth below the tree's root.
    pub depth: u32,
    /// Index of its first reference on the list of all small roots.
    pub begin: u32,
    /// Number of references.
    pub len: u32,
    /// Chunk from which its references are copied: on the list of the current level, or of the next.
    pub from: u32,
    /// 1 if the source is the list of the current level.
    pub is_old: u32,
}

plain! { SmallRoot { super::aabb::Aabb, u32, u32, u32, u32, u32 } }

/// Layout of a level's totals, which the host reads.
pub mod left {
    /// Low half: large nodes of the next level. High half: their chunks.
    pub const LARGE: usize = 0;
    /// Low half: small roots. High half: their references.
    pub const SMALL: usize = 1;
    /// Flags, see [`RETRIES`] and [`OVERFLOW`].
    pub const TOLD: usize = 2;
    /// Number of words.
    pub const WORDS: usize = 3;

    /// Flag: nodes exist that stay and try another axis.
    pub const STAYS: u64 = 1;
    /// Flag: overflow leaves exist, which have more references than bits.
    pub const LONG: u64 = 2;

    /// Packs two numbers into a word.
    #[inline(always)]
    pub const fn word(low: u32, high: u32) -> u64 {
        low as u64 | (high as u64) << 32
    }

    /// Unpacks a word.
    #[inline(always)]
    pub const fn parts(word: u64) -> (u32, u32) {
        (word as u32, (word >> 32) as u32)
    }
}

/// The nodes of a level, the bounding boxes of their references, and the counts on both sides of the planes.
#[derive(Clone, Copy)]
struct Level<'a> {
    nodes: Slice<'a, Large>,
    keys: Slice<'a, u32>,
    counts: Slice<'a, u32>,
    empty_space: f32,
    step_cost: f32,
    is_full: bool,
}

/// A processed node, and the number of references of each child. The first child has all of them if the node does not split.
#[derive(Clone, Copy)]
struct Done {
    large: Large,
    plan: Plan,
    outcome: Outcome,
    lens: [u32; 2],
}

impl Level<'_> {
    #[inline(always)]
    unsafe fn node(&self, node: usize) -> Done {
        let large = self.nodes.load(node);
        let plan = Plan::new(&large, load_box(self.keys, node), self.empty_space);
        let counts = [self.counts.load(node), self.counts.load(self.nodes.len() + node)];
        let outcome = plan.outcome(&large, counts[0], counts[1], self.step_cost, self.is_full);
        Done { large, plan, outcome, lens: if outcome == Outcome::Split { counts } else { [large.len, 0] } }
    }
}

impl Done {
    /// True for a child that is a large node of the next level.
    #[inline(always)]
    fn is_large(&self, child: usize) -> bool {
        self.outcome != Outcome::Leaf && self.lens[child] > SMALL_TRIANGLES
    }

    /// Returns the node's share of the totals `LARGE` and `SMALL` ([`totals`]).
    #[inline(always)]
    fn left(&self) -> [u64; 2] {
        let (mut of_large, mut of_small, mut i) = (0, 0, 0);
        while i < 2 {
            let len = self.lens[i];
            if self.is_large(i) {
                of_large += left::word(1, len.div_ceil(CHUNK_TRIANGLES));
            } else if len > 0 {
                of_small += left::word(1, len);
            }
            i += 1;
        }
        [of_large, of_small]
    }

    /// Returns the node's flags ([`totals`]).
    #[inline(always)]
    fn told(&self) -> u64 {
        match self.outcome {
            Outcome::Again => left::STAYS,
            Outcome::Leaf if self.large.len > SMALL_TRIANGLES => left::LONG,
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

/// Processes a level: writes the nodes of the next level, small roots, the top nodes, the flags of nodes that try another
/// axis, and the [totals](totals), which must start at zero. One thread per node. The order of nodes on their lists is
/// nondeterministic, and nodes are in the order of their chunks; the tree does not depend on it.
#[kernel(family = "sah", block = PER_ITEM_THREADS, shared = LevelSmem)]
pub unsafe fn sah_level(
    nodes: Slice<Large>,
    keys: Slice<u32>,
    counts: Slice<u32>,
    empty_space: f32,
    step_cost: f32,
    is_full: u32,
    first_next: u32,
    first_small: u32,
    first_of_small: u32,
    left: SliceMut<u64>,
    next: SliceMut<Large>,
    small: SliceMut<SmallRoot>,
    stays: SliceMut<u8>,
    uppers: SliceMut<Upper>,
) {
    let node = thread::index_1d_u64() as usize;
    let level = Level { nodes, keys, counts, empty_space, step_cost, is_full: is_full != 0 };
    let is_there = node < nodes.len();
    let done = level.node(if is_there { node } else { 0 });
    let of_it = if is_there { done.left() } else { [0; 2] };
    let smem = shared_mem::<LevelSmem>();
    let (sums, bases) = (shared_field!(smem, warp_sums), shared_field!(smem, bases));
    let (mut before, mut all, mut i) = ([0; 2], [0; 2], 0);
    while i < 2 {
        let (lanes, of_warp) = exclusive_of::<u64, Sum>(inclusive::<u64, Sum>(of_it[i]));
        let (warps, of_block) = exclusive_over_warps::<u64, Sum>(
            of_warp,
            sums.part(i * (PER_ITEM_THREADS / 32), PER_ITEM_THREADS / 32),
        );
        (before[i], all[i]) = (lanes + warps, of_block);
        i += 1;
    }
    let thread = thread::thread_idx_x() as usize;
    if thread < 2 {
        let sum = if thread == 0 { all[0] } else { all[1] };
        bases.store(thread, left.atomic_add(thread, sum, Ordering::Relaxed, Scope::Device));
    }
    thread::sync_threads();
    if !is_there {
        return;
    }
    if done.told() != 0 {
        left.atomic_or(left::TOLD, done.told(), Ordering::Relaxed, Scope::Device);
    }
    stays.store(node, (done.outcome == Outcome::Again).into());
    let (mut next_number, mut chunk) = left::parts(bases.load(0) + before[0]);
    let (mut small_number, mut of_small) = left::parts(bases.load(1) + before[1]);
    let Done { large, plan, outcome, lens } = done;
    let boxes = plan.rest.halves(plan.axis, plan.plane);
    let (mut children, mut i) = ([Child::EMPTY, Child::EMPTY], 0);
    while i < 2 {
        let (len, begin) = (lens[i], large.room(i == 1));
        let bounds = if outcome == Outcome::Split { boxes[i] } else { plan.rest };
        let depth = plan.depth(&large) + u32::from(outcome == Outcome::Split);
        if done.is_large(i) {
            let tried = if outcome == Outcome::Again { large.tried + 1 } else { 0 };
            let child = Large { bounds, depth, tried, len, chunk, begin };
            next.store(next_number as usize, child);
            children[i] = Child::large(first_next + next_number);
            next_number += 1;
            chunk += child.num_chunks();
        } else if len > 0 {
            let is_old = outcome == Outcome::Leaf;
            let from = if is_old { large.begin } else { begin };
            let begin = first_of_small + of_small;
            let root = SmallRoot { bounds, depth, begin, len, from, is_old: is_old.into() };
            small.store((first_small + small_number) as usize, root);
            children[i] = Child::small(first_small + small_number);
            small_number += 1;
            of_small += len;
        }
        i += 1;
    }
    let above = if outcome == Outcome::Split { children[1] } else { Child::NONE };
    uppers.store(node, Upper { plan, below: children[0], above });
}

/// Copies the references of small roots, and their boxes if triangles are clipped, to the list of all small roots; one warp
/// per root.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_keep(
    roots: Slice<SmallRoot>,
    listed: Slice<u32>,
    boxes: Slice<super::aabb::Aabb>,
    next_listed: Slice<u32>,
    next_boxes: Slice<super::aabb::Aabb>,
    are_clipped: u32,
    kept: SliceMut<u32>,
    kept_boxes: SliceMut<super::aabb::Aabb>,
) {
    let root = thread::index_1d_u64() as usize / 32;
    if root >= roots.len() {
        return;
    }
    let root = roots.load(root);
    let from = root.from as usize * CHUNK_TRIANGLES as usize;
    let (list, boxes) = if root.is_old != 0 { (listed, boxes) } else { (next_listed, next_boxes) };
    let mut i = warp::lane_id();
    while i < root.len {
        let (at, to) = (from + i as usize, (root.begin + i) as usize);
        kept.store(to, list.load(at));
        if are_clipped != 0 {
            kept_boxes.store(to, boxes.load(at));
        }
        i += 32;
    }
}
