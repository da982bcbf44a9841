//! Subtrees of small roots, one warp each: the warp builds the subtree in shared memory, in preorder.
//!
//! Compared with [`small_levels`](super::small_levels), no masks go through device memory, no node waits for a level, and
//! references are sorted in place. A warp first computes the size of its subtree and records its decisions. When the
//! positions of all subtrees are known, it repeats the traversal and writes the nodes.

use super::candidates::{Choice, SideMasks, decode, encode};
use super::chunks::ReferenceList;
use super::cost::{SplitCost, leaf_cost, reaches_above, reaches_below};
use super::large_nodes::SMALL_TRIANGLES;
use super::node::{MAX_DEPTH, Node};
use super::preorder::{SubtreeSize, TreeMut};
use super::small_roots::{SmallRoot, SmallRoots};
use crate::policy::SAH_ROOT_WARPS as WARPS;
use crate::rays::aabb::{Aabb, component};
use crate::thread::words::{computed, join, split};
use cuda_std::float::{f32_from_key, f32_to_key};
use cuda_std::prelude::*;
use cuda_std::warp::WarpReductionOp;

/// Maximum references of a root.
const MAX_REFERENCES: usize = SMALL_TRIANGLES as usize;

/// Maximum number of deferred subtrees: one per level.
const STACK_ENTRIES: usize = MAX_DEPTH as usize + 1;

/// Recorded decisions of a root. Decisions about later nodes are computed twice.
pub const DECISIONS: usize = 128;

/// Words of a stack entry: mask, box, depth, and parent.
const STACK_ENTRY_WORDS: usize = 10;

/// The decision for a leaf, in place of a candidate.
const LEAF: u32 = 0xFFFF;

/// Shared memory of a warp.
#[repr(C, align(16))]
pub struct RootSmem {
    /// Masks of both sides of each candidate's plane: [`MAX_REFERENCES`] entries for each of the six kinds of ends.
    below: [[u64; MAX_REFERENCES]; 6],
    above: [[u64; MAX_REFERENCES]; 6],
    /// Bounding boxes, a row for each coordinate.
    words: [[f32; MAX_REFERENCES]; 6],
    ids: [u32; MAX_REFERENCES],
    /// The references of the current node.
    members: [u32; MAX_REFERENCES],
    stack: [[u32; STACK_ENTRIES]; STACK_ENTRY_WORDS],
}

/// Shared memory of a block.
#[repr(C)]
pub struct RootsSmem {
    warps: [RootSmem; WARPS],
}

/// A node of the subtree.
#[derive(Clone, Copy)]
struct SubtreeNode {
    mask: u64,
    bounds: Aabb,
    depth: u32,
}

/// The references of a root in shared memory.
#[derive(Clone, Copy)]
struct Root<'a> {
    len: u32,
    below: SharedSlice<'a, u64>,
    above: SharedSlice<'a, u64>,
    words: SharedSlice<'a, f32>,
    ids: SharedSlice<'a, u32>,
    members: SharedSlice<'a, u32>,
    stack: SharedSlice<'a, u32>,
}

/// A split: its plane, and the masks of both sides.
struct Split {
    axis: u32,
    plane: f32,
    sides: SideMasks,
}

/// True if a mask contains a triangle.
#[inline(always)]
fn has(mask: u64, triangle: u32) -> bool {
    mask >> triangle & 1 == 1
}

impl Root<'_> {
    #[inline(always)]
    unsafe fn new(smem: *mut RootSmem, len: u32) -> Self {
        Self {
            len,
            below: shared_field!(smem, below),
            above: shared_field!(smem, above),
            words: shared_field!(smem, words),
            ids: shared_field!(smem, ids),
            members: shared_field!(smem, members),
            stack: shared_field!(smem, stack),
        }
    }

    /// Loads references and boxes, and sorts them by triangle id.
    #[inline(always)]
    unsafe fn load(&self, begin: usize, list: ReferenceList<'_>) {
        let lane = warp::lane_id();
        let mut i = lane;
        while i < self.len {
            self.ids.store(i as usize, list.triangles.load(begin + i as usize));
            i += 32;
        }
        warp::sync_warp(warp::FULL_MASK);
        let mut i = lane;
        while i < self.len {
            let id = self.ids.load(i as usize);
            let words = list.bounds(begin + i as usize, id).to_words();
            let mut rank = 0;
            for k in 0..self.len {
                rank += usize::from(self.ids.load(k as usize) < id);
            }
            for word in 0..6 {
                self.words.store(word * MAX_REFERENCES + rank, words[word]);
            }
            self.members.store(rank, id);
            i += 32;
        }
        warp::sync_warp(warp::FULL_MASK);
        let mut i = lane as usize;
        while i < self.len as usize {
            let id = self.members.load(i);
            self.ids.store(i, id);
            i += 32;
        }
        warp::sync_warp(warp::FULL_MASK);
    }

    /// Computes the masks of both sides for all candidates.
    #[inline(always)]
    unsafe fn compute_masks(&self) {
        let mut triangle = warp::lane_id();
        while triangle < self.len {
            for axis in 0..3 {
                let (lows, highs) = (axis * MAX_REFERENCES, (axis + 3) * MAX_REFERENCES);
                let planes =
                    [self.words.load(lows + triangle as usize), self.words.load(highs + triangle as usize)];
                let (mut at_low, mut at_high) = (SideMasks::NONE, SideMasks::NONE);
                for i in 0..self.len {
                    let (low, high) =
                        (self.words.load(lows + i as usize), self.words.load(highs + i as usize));
                    at_low.add(i, low, high, planes[0]);
                    at_high.add(i, low, high, planes[1]);
                }
                self.below.store(lows + triangle as usize, at_low.below);
                self.above.store(lows + triangle as usize, at_low.above);
                self.below.store(highs + triangle as usize, at_high.below);
                self.above.store(highs + triangle as usize, at_high.above);
            }
            triangle = computed(triangle + 32);
        }
        warp::sync_warp(warp::FULL_MASK);
    }

    /// Returns the cheapest candidate, or [`LEAF`]; uniform over the warp.
    #[inline(always)]
    unsafe fn decide(&self, node: &SubtreeNode, step_cost: f32) -> u32 {
        let (num, lane) = (node.mask.count_ones(), warp::lane_id());
        // A split costs at least a traversal step.
        if leaf_cost(num) <= step_cost || node.depth >= MAX_DEPTH {
            return LEAF;
        }
        let [low, high, ..] = split(node.mask);
        if has(node.mask, lane) {
            self.members.store((low & warp::lane_mask_lt()).count_ones() as usize, lane);
        }
        if has(node.mask, lane + 32) {
            let rank = low.count_ones() + (high & warp::lane_mask_lt()).count_ones();
            self.members.store(rank as usize, lane + 32);
        }
        warp::sync_warp(warp::FULL_MASK);
        let (model, mut best) = (SplitCost::new(node.bounds, step_cost), Choice::NONE);
        let mut i = lane;
        while i < 6 * num {
            let (triangle, kind) = (self.members.load((i / 6) as usize), i % 6);
            let (axis, end) = (kind / 2, kind % 2);
            let at = (axis + 3 * end) as usize * MAX_REFERENCES + triangle as usize;
            let sides = SideMasks { below: self.below.load(at), above: self.above.load(at) };
            let choice =
                Choice::evaluate(encode(axis, triangle, end), self.words.load(at), sides, node.mask, &model);
            best = best.better(choice);
            i = computed(i + 32);
        }
        // All lanes must have read the members before the next node overwrites them.
        warp::sync_warp(warp::FULL_MASK);
        let key = f32_to_key(best.cost);
        let least = warp::warp_reduce(warp::FULL_MASK, key, WarpReductionOp::Min);
        let candidate = if key == least { best.candidate } else { u32::MAX };
        let first = warp::warp_reduce(warp::FULL_MASK, candidate, WarpReductionOp::Min);
        if f32_from_key(least) < leaf_cost(num) { first } else { LEAF }
    }

    /// Splits a node by a candidate; the result is uniform over the warp.
    #[inline(always)]
    unsafe fn split(&self, node: &SubtreeNode, candidate: u32) -> Split {
        let ((axis, triangle, end), lane) = (decode(candidate), warp::lane_id());
        let (lows, highs) = (axis as usize * MAX_REFERENCES, (axis as usize + 3) * MAX_REFERENCES);
        let plane = self.words.load(if end == 0 { lows } else { highs } + triangle as usize);
        let side = |i: u32| {
            let is_in = has(node.mask, i);
            let at = if is_in { i as usize } else { triangle as usize };
            let (low, high) = (self.words.load(lows + at), self.words.load(highs + at));
            (
                warp::warp_vote_ballot(warp::FULL_MASK, is_in && reaches_below(low, high, plane)),
                warp::warp_vote_ballot(warp::FULL_MASK, is_in && reaches_above(high, plane)),
            )
        };
        let (first, second) = (side(lane), side(lane + 32));
        let (below, above) = (join([first.0, second.0, 0, 0]), join([first.1, second.1, 0, 0]));
        Split { axis, plane, sides: SideMasks { below, above } }
    }

    /// Pushes a deferred node, with a word for its parent.
    #[inline(always)]
    unsafe fn push(&self, height: usize, node: &SubtreeNode, word: u32) {
        if warp::lane_id() == 0 {
            let put = |i: usize, word: u32| self.stack.store(i * STACK_ENTRIES + height, word);
            let [low, high, ..] = split(node.mask);
            put(0, low);
            put(1, high);
            let words = node.bounds.to_words();
            for i in 0..6 {
                put(2 + i, words[i].to_bits());
            }
            put(8, node.depth);
            put(9, word);
        }
        warp::sync_warp(warp::FULL_MASK);
    }

    #[inline(always)]
    unsafe fn pop(&self, height: usize) -> (SubtreeNode, u32) {
        let word = |i: usize| self.stack.load(i * STACK_ENTRIES + height);
        let number = |i: usize| f32::from_bits(word(i));
        let bounds = Aabb::from_words([number(2), number(3), number(4), number(5), number(6), number(7)]);
        let top = (SubtreeNode { mask: join([word(0), word(1), 0, 0]), bounds, depth: word(8) }, word(9));
        // All lanes must have read the entry before it is overwritten.
        warp::sync_warp(warp::FULL_MASK);
        top
    }
}

/// Callbacks for the nodes of a subtree, in preorder.
trait NodeVisitor {
    /// Returns the recorded decision about a node.
    unsafe fn recorded(&self, index: u32) -> Option<u32>;
    unsafe fn decided(&mut self, index: u32, decision: u32);
    /// Called for an inner node once the index of its child above is known.
    unsafe fn inner(&mut self, index: u32, axis: u32, plane: f32, above: u32);
    unsafe fn leaf(&mut self, index: u32, before: u32, mask: u64);
}

/// Traverses the subtree of a root in preorder, and returns its size. All lanes must call.
#[inline(always)]
unsafe fn traverse<V: NodeVisitor>(
    root: &Root<'_>,
    first: SubtreeNode,
    step_cost: f32,
    visitor: &mut V,
) -> SubtreeSize {
    let (mut node, mut height, mut size) = (first, 0, SubtreeSize { nodes: 0, references: 0 });
    loop {
        let decision = match visitor.recorded(size.nodes) {
            Some(decision) => decision,
            None => root.decide(&node, step_cost),
        };
        visitor.decided(size.nodes, decision);
        if decision == LEAF {
            visitor.leaf(size.nodes, size.references, node.mask);
            size = size.plus(SubtreeSize { nodes: 1, references: node.mask.count_ones() });
            if height == 0 {
                return size;
            }
            height -= 1;
            let (next, word) = root.pop(height);
            let (parent, axis) = (word >> 2, word & 3);
            visitor.inner(parent, axis, component(next.bounds.low, axis), size.nodes);
            node = next;
        } else {
            let split = root.split(&node, decision);
            let [below, above] = node.bounds.split_at(split.axis, split.plane);
            let depth = node.depth + 1;
            root.push(
                height,
                &SubtreeNode { mask: split.sides.above, bounds: above, depth },
                size.nodes << 2 | split.axis,
            );
            node = SubtreeNode { mask: split.sides.below, bounds: below, depth };
            size.nodes += 1;
            height += 1;
        }
    }
}

/// Records the first decisions.
struct RecordDecisions<'a> {
    decisions: SliceMut<'a, u16>,
    first: usize,
}

impl NodeVisitor for RecordDecisions<'_> {
    #[inline(always)]
    unsafe fn recorded(&self, _: u32) -> Option<u32> {
        None
    }
    #[inline(always)]
    unsafe fn decided(&mut self, index: u32, decision: u32) {
        if warp::lane_id() == 0 && (index as usize) < DECISIONS {
            self.decisions.store(self.first + index as usize, decision as u16);
        }
    }
    #[inline(always)]
    unsafe fn inner(&mut self, _: u32, _: u32, _: f32, _: u32) {}
    #[inline(always)]
    unsafe fn leaf(&mut self, _: u32, _: u32, _: u64) {}
}

/// Writes nodes and references.
struct WriteSubtree<'a> {
    decisions: Slice<'a, u16>,
    first: usize,
    ids: SharedSlice<'a, u32>,
    position: SubtreeSize,
    tree: TreeMut<'a>,
}

impl NodeVisitor for WriteSubtree<'_> {
    #[inline(always)]
    unsafe fn recorded(&self, index: u32) -> Option<u32> {
        let index = index as usize;
        (index < DECISIONS).then(|| self.decisions.load(self.first + index).into())
    }
    #[inline(always)]
    unsafe fn decided(&mut self, _: u32, _: u32) {}
    #[inline(always)]
    unsafe fn inner(&mut self, index: u32, axis: u32, plane: f32, above: u32) {
        if warp::lane_id() == 0 {
            let node = Node::inner(axis, plane, self.position.nodes + above);
            self.tree.store_node(self.position.nodes + index, node);
        }
    }
    #[inline(always)]
    unsafe fn leaf(&mut self, index: u32, before: u32, mask: u64) {
        let (lane, begin) = (warp::lane_id(), self.position.references + before);
        if lane == 0 {
            self.tree.store_node(self.position.nodes + index, Node::leaf(begin, mask.count_ones()));
        }
        let mut triangle = lane;
        while triangle < SMALL_TRIANGLES {
            if has(mask, triangle) {
                let rank = (mask & ((1 << triangle) - 1)).count_ones();
                let id = self.ids.load(triangle as usize);
                self.tree.references.store((begin + rank) as usize, id);
            }
            triangle += 32;
        }
    }
}

/// Returns the root node of the subtree.
#[inline(always)]
fn root_node(root: &SmallRoot) -> SubtreeNode {
    SubtreeNode { mask: u64::MAX >> (SMALL_TRIANGLES - root.len), bounds: root.bounds, depth: root.depth }
}

/// Returns the index of the warp's root, and the warp's shared memory.
#[inline(always)]
unsafe fn root_of_warp() -> (usize, *mut RootSmem) {
    let number = thread::index_1d_u64() as usize / 32;
    (number, (&raw mut (*shared_mem::<RootsSmem>()).warps).cast::<RootSmem>().add(number % WARPS))
}

/// Records the decisions about the nodes of each subtree, and writes the subtree sizes; one warp per root. Overflow leaves
/// only have a size.
#[kernel(family = "sah", block = 32 * WARPS, shared = RootsSmem, hot)]
pub unsafe fn sah_root_sizes(
    small_roots: SmallRoots<'_>,
    step_cost: f32,
    decisions: SliceMut<u16>,
    sizes: SliceMut<SubtreeSize>,
) {
    let (number, smem) = root_of_warp();
    // Uniform over the warp.
    if number >= small_roots.roots.len() {
        return;
    }
    let small = small_roots.roots.load(number);
    let mut size = SubtreeSize { nodes: 1, references: small.len };
    if small.len <= SMALL_TRIANGLES {
        let root = Root::new(smem, small.len);
        root.load(small.begin as usize, small_roots.list);
        root.compute_masks();
        let mut record = RecordDecisions { decisions, first: number * DECISIONS };
        size = traverse(&root, root_node(&small), step_cost, &mut record);
    }
    if warp::lane_id() == 0 {
        sizes.store(number, size);
    }
}

/// Writes the subtrees of small roots to the tree, given the decisions; one warp per root.
#[kernel(family = "sah", block = 32 * WARPS, shared = RootsSmem, hot)]
pub unsafe fn sah_root_write(
    small_roots: SmallRoots<'_>,
    step_cost: f32,
    decisions: Slice<u16>,
    sizes: Slice<SubtreeSize>,
    positions: Slice<SubtreeSize>,
    tree: TreeMut<'_>,
) {
    let (number, smem) = root_of_warp();
    // Uniform over the warp.
    if number >= small_roots.roots.len() {
        return;
    }
    let (small, position) = (small_roots.roots.load(number), positions.load(number));
    if small.len > SMALL_TRIANGLES {
        if warp::lane_id() == 0 {
            tree.store_node(position.nodes, Node::leaf(position.references, small.len));
        }
        return;
    }
    let root = Root::new(smem, small.len);
    root.load(small.begin as usize, small_roots.list);
    if sizes.load(number).nodes as usize > DECISIONS {
        root.compute_masks();
    }
    let first = number * DECISIONS;
    let mut write = WriteSubtree { decisions, first, ids: root.ids, position, tree };
    traverse(&root, root_node(&small), step_cost, &mut write);
}
