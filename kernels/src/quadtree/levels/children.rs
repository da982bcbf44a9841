//! Output of the children of nodes that split.

use super::super::node::Node;
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
    /// Number of the first child of the first parent.
    pub first_node: u32,
    /// Node number of each child.
    pub numbers: SliceMut<'a, u32>,
    /// Whether each child splits.
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
    pub(super) node: Node,
}

impl ChildWriter<'_> {
    /// Loads parent `k` of the list.
    #[inline(always)]
    pub(super) unsafe fn parent(&self, k: usize) -> Parent {
        let number = self.parents.load(k);
        Parent { k, number, node: Node::from_bits(self.nodes.load(number as usize)) }
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
        self.flags.store(at, u8::from(node.len() >= self.splits_from));
    }

    /// Writes the first child of a parent to its node.
    #[inline(always)]
    pub(super) unsafe fn write_parent<const D: usize>(&self, parent: &Parent) {
        let first_child = self.first_node + ((parent.k as u32) << D);
        self.nodes.store(parent.number as usize, Node { first_child, ..parent.node }.to_bits());
    }
}
