//! Subtrees of small roots, level by level with masks in device memory (Zhou et al. 2008, section 4.2). The default,
//! [`small_warps`](super::small_warps), is faster.
//!
//! All nodes are on one list, roots first, and the children of a node are adjacent. Their order is nondeterministic; the
//! tree is written in preorder and does not depend on it.

use super::candidates::{Choice, NUM_CANDIDATES, SideMasks, decode};
use super::cost::{SplitCost, leaf_cost};
use super::large_nodes::SMALL_TRIANGLES;
use super::node::{MAX_DEPTH, Node};
use super::preorder::{SubtreeSize, TreeMut};
use super::small_roots::{SmallRoot, SmallRoots};
use crate::plain::plain;
use crate::policy::{PER_ITEM_THREADS, SAH_CANDIDATE_THREADS};
use crate::rays::aabb::Aabb;
use crate::thread::items::{own_item, strided};
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

/// Candidates as records of 20 bytes.
pub const RECORDS: usize = 1;
/// Candidates in separate arrays for planes and masks, of 4 and 16 bytes.
pub const SEPARATE_ARRAYS: usize = 2;
/// Candidates in separate arrays, from which masks are loaded by the read-only path, which textures had.
pub const READ_ONLY_MASKS: usize = 3;

/// Words of a record.
const RECORD_WORDS: usize = 5;

/// The candidates of small roots, with the masks of both sides: in [separate arrays](SEPARATE_ARRAYS) or [records](RECORDS).
#[derive(Clone, Copy, KernelArgs)]
pub struct Candidates<'a> {
    /// Planes.
    pub planes: SliceMut<'a, f32>,
    /// Masks below and above the plane.
    pub sides: SliceMut<'a, crate::thread::words::Bits128>,
    /// Records of a plane and both masks.
    pub records: SliceMut<'a, u32>,
}

impl Candidates<'_> {
    #[inline(always)]
    unsafe fn store<const LAYOUT: usize>(&self, i: usize, plane: f32, sides: SideMasks) {
        if LAYOUT != RECORDS {
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
    unsafe fn plane<const LAYOUT: usize>(&self, i: usize) -> f32 {
        if LAYOUT != RECORDS {
            self.planes.load(i)
        } else {
            f32::from_bits(self.records.load(i * RECORD_WORDS))
        }
    }

    #[inline(always)]
    unsafe fn sides<const LAYOUT: usize>(&self, i: usize) -> SideMasks {
        if LAYOUT != RECORDS {
            let Bits128(below, above) = if LAYOUT == READ_ONLY_MASKS {
                self.sides.read_only().load_readonly(i)
            } else {
                self.sides.load(i)
            };
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
#[kernel(family = "research-sah", block = SAH_CANDIDATE_THREADS, shared = BoxSmem)]
#[instances(LAYOUT = [1, 2])]
pub unsafe fn sah_candidates<const LAYOUT: usize>(
    small: SmallRoots<'_>,
    first_root: u32,
    candidates: Candidates<'_>,
) {
    let (block, thread) = (thread::block_idx_x(), thread::thread_idx_x());
    let root = small.roots.load((first_root + block) as usize);
    // Uniform over the block.
    if root.len > SMALL_TRIANGLES {
        return;
    }
    let words = shared_field!(shared_mem::<BoxSmem>(), words);
    if thread < root.len {
        let at = (root.begin + thread) as usize;
        let bounds = small.list.bounds(at, small.list.triangles.load(at)).to_words();
        let mut i = 0;
        while i < 6 {
            words.store(i * SMALL_TRIANGLES as usize + thread as usize, bounds[i]);
            i += 1;
        }
    }
    thread::sync_threads();
    for candidate in strided(thread, NUM_CANDIDATES, SAH_CANDIDATE_THREADS as u32) {
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
        candidates.store::<LAYOUT>((block * NUM_CANDIDATES + candidate) as usize, plane, both);
    }
}

/// Writes small roots as nodes; one thread per root. The mask of an overflow leaf is empty.
#[kernel(family = "research-sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_small_nodes(roots: Slice<SmallRoot>, nodes: SliceMut<SmallNode>) {
    let Some(i) = own_item(roots.len()) else { return };
    let root = roots.load(i);
    let mask = if root.len > SMALL_TRIANGLES { 0 } else { u64::MAX >> (SMALL_TRIANGLES - root.len) };
    // By words, which keeps the box out of local memory.
    let bounds = Aabb::from_words(root.bounds.to_words());
    nodes.store(i, SmallNode { mask, bounds, depth: root.depth, root: i as u32 });
}

/// All small nodes.
#[derive(Clone, Copy, KernelArgs)]
pub struct SmallNodesMut<'a> {
    /// The nodes.
    pub nodes: SliceMut<'a, crate::sah::small_levels::SmallNode>,
    /// Their splits, in the tree's node format, with the index of the first child in place of the child above.
    pub splits: SliceMut<'a, u64>,
    /// Number of nodes.
    pub num_nodes: SliceMut<'a, u32>,
}

/// Splits the small nodes from `begin` to `end`, whose roots start at `first_root`; one warp per node. Children are appended
/// to all nodes.
#[kernel(family = "research-sah", block = PER_ITEM_THREADS, hot)]
#[instances(LAYOUT = [1, 2, 3])]
pub unsafe fn sah_small_splits<const LAYOUT: usize>(
    begin: u32,
    end: u32,
    first_root: u32,
    step_cost: f32,
    candidates: Candidates<'_>,
    all: SmallNodesMut<'_>,
) {
    let number = (thread::index_1d_u64() / 32) as usize + begin as usize;
    // Uniform over the warp.
    if number >= end as usize {
        return;
    }
    let node = all.nodes.load(number);
    let first = ((node.root - first_root) * NUM_CANDIDATES) as usize;
    let (model, num) = (SplitCost::new(node.bounds, step_cost), node.mask.count_ones());
    let mut best = Choice::NONE;
    // A split costs at least a traversal step.
    if leaf_cost(num) > step_cost && node.depth < MAX_DEPTH {
        let mut candidate = warp::lane_id();
        while candidate < NUM_CANDIDATES {
            let plane = candidates.plane::<LAYOUT>(first + candidate as usize);
            if model.is_inside(decode(candidate).0, plane) && node.mask >> decode(candidate).1 & 1 == 1 {
                let sides = candidates.sides::<LAYOUT>(first + candidate as usize);
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
        all.splits.store(number, Node::leaf(0, num).0);
        return;
    }
    let children = all.num_nodes.atomic_add(0, 2, Ordering::Relaxed, Scope::Device);
    let axis = decode(best.candidate).0;
    let (plane, sides) = (
        candidates.plane::<LAYOUT>(first + best.candidate as usize),
        candidates.sides::<LAYOUT>(first + best.candidate as usize).within(node.mask),
    );
    let boxes = node.bounds.split_at(axis, plane);
    let depth = node.depth + 1;
    all.nodes.store(children as usize, SmallNode { mask: sides.below, bounds: boxes[0], depth, ..node });
    all.nodes.store(children as usize + 1, SmallNode { mask: sides.above, bounds: boxes[1], depth, ..node });
    all.splits.store(number, Node::inner(axis, plane, children).0);
}

/// Writes the subtree sizes of the nodes from `begin` to `end`, given the sizes of their children; one thread per node.
#[kernel(family = "research-sah", block = PER_ITEM_THREADS)]
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
#[kernel(family = "research-sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_small_write(
    begin: u32,
    end: u32,
    small: SmallRoots<'_>,
    nodes: Slice<SmallNode>,
    splits: Slice<u64>,
    sizes: Slice<SubtreeSize>,
    positions: SliceMut<SubtreeSize>,
    tree: TreeMut<'_>,
) {
    let number = thread::index_1d_u64() as usize + begin as usize;
    if number >= end as usize {
        return;
    }
    let (split, position) = (Node(splits.load(number)), positions.load(number));
    if !split.is_leaf() {
        let children = split.above() as usize;
        let below = position.plus(SubtreeSize { nodes: 1, references: 0 });
        let above = below.plus(sizes.load(children));
        positions.store(children, below);
        positions.store(children + 1, above);
        tree.store_node(position.nodes, Node::inner(split.axis(), split.plane(), above.nodes));
        return;
    }
    tree.store_node(position.nodes, Node::leaf(position.references, sizes.load(number).references));
    let node = nodes.load(number);
    let first = small.roots.load(node.root as usize).begin;
    let (mut remaining, mut slot) = (node.mask, position.references as usize);
    while remaining != 0 {
        let triangle = small.list.triangles.load((first + remaining.trailing_zeros()) as usize);
        tree.references.store(slot, triangle);
        remaining &= remaining - 1;
        slot += 1;
    }
}
