//! Output of the children of nodes that split.

use super::super::node::Node;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::items::own_item;
use crate::thread::search::partition_point;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;

/// Writes the children of the nodes that split, and which of them split in turn.
#[derive(Clone, Copy, KernelArgs)]
pub struct ChildWriter<'a> {
    /// The nodes that split, by number.
    pub parents: Slice<'a, u32>,
    /// The nodes of the tree.
    pub nodes: SliceMut<'a, crate::thread::words::Bits128>,
    /// The low corner of each node's cell, in units.
    pub cells: SliceMut<'a, u32>,
    /// The root of the tree has 2^`frame_levels` units on a side.
    pub frame_levels: u32,
    /// Number of points from which on a child splits.
    pub splits_from: u32,
    /// Parents with fewer points are null nodes, whose children are null nodes too; 0 if all parents split.
    pub nulls_below: u32,
    /// Number of the first child of the first parent.
    pub first_node: u32,
    /// Node number of each child.
    pub numbers: SliceMut<'a, u32>,
    /// Whether each child splits; if there are null nodes, whether its parent splits.
    pub flags: SliceMut<'a, u8>,
}

/// A level whose nodes are split each by a thread or a block.
#[derive(Clone, Copy, KernelArgs)]
pub struct LevelSplit<'a> {
    /// The points of the level.
    pub points: crate::quadtree::levels::points::LevelPoints<'a>,
    /// Where the points go.
    pub to: crate::quadtree::levels::points::PointTargets<'a>,
    /// The output of the children.
    pub children: crate::quadtree::levels::children::ChildWriter<'a>,
}

/// A node that splits.
pub(super) struct Parent {
    /// Its index in the list of nodes that split.
    pub(super) k: usize,
    /// Its node number.
    pub(super) number: u32,
    /// Without points if it is a null node.
    pub(super) node: Node,
    /// It is a null node.
    pub(super) is_null: bool,
}

impl ChildWriter<'_> {
    /// Loads parent `k` of the list.
    #[inline(always)]
    pub(super) unsafe fn parent(&self, k: usize) -> Parent {
        let number = self.parents.load(k);
        let mut node = Node::from_bits(self.nodes.load(number as usize));
        let is_null = node.len() < self.nulls_below;
        if is_null {
            node.end = node.start;
        }
        Parent { k, number, node, is_null }
    }

    /// Writes a child with points `start..end`.
    #[inline(always)]
    pub(super) unsafe fn write<const D: usize>(&self, parent: &Parent, child: usize, start: u32, end: u32) {
        let (at, level) = ((parent.k << D) + child, parent.node.level + 1);
        let node = Node { start, end, first_child: 0, level };
        let number = self.first_node as usize + at;
        self.nodes.store(number, node.to_bits());
        let side = 1 << (self.frame_levels - level);
        for axis in 0..D {
            let is_upper = (child >> (D - 1 - axis) & 1) as u32;
            let corner = self.cells.load(parent.number as usize * D + axis);
            self.cells.store(number * D + axis, corner + is_upper * side);
        }
        self.numbers.store(at, number as u32);
        let flag = if self.nulls_below > 0 { !parent.is_null } else { node.len() >= self.splits_from };
        self.flags.store(at, flag.into());
    }

    /// Writes the first child of a parent that splits to its node.
    #[inline(always)]
    pub(super) unsafe fn write_parent<const D: usize>(&self, parent: &Parent) {
        if parent.is_null {
            return;
        }
        let first_child = self.first_node + ((parent.k as u32) << D);
        self.nodes.store(parent.number as usize, Node { first_child, ..parent.node }.to_bits());
    }
}

/// Copies the nodes of a tree without its null nodes. `kept` has the numbers of the nodes to copy, in ascending order. One thread per copied
/// node.
#[kernel(family = "research-quadtree", block = PER_ITEM_THREADS)]
#[instances(D = [2, 3])]
pub unsafe fn quadtree_prune<const D: usize>(
    kept: Slice<u32>,
    nodes: Slice<Bits128>,
    cells: Slice<u32>,
    to_nodes: SliceMut<Bits128>,
    to_cells: SliceMut<u32>,
) {
    let Some(i) = own_item(kept.len()) else { return };
    let number = kept.load(i) as usize;
    let mut node = Node::from_bits(nodes.load(number));
    if !node.is_leaf() {
        let first_child = node.first_child;
        node.first_child = partition_point(0, kept.len(), |i| kept.load(i) < first_child) as u32;
    }
    to_nodes.store(i, node.to_bits());
    for axis in 0..D {
        to_cells.store(i * D + axis, cells.load(number * D + axis));
    }
}
