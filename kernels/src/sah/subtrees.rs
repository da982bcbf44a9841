//! Small roots and what is below them, level by level (Zhou et al. 2008, section 4.2).
//!
//! Nodes are on one list, roots first: the children of a node follow each other, but where is a matter of timing. The tree that is made of them
//! is not: they are looked at in preorder.

use super::aabb::Aabb;
use super::large::SMALL_TRIANGLES;
use super::levels::SmallRoot;
use super::model::{Splits, leaf_cost};
use super::node::{MAX_DEPTH, Node};
use super::small::{Choice, NUM_CANDIDATES, Sides, origin};
use crate::plain::plain;
use crate::policy::{PER_ITEM_THREADS, SAH_CANDIDATE_THREADS};
use crate::thread::words::{Bits128, computed, join, split};
use crate::warp::shuffle::shuffle_xor;
use cuda_std::float::{f32_from_key, f32_to_key};
use cuda_std::prelude::*;

/// A node below a small root, or one itself.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Small {
    /// Its triangles, a bit each in the order of the root's list.
    pub mask: u64,
    /// Its box.
    pub bounds: Aabb,
    /// Levels above it.
    pub depth: u32,
    /// Its root.
    pub root: u32,
}

plain! { Small { u64, Aabb, u32, u32 } }

/// Where planes and masks of candidates are: `APART` in an array each, of 4 and 16 bytes …
pub const APART: usize = 2;
/// … or as records of 20 bytes.
pub const TOGETHER: usize = 1;

/// Words of a record.
const RECORD_WORDS: usize = 5;

/// The candidates of small roots, with the triangles on both sides of their planes.
#[derive(Clone, Copy)]
struct Candidates<'a, const ARRAYS: usize> {
    planes: SliceMut<'a, f32>,
    sides: SliceMut<'a, Bits128>,
    records: SliceMut<'a, u32>,
}

impl<const ARRAYS: usize> Candidates<'_, ARRAYS> {
    #[inline(always)]
    unsafe fn store(&self, i: usize, plane: f32, sides: Sides) {
        if ARRAYS == APART {
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
        if ARRAYS == APART {
            self.planes.load(i)
        } else {
            f32::from_bits(self.records.load(i * RECORD_WORDS))
        }
    }

    #[inline(always)]
    unsafe fn sides(&self, i: usize) -> Sides {
        if ARRAYS == APART {
            let Bits128(below, above) = self.sides.load(i);
            return Sides { below, above };
        }
        let word = |k: usize| self.records.load(i * RECORD_WORDS + k);
        Sides { below: join([word(1), word(2), 0, 0]), above: join([word(3), word(4), 0, 0]) }
    }
}

/// The boxes of a root's triangles.
#[repr(C)]
pub struct BoxSmem {
    words: [[f32; SMALL_TRIANGLES as usize]; 6],
}

/// Writes the candidates of small roots from `first_root` on; a block a root. Those of triangles that are not there have a plane that is no number.
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
    // The whole block.
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
        let (axis, triangle, end) = origin(candidate);
        let of_axis = (axis * SMALL_TRIANGLES) as usize;
        let of_high = of_axis + 3 * SMALL_TRIANGLES as usize;
        let (mut plane, mut both) = (f32::NAN, Sides::NONE);
        if triangle < root.len {
            plane = words.load(triangle as usize + if end == 0 { of_axis } else { of_high });
            let mut i = 0;
            while i < root.len {
                both.add(i, words.load(of_axis + i as usize), words.load(of_high + i as usize), plane);
                i += 1;
            }
        }
        candidates.store((block * NUM_CANDIDATES + candidate) as usize, plane, both);
        candidate += SAH_CANDIDATE_THREADS as u32;
    }
}

/// Writes small roots as nodes; a thread a root. A leaf that has no bits for its triangles has none set.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_small_nodes(roots: Slice<SmallRoot>, nodes: SliceMut<Small>) {
    let i = thread::index_1d_u64() as usize;
    if i < roots.len() {
        let root = roots.load(i);
        let mask = if root.len > SMALL_TRIANGLES { 0 } else { u64::MAX >> (SMALL_TRIANGLES - root.len) };
        // By words, so that the box is never in local memory.
        let bounds = Aabb::from_words(root.bounds.to_words());
        nodes.store(i, Small { mask, bounds, depth: root.depth, root: i as u32 });
    }
}

/// Splits nodes where it costs least, or makes leaves of them; a warp a node. The nodes are those from `begin` to `end`, of roots from `first_root` on;
/// children go behind all nodes, of which `num_nodes` is the number. What becomes of a node is written as it is in the tree, with the
/// number of the first child in place of the child above.
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
    nodes: SliceMut<Small>,
    splits: SliceMut<u64>,
    num_nodes: SliceMut<u32>,
) {
    let number = (thread::index_1d_u64() / 32) as usize + begin as usize;
    // The whole warp.
    if number >= end as usize {
        return;
    }
    let node = nodes.load(number);
    let candidates = Candidates::<ARRAYS> { planes, sides, records };
    let first = ((node.root - first_root) * NUM_CANDIDATES) as usize;
    let (model, num) = (Splits::new(node.bounds, step_cost), node.mask.count_ones());
    let mut best = Choice::NONE;
    // A split costs a step at least.
    if leaf_cost(num) > step_cost && node.depth < MAX_DEPTH {
        let mut candidate = warp::lane_id();
        while candidate < NUM_CANDIDATES {
            let plane = candidates.plane(first + candidate as usize);
            if model.may_be(origin(candidate).0, plane) && node.mask >> origin(candidate).1 & 1 == 1 {
                let sides = candidates.sides(first + candidate as usize);
                best = best.or(Choice::of(candidate, plane, sides, node.mask, &model));
            }
            candidate = computed(candidate + 32);
        }
    }
    let mut bit = 1;
    while bit < 32 {
        let other = shuffle_xor(u64::from(f32_to_key(best.cost)) << 32 | u64::from(best.candidate), bit);
        best = best.or(Choice { cost: f32_from_key((other >> 32) as u32), candidate: other as u32 });
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
    let axis = origin(best.candidate).0;
    let (plane, sides) = (
        candidates.plane(first + best.candidate as usize),
        candidates.sides(first + best.candidate as usize).of(node.mask),
    );
    let boxes = node.bounds.halves(axis, plane);
    let depth = node.depth + 1;
    nodes.store(children as usize, Small { mask: sides.below, bounds: boxes[0], depth, ..node });
    nodes.store(children as usize + 1, Small { mask: sides.above, bounds: boxes[1], depth, ..node });
    splits.store(number, Node::inner(axis, plane, children).0);
}

/// Numbers of nodes and of triangles in leaves.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Nodes.
    pub nodes: u32,
    /// Triangles in leaves.
    pub listed: u32,
}

plain! { Size { u32, u32 } }

impl Size {
    /// Both together, or the greatest number: no tree is as large.
    #[inline(always)]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            nodes: self.nodes.saturating_add(other.nodes),
            listed: self.listed.saturating_add(other.listed),
        }
    }
}

/// Writes the sizes of the subtrees of nodes from `begin` to `end`, given those of the nodes behind; a thread a node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_small_sizes(
    begin: u32,
    end: u32,
    roots: Slice<SmallRoot>,
    splits: Slice<u64>,
    sizes: SliceMut<Size>,
) {
    let number = thread::index_1d_u64() as usize + begin as usize;
    if number >= end as usize {
        return;
    }
    let split = Node(splits.load(number));
    let own = if !split.is_leaf() {
        let children = split.above() as usize;
        Size { nodes: 1, listed: 0 }.plus(sizes.load(children)).plus(sizes.load(children + 1))
    } else {
        // Only a root has triangles without bits.
        let long = number < roots.len() && roots.load(number).len > SMALL_TRIANGLES;
        Size { nodes: 1, listed: if long { roots.load(number).len } else { split.len() } }
    };
    sizes.store(number, own);
}

/// Writes nodes from `begin` to `end` to where they are in the tree, and tells their children where these are; a thread a node. Triangles of leaves
/// that have no bits for them are left out.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_small_write(
    begin: u32,
    end: u32,
    roots: Slice<SmallRoot>,
    kept: Slice<u32>,
    small: Slice<Small>,
    splits: Slice<u64>,
    sizes: Slice<Size>,
    places: SliceMut<Size>,
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
        let below = place.plus(Size { nodes: 1, listed: 0 });
        let above = below.plus(sizes.load(children));
        places.store(children, below);
        places.store(children + 1, above);
        nodes.store(place.nodes as usize, Node::inner(split.axis(), split.plane(), above.nodes).0);
        return;
    }
    nodes.store(place.nodes as usize, Node::leaf(place.listed, sizes.load(number).listed).0);
    let own = small.load(number);
    let first = roots.load(own.root as usize).begin;
    let (mut left, mut to) = (own.mask, place.listed as usize);
    while left != 0 {
        listed.store(to, kept.load((first + left.trailing_zeros()) as usize));
        left &= left - 1;
        to += 1;
    }
}

/// Writes the triangles of leaves that have no bits for them; a block a small root.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_long_leaves(
    roots: Slice<SmallRoot>,
    kept: Slice<u32>,
    places: Slice<Size>,
    listed: SliceMut<u32>,
) {
    let number = thread::block_idx_x() as usize;
    let (root, to) = (roots.load(number), places.load(number).listed);
    let mut i = thread::thread_idx_x();
    while root.len > SMALL_TRIANGLES && i < root.len {
        listed.store((to + i) as usize, kept.load((root.begin + i) as usize));
        i += PER_ITEM_THREADS as u32;
    }
}

/// Writes where the triangles of each small root begin, and how many there are; a thread a number.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_small_offsets(roots: Slice<SmallRoot>, num_kept: u32, offsets: SliceMut<u64>) {
    let i = thread::index_1d_u64() as usize;
    if i < offsets.len() {
        offsets.store(i, if i < roots.len() { roots.load(i).begin } else { num_kept }.into());
    }
}

/// Moves boxes to where their triangles are now; a thread a triangle.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_move_boxes(from: Slice<u32>, boxes: Slice<Aabb>, to: SliceMut<Aabb>) {
    let i = thread::index_1d_u64() as usize;
    if i < to.len() {
        to.store(i, boxes.load(from.load(i) as usize));
    }
}
