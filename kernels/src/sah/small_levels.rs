//! Subtrees of small roots, level by level with masks in device memory (Zhou et al. 2008, section 4.2). The alternative,
//! [`small_warps`](super::small_warps), is faster.
//!
//! All nodes are on one list, roots first, and the children of a node are adjacent. Their order is nondeterministic; the
//! tree is written in preorder and does not depend on it.

use super::aabb::Aabb;
use super::candidates::{Choice, NUM_CANDIDATES, SideMasks, decode};
use super::cost::{SplitCost, leaf_cost};
use super::large_nodes::SMALL_TRIANGLES;
use super::node::{MAX_DEPTH, Node};
use super::preorder::SubtreeSize;
use super::small_roots::SmallRoot;
use crate::plain::plain;
use crate::policy::{PER_ITEM_THREADS, SAH_CANDIDATE_THREADS};
use crate::thread::words::{Bits128, computed, join, split};
use crate::warp::shuffle::shuffle_xor;
use cuda_std::float::{f32_from_key, f32_to_key};
use cuda_std::prelude::*;

/// A small root, or a node below one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SmallNode {
    /// Its references, one bit each in the order of the root's list.
    pub mask: u64,
    /// Bounding box.
    pub bounds: Aabb,
    /// Depth below the tree's root.
    pub depth: u32,
    /// Index of its small root.
    pub root: u32,
}

plain! { SmallNode { u64, Aabb, u32, u32 } }

/// Candidates in separate arrays for planes and masks, of 4 and 16 bytes.
pub const SEPARATE_ARRAYS: usize = 2;
/// Candidates as records of 20 bytes.
pub const RECORDS: usize = 1;

/// Words of a record.
const RECORD_WORDS: usize = 5;

/// The candidates of small roots, with the masks of both sides.
#[derive(Clone, Copy)]
struct Candidates<'a, const ARRAYS: usize> {
    planes: SliceMut<'a, f32>,
    sides: SliceMut<'a, Bits128>,
    records: SliceMut<'a, u32>,
}

impl<const ARRAYS: usize> Candidates<'_, ARRAYS> {
    #[inline(always)]
    unsafe fn store(&self, i: usize, plane: f32, sides: SideMasks) {
        if ARRAYS == SEPARATE_ARRAYS {
            self.planes.store(i, plane);
            self.sides.store(i, Bits128(sides.below, sides.above));
        } else {
            let ([a, b, ..], [c, d, ..]) = (split(sides.below), split(sides.above));
            let at = i * RECORD_WORDS;
            self.records.store(at, plane.to_bits());
            self.records.store(at + 1, a);
            self.records.store(at + 2, b);
            self.records.store(at + 3, c);
            self.records.store(at + 4, d);
        }
    }

    #[inline(always)]
    unsafe fn plane(&self, i: usize) -> f32 {
        if ARRAYS == SEPARATE_ARRAYS {
            self.planes.load(i)
        } else {
            f32::from_bits(self.records.load(i * RECORD_WORDS))
        }
    }

    #[inline(always)]
    unsafe fn sides(&self, i: usize) -> SideMasks {
        if ARRAYS == SEPARATE_ARRAYS {
            let Bits128(below, above) = self.sides.load(i);
            return SideMasks { below, above };
        }
        let word = |k: usize| self.records.load(i * RECORD_WORDS + k);
        SideMasks { below: join([word(1), word(2), 0, 0]), above: join([word(3), word(4), 0, 0]) }
    }
}

/// The bounding boxes of a root's references.
#[repr(C)]
pub struct BoxSmem {
    words: [[f32; SMALL_TRIANGLES as usize]; 6],
}

/// Writes the candidates of small roots from `first_root` on; one block per root. Candidates beyond the root's references
/// have a NaN as plane.
#[kernel(family = "sah", block = SAH_CANDIDATE_THREADS, shared = BoxSmem)]
#[instances(ARRAYS = [1, 2])]
pub unsafe fn sah_candidates<const ARRAYS: usize>(
    roots: Slice<SmallRoot>,
    first_root: u32,
    kept: Slice<u32>,
    boxes: Slice<Aabb>,
    are_clipped: u32,
    planes: SliceMut<f32>,
    sides: SliceMut<Bits128>,
    records: SliceMut<u32>,
) {
    let (block, thread) = (thread::block_idx_x(), thread::thread_idx_x());
    let root = roots.load((first_root + block) as usize);
    // Uniform over the block.
    if root.len > SMALL_TRIANGLES {
        return;
    }
    let words = shared_field!(shared_mem::<BoxSmem>(), words);
    if thread < root.len {
        let place = (root.begin + thread) as usize;
        let bounds = boxes.load(if are_clipped != 0 { place } else { kept.load(place) as usize }).to_words();
        let mut i = 0;
        while i < 6 {
            words.store(i * SMALL_TRIANGLES as usize + thread as usize, bounds[i]);
            i += 1;
        }
    }
    thread::sync_threads();
    let candidates = Candidates::<ARRAYS> { planes, sides, records };
    let mut candidate = thread;
    while candidate < NUM_CANDIDATES {
        let (axis, triangle, end) = decode(candidate);
        let low_row = (axis * SMALL_TRIANGLES) as usize;
        let high_row = low_row + 3 * SMALL_TRIANGLES as usize;
        let (mut plane, mut both) = (f32::NAN, SideMasks::NONE);
        if triangle < root.len {
            plane = words.load(triangle as usize + if end == 0 { low_row } else { high_row });
            let mut i = 0;
            while i < root.len {
                both.add(i, words.load(low_row + i as usize), words.load(high_row + i as usize), plane);
                i += 1;
            }
        }
        candidates.store((block * NUM_CANDIDATES + candidate) as usize, plane, both);
        candidate += SAH_CANDIDATE_THREADS as u32;
    }
}

/// Writes small roots as nodes; one thread per root. The mask of an overflow leaf is empty.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_small_nodes(roots: Slice<SmallRoot>, nodes: SliceMut<SmallNode>) {
    let i = thread::index_1d_u64() as usize;
    if i < roots.len() {
        let root = roots.load(i);
        let mask = if root.len > SMALL_TRIANGLES { 0 } else { u64::MAX >> (SMALL_TRIANGLES - root.len) };
        // By words, which keeps the box out of local memory.
        let bounds = Aabb::from_words(root.bounds.to_words());
        nodes.store(i, SmallNode { mask, bounds, depth: root.depth, root: i as u32 });
    }
}

/// Splits the small nodes from `begin` to `end`, whose roots start at `first_root`; one warp per node. Children are appended
/// to all nodes, whose number is `num_nodes`. The split of a node is in the tree's node format, with the index of the first
/// child in place of the child above.
#[kernel(family = "sah", block = PER_ITEM_THREADS, hot)]
#[instances(ARRAYS = [1, 2])]
pub unsafe fn sah_small_splits<const ARRAYS: usize>(
    begin: u32,
    end: u32,
    first_root: u32,
    step_cost: f32,
    planes: SliceMut<f32>,
    sides: SliceMut<Bits128>,
    records: SliceMut<u32>,
    nodes: SliceMut<SmallNode>,
    splits: SliceMut<u64>,
    num_nodes: SliceMut<u32>,
) {
    let number = (thread::index_1d_u64() / 32) as usize + begin as usize;
    // Uniform over the warp.
    if number >= end as usize {
        return;
    }
    let node = nodes.load(number);
    let candidates = Candidates::<ARRAYS> { planes, sides, records };
    let first = ((node.root - first_root) * NUM_CANDIDATES) as usize;
    let (model, num) = (SplitCost::new(node.bounds, step_cost), node.mask.count_ones());
    let mut best = Choice::NONE;
    // A split costs at least a traversal step.
    if leaf_cost(num) > step_cost && node.depth < MAX_DEPTH {
        let mut candidate = warp::lane_id();
        while candidate < NUM_CANDIDATES {
            let plane = candidates.plane(first + candidate as usize);
            if model.is_inside(decode(candidate).0, plane) && node.mask >> decode(candidate).1 & 1 == 1 {
                let sides = candidates.sides(first + candidate as usize);
                best = best.better(Choice::evaluate(candidate, plane, sides, node.mask, &model));
            }
            candidate = computed(candidate + 32);
        }
    }
    let mut bit = 1;
    while bit < 32 {
        let other = shuffle_xor(u64::from(f32_to_key(best.cost)) << 32 | u64::from(best.candidate), bit);
        best = best.better(Choice { cost: f32_from_key((other >> 32) as u32), candidate: other as u32 });
        bit = computed(bit * 2);
    }
    if warp::lane_id() != 0 {
        return;
    }
    let is_leaf = best.cost >= leaf_cost(num);
    if is_leaf {
        splits.store(number, Node::leaf(0, num).0);
        return;
    }
    let children = num_nodes.atomic_add(0, 2, Ordering::Relaxed, Scope::Device);
    let axis = decode(best.candidate).0;
    let (plane, sides) = (
        candidates.plane(first + best.candidate as usize),
        candidates.sides(first + best.candidate as usize).within(node.mask),
    );
    let boxes = node.bounds.split_at(axis, plane);
    let depth = node.depth + 1;
    nodes.store(children as usize, SmallNode { mask: sides.below, bounds: boxes[0], depth, ..node });
    nodes.store(children as usize + 1, SmallNode { mask: sides.above, bounds: boxes[1], depth, ..node });
    splits.store(number, Node::inner(axis, plane, children).0);
}

/// Writes the subtree sizes of the nodes from `begin` to `end`, given the sizes of their children; one thread per node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_small_sizes(
    begin: u32,
    end: u32,
    roots: Slice<SmallRoot>,
    splits: Slice<u64>,
    sizes: SliceMut<SubtreeSize>,
) {
    let number = thread::index_1d_u64() as usize + begin as usize;
    if number >= end as usize {
        return;
    }
    let split = Node(splits.load(number));
    let size = if !split.is_leaf() {
        let children = split.above() as usize;
        SubtreeSize { nodes: 1, references: 0 }.plus(sizes.load(children)).plus(sizes.load(children + 1))
    } else {
        // Only a root can be an overflow leaf.
        let is_overflow = number < roots.len() && roots.load(number).len > SMALL_TRIANGLES;
        SubtreeSize { nodes: 1, references: if is_overflow { roots.load(number).len } else { split.len() } }
    };
    sizes.store(number, size);
}

/// Writes the nodes from `begin` to `end` to the tree, and the positions of their children; one thread per node. References
/// of overflow leaves are written by `sah_long_leaves`.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_small_write(
    begin: u32,
    end: u32,
    roots: Slice<SmallRoot>,
    kept: Slice<u32>,
    small: Slice<SmallNode>,
    splits: Slice<u64>,
    sizes: Slice<SubtreeSize>,
    places: SliceMut<SubtreeSize>,
    nodes: SliceMut<u64>,
    listed: SliceMut<u32>,
) {
    let number = thread::index_1d_u64() as usize + begin as usize;
    if number >= end as usize {
        return;
    }
    let (split, place) = (Node(splits.load(number)), places.load(number));
    if !split.is_leaf() {
        let children = split.above() as usize;
        let below = place.plus(SubtreeSize { nodes: 1, references: 0 });
        let above = below.plus(sizes.load(children));
        places.store(children, below);
        places.store(children + 1, above);
        nodes.store(place.nodes as usize, Node::inner(split.axis(), split.plane(), above.nodes).0);
        return;
    }
    nodes.store(place.nodes as usize, Node::leaf(place.references, sizes.load(number).references).0);
    let node = small.load(number);
    let first = roots.load(node.root as usize).begin;
    let (mut remaining, mut slot) = (node.mask, place.references as usize);
    while remaining != 0 {
        listed.store(slot, kept.load((first + remaining.trailing_zeros()) as usize));
        remaining &= remaining - 1;
        slot += 1;
    }
}
