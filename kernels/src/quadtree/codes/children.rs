//! The children of nodes that split.

use super::super::node::Node;
use crate::policy::{PER_ITEM_THREADS, QUADTREE_WARP_POINTS};
use crate::thread::radix_key::RadixKey;
use crate::thread::search::partition_point;
use crate::thread::words::{Bits128, computed};
use cuda_std::prelude::*;

/// The nodes of a round that split: the roots of the round first, level by level.
#[derive(Clone, Copy, KernelArgs)]
pub struct Splits<'a> {
    /// The positions at which they begin.
    pub positions: Slice<'a, u32>,
    /// For each level and warp, the number of positions that precede the positions of the warp.
    pub counts: Slice<'a, u32>,
    /// Where each level begins among the positions.
    pub rows: Slice<'a, u32>,
}

/// The nodes of the tree.
#[derive(Clone, Copy, KernelArgs)]
pub struct NodesMut<'a> {
    /// The nodes.
    pub nodes: SliceMut<'a, Bits128>,
    /// The low corner of each node's cell, in units.
    pub cells: SliceMut<'a, u32>,
}

/// The roots of the next round; empty if there is none.
#[derive(Clone, Copy, KernelArgs)]
pub struct NextRoots<'a> {
    /// Their node numbers.
    pub nodes: SliceMut<'a, u32>,
    /// The first point of each in tree order.
    pub starts: SliceMut<'a, u32>,
    /// The number of points of each.
    pub lens: SliceMut<'a, u64>,
}

/// Writes the children of the nodes of a round that split. Nodes on the level below the round become the roots of the next. A warp takes
/// 32 nodes.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(K = [u32, u64], D = [2, 3])]
pub unsafe fn quadtree_children<K: RadixKey, const D: usize>(
    round: SplitRound<'_, K, D>,
    to: NodesMut<'_>,
    next: NextRoots<'_>,
) {
    round.write(thread::index_1d_u64() as usize, to, next);
}

/// A round whose splits are known.
#[derive(Clone, Copy, KernelArgs)]
pub struct SplitRound<'a, K, const D: usize> {
    /// The sorted keys.
    pub keys: crate::quadtree::codes::splits::Keys<'a, K>,
    /// The nodes that split.
    pub splits: crate::quadtree::codes::children::Splits<'a>,
    /// The roots of the round.
    pub roots: crate::quadtree::codes::Roots<'a>,
    /// The level of the roots.
    pub level: u32,
    /// The root of the tree has 2^`frame_levels` units on a side.
    pub frame_levels: u32,
    /// The number of the first child.
    pub first_node: u32,
}

/// A node that splits.
struct Split {
    /// Its level below the roots of the round.
    level: u32,
    /// The index of its root.
    root: u32,
    /// Its node number.
    node: u32,
    /// Its range of positions.
    begin: usize,
    end: usize,
    /// The leading digits that its keys share.
    key: u64,
}

impl Split {
    /// Returns the node of another lane. All lanes call.
    #[inline(always)]
    unsafe fn shuffle(&self, lane: u32) -> Self {
        let Self { level, root, node, begin, end, key } = *self;
        let [level, root, node, begin, end] = [level, root, node, begin as u32, end as u32]
            .map(|word| warp::shuffle_idx(warp::FULL_MASK, word, lane));
        let key = warp::shuffle_idx(warp::FULL_MASK, key, lane);
        Self { level, root, node, begin: begin as usize, end: end as usize, key }
    }
}

impl<K: RadixKey, const D: usize> SplitRound<'_, K, D> {
    /// Writes node `k` of the list, one per lane, then the children of all nodes of the warp, one child per lane at a time. All lanes
    /// call.
    #[inline(always)]
    unsafe fn write(&self, k: usize, to: NodesMut<'_>, next: NextRoots<'_>) {
        let (lane, num_levels) = (warp::lane_id(), self.keys.num_levels);
        // Nodes on the level below the round, and lanes without a node, have no children to write.
        let mut lane_split = Split { level: num_levels, root: 0, node: 0, begin: 0, end: 0, key: 0 };
        if k < self.splits.positions.len() {
            lane_split = self.split(k);
            self.write_node(k, &lane_split, to, next);
        }
        let mut turn = 0;
        while turn < 1 << D {
            let source = (turn << (5 - D)) + (lane >> D);
            let (split, k, child) =
                (lane_split.shuffle(source), k - lane as usize + source as usize, lane & ((1 << D) - 1));
            let has_children = split.level < num_levels;
            let end = if has_children { self.child_end(&split, child) } else { 0 };
            let before = warp::shuffle_idx(warp::FULL_MASK, end as u32, lane.wrapping_sub(1) & 31) as usize;
            if has_children {
                let begin = if child == 0 { split.begin } else { before };
                let number = self.first_child(k) + child;
                to.nodes.store(number as usize, self.child(&split, begin, end).to_bits());
                self.write_cell(number, &split, child, to.cells);
            }
            turn = computed(turn + 1);
        }
    }

    /// Writes a node on the level below the round to the roots of the next round, or the first child of a root to its node.
    #[inline(always)]
    unsafe fn write_node(&self, k: usize, split: &Split, to: NodesMut<'_>, next: NextRoots<'_>) {
        if split.level == self.keys.num_levels {
            let i = k - self.splits.rows.load(split.level as usize) as usize;
            if i < next.nodes.len() {
                next.nodes.store(i, split.node);
                next.starts.store(i, self.roots.tree_index(split.root as usize, split.begin));
                next.lens.store(i, (split.end - split.begin) as u64);
            }
        } else if split.level == 0 {
            let node = Node::from_bits(to.nodes.load(split.node as usize));
            let first_child = self.first_child(k);
            to.nodes.store(split.node as usize, Node { first_child, ..node }.to_bits());
        }
    }

    /// Returns node `k` of the list.
    #[inline(always)]
    unsafe fn split(&self, k: usize) -> Split {
        let ends = |level: usize| self.splits.rows.load(level + 1) as usize;
        let level = partition_point(0, self.keys.num_levels as usize, |level| ends(level) <= k) as u32;
        let begin = self.splits.positions.load(k) as usize;
        let key = self.keys.key(begin);
        let root = (key >> (D as u32 * self.keys.num_levels)) as u32;
        let shift = D as u32 * (self.keys.num_levels - level);
        let node = if level == 0 {
            self.roots.nodes.load(root as usize)
        } else {
            // The parent is the last node on the level above that begins no later.
            self.first_child(self.num_before(level - 1, begin + 1) - 1) + (key >> shift) as u32 % (1 << D)
        };
        let end = self.end(begin, key >> shift, shift);
        Split { level, root, node, begin, end, key: key >> shift }
    }

    /// Returns the number of nodes on the list before the first one on `level` that begins at position `i` or later. `i` is the
    /// position of a key.
    #[inline(always)]
    unsafe fn num_before(&self, level: u32, i: usize) -> usize {
        let warp = level as usize * self.keys.num_warps() + i / QUADTREE_WARP_POINTS;
        let [first, end] = [warp, warp + 1].map(|warp| self.splits.counts.load(warp) as usize);
        partition_point(first, end, |k| (self.splits.positions.load(k) as usize) < i)
    }

    /// Returns the number of the first child of node `k` of the list.
    #[inline(always)]
    fn first_child(&self, k: usize) -> u32 {
        self.first_node + ((k as u32) << D)
    }

    /// Returns the end of the positions that share `key`, by an exponential search: a node that splits has more than `leaf_points` points.
    #[inline(always)]
    unsafe fn end(&self, begin: usize, key: u64, shift: u32) -> usize {
        let (mut low, mut step, len) = (begin + self.keys.leaf_points as usize, 1, self.keys.keys.len());
        while low + step <= len && self.keys.key(low + step - 1) >> shift == key {
            low += step;
            step *= 2;
        }
        let high = if low + step - 1 < len { low + step - 1 } else { len };
        partition_point(low, high, |i| self.keys.key(i) >> shift == key)
    }

    /// Returns the end of a child's positions.
    #[inline(always)]
    unsafe fn child_end(&self, split: &Split, child: u32) -> usize {
        let shift = D as u32 * (self.keys.num_levels - split.level - 1);
        let key = split.key << D | u64::from(child);
        partition_point(split.begin, split.end, |i| self.keys.key(i) >> shift <= key)
    }

    /// Returns a child with positions `begin..end` of a node that splits.
    #[inline(always)]
    unsafe fn child(&self, split: &Split, begin: usize, end: usize) -> Node {
        let level = split.level + 1;
        let [tree_start, tree_end] = [begin, end].map(|i| self.roots.tree_index(split.root as usize, i));
        let mut node = Node { start: tree_start, end: tree_end, first_child: 0, level: self.level + level };
        // On the level below the round, children are written by the next round.
        if (end - begin) as u32 > self.keys.leaf_points && level < self.keys.num_levels {
            node.first_child = self.first_child(self.num_before(level, begin));
        }
        node
    }

    /// Writes the low corner of a child's cell, in units: the corner of its root plus the offset that its key encodes.
    #[inline(always)]
    unsafe fn write_cell(&self, number: u32, split: &Split, child: u32, cells: SliceMut<'_, u32>) {
        let (root, child_level) = (self.roots.nodes.load(split.root as usize) as usize, split.level + 1);
        let (key, mut axis) = (split.key << D | u64::from(child), 0);
        // Without the index of the root.
        let key = key & !(u64::MAX << (D as u32 * child_level));
        while axis < D {
            let corner = cells.load(root * D + axis);
            let units =
                compact_bits::<D>(key >> (D - 1 - axis)) << (self.frame_levels - self.level - child_level);
            cells.store(number as usize * D + axis, corner + units);
            axis += 1;
        }
    }
}

/// Compacts every `D`-th bit of a number, from the lowest on.
#[inline(always)]
fn compact_bits<const D: usize>(x: u64) -> u32 {
    let x = if D == 2 {
        let x = x & 0x5555_5555_5555_5555;
        let x = (x | x >> 1) & 0x3333_3333_3333_3333;
        let x = (x | x >> 2) & 0x0F0F_0F0F_0F0F_0F0F;
        let x = (x | x >> 4) & 0x00FF_00FF_00FF_00FF;
        let x = (x | x >> 8) & 0x0000_FFFF_0000_FFFF;
        x | x >> 16
    } else {
        let x = x & 0x1249_2492_4924_9249;
        let x = (x | x >> 2) & 0x10C3_0C30_C30C_30C3;
        let x = (x | x >> 4) & 0x100F_00F0_0F00_F00F;
        let x = (x | x >> 8) & 0x001F_0000_FF00_00FF;
        let x = (x | x >> 16) & 0x001F_0000_0000_FFFF;
        x | x >> 32
    };
    x as u32
}
