//! The large nodes of a level, a thread each: what is done with them, and what they leave.

use super::chunks::load_box;
use super::large::{Large, Outcome, Plan, SMALL_TRIANGLES};
use crate::policy::PER_ITEM_THREADS;
use cuda_std::prelude::*;

/// What a large node became.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Upper {
    /// What was done with it.
    pub plan: Plan,
    /// What is below its plane, or all if it did not split.
    pub below: Child,
    /// What is above; [`Child::NONE`] if it did not split.
    pub above: Child,
}

// SAFETY: plain numbers.
unsafe impl cust_core::DeviceCopy for Upper {}

/// What is on a side of a large node.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child(u32);

impl Child {
    const SMALL: u32 = 1 << 31;

    /// The node did not split, and this is no child.
    pub const NONE: Self = Self(u32::MAX);
    /// No triangle.
    pub const EMPTY: Self = Self(u32::MAX - 1);

    /// A large node, by its number among all of them.
    #[inline(always)]
    pub const fn large(number: u32) -> Self {
        Self(number)
    }

    /// A small root, by its number.
    #[inline(always)]
    pub const fn small(number: u32) -> Self {
        Self(number | Self::SMALL)
    }

    /// The number of a large node, if it is one.
    #[inline(always)]
    pub const fn as_large(self) -> Option<u32> {
        if self.0 & Self::SMALL == 0 { Some(self.0) } else { None }
    }

    /// The number of a small root; none of the others may be asked.
    #[inline(always)]
    pub const fn small_number(self) -> u32 {
        self.0 & !Self::SMALL
    }
}

/// A node of the second stage: one with a bit for each triangle, or a leaf with more.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SmallRoot {
    /// Its box.
    pub bounds: super::aabb::Aabb,
    /// Levels above it.
    pub depth: u32,
    /// The first of its triangles on the list of all small roots.
    pub begin: u32,
    /// How many they are.
    pub len: u32,
    /// Where they come from, on the list of the level or of the next.
    pub from: u32,
    /// 1 if that is the list of the level.
    pub is_old: u32,
}

// SAFETY: plain numbers.
unsafe impl cust_core::DeviceCopy for SmallRoot {}

/// Numbers of what nodes leave, two in each of two words.
pub mod left {
    /// Large nodes, and small roots above.
    #[inline(always)]
    pub const fn nodes(large: u32, small: u32) -> u64 {
        large as u64 | (small as u64) << 32
    }

    /// Chunks of large nodes, and triangles of small roots above.
    #[inline(always)]
    pub const fn triangles(chunks: u32, of_small: u32) -> u64 {
        chunks as u64 | (of_small as u64) << 32
    }

    /// The two.
    #[inline(always)]
    pub const fn parts(word: u64) -> (u32, u32) {
        (word as u32, (word >> 32) as u32)
    }
}

/// Plans what is done with each node, given the boxes of their triangles as keys; a thread a node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_plan(nodes: Slice<Large>, keys: Slice<u32>, empty_space: f32, plans: SliceMut<Plan>) {
    let node = thread::index_1d_u64() as usize;
    if node < nodes.len() {
        plans.store(node, Plan::new(&nodes.load(node), load_box(keys, node), empty_space));
    }
}

/// The nodes of a level that have been planned and counted.
#[derive(Clone, Copy)]
struct Level<'a> {
    nodes: Slice<'a, Large>,
    plans: Slice<'a, Plan>,
    counts: Slice<'a, u32>,
    step_cost: f32,
    is_full: bool,
}

impl Level<'_> {
    /// A node with what becomes of it, and how many triangles each child has: all in the first if it does not split.
    #[inline(always)]
    unsafe fn node(&self, node: usize) -> (Large, Plan, Outcome, [u32; 2]) {
        let (large, plan) = (self.nodes.load(node), self.plans.load(node));
        let counts = [self.counts.load(node), self.counts.load(self.nodes.len() + node)];
        let outcome = plan.outcome(&large, counts[0], counts[1], self.step_cost, self.is_full);
        (large, plan, outcome, if outcome == Outcome::Split { counts } else { [large.len, 0] })
    }
}

/// True for a child that goes on as a large node.
#[inline(always)]
fn is_large(outcome: Outcome, len: u32) -> bool {
    outcome != Outcome::Leaf && len > SMALL_TRIANGLES
}

/// What [`sah_outcomes`] tells of a level, a bit each.
pub mod told {
    /// There are nodes that stay as they are.
    pub const STAYS: u64 = 1;
    /// There are leaves with more triangles than have bits.
    pub const LONG: u64 = 2;
}

/// Writes what each node leaves ([`left`]), its nodes, behind those of all its triangles, and a 0 at last; which nodes stay as they are; and
/// what there is ([`told`]). A thread a node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_outcomes(
    nodes: Slice<Large>,
    plans: Slice<Plan>,
    counts: Slice<u32>,
    step_cost: f32,
    is_full: u32,
    leaves: SliceMut<u64>,
    stays: SliceMut<u8>,
    told: SliceMut<u64>,
) {
    let node = thread::index_1d_u64() as usize;
    if node >= nodes.len() {
        return;
    }
    let level = Level { nodes, plans, counts, step_cost, is_full: is_full != 0 };
    let (large, _, outcome, lens) = level.node(node);
    let (mut of_nodes, mut of_triangles, mut i) = (0, 0, 0);
    while i < 2 {
        let len = lens[i];
        if is_large(outcome, len) {
            of_nodes += left::nodes(1, 0);
            of_triangles += left::triangles(len.div_ceil(super::large::CHUNK_TRIANGLES), 0);
        } else if len > 0 {
            of_nodes += left::nodes(0, 1);
            of_triangles += left::triangles(0, len);
        }
        i += 1;
    }
    leaves.store(node, of_nodes);
    leaves.store(nodes.len() + node, of_triangles);
    if node == 0 {
        leaves.store(2 * nodes.len(), 0);
    }
    let stays_so = outcome == Outcome::Again;
    stays.store(node, stays_so.into());
    if stays_so {
        told.atomic_or(0, told::STAYS, Ordering::Relaxed, Scope::Device);
    }
    if outcome == Outcome::Leaf && large.len > SMALL_TRIANGLES {
        told.atomic_or(0, told::LONG, Ordering::Relaxed, Scope::Device);
    }
}

/// Writes the nodes of the next level, small roots, and what became of each node, given the scanned numbers of what is left; a thread a node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_next(
    nodes: Slice<Large>,
    plans: Slice<Plan>,
    counts: Slice<u32>,
    step_cost: f32,
    is_full: u32,
    left_before: Slice<u64>,
    first_next: u32,
    first_small: u32,
    first_of_small: u32,
    next: SliceMut<Large>,
    small: SliceMut<SmallRoot>,
    uppers: SliceMut<Upper>,
) {
    let node = thread::index_1d_u64() as usize;
    if node >= nodes.len() {
        return;
    }
    let level = Level { nodes, plans, counts, step_cost, is_full: is_full != 0 };
    let (large, plan, outcome, lens) = level.node(node);
    let (mut next_number, mut small_number) = left::parts(left_before.load(node));
    let of_triangles = left_before.load(nodes.len() + node).wrapping_sub(left_before.load(nodes.len()));
    let (mut chunk, mut of_small) = left::parts(of_triangles);
    let boxes = plan.rest.halves(plan.axis, plan.plane);
    let (mut children, mut i) = ([Child::EMPTY, Child::EMPTY], 0);
    while i < 2 {
        let (len, begin) = (lens[i], large.room(i == 1));
        let bounds = if outcome == Outcome::Split { boxes[i] } else { plan.rest };
        let depth = plan.depth(&large) + u32::from(outcome == Outcome::Split);
        if is_large(outcome, len) {
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

/// Copies the triangles of small roots, and their boxes if these are clipped, to the list of all of them; a warp a root.
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
    let from = root.from as usize * super::large::CHUNK_TRIANGLES as usize;
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
