//! The check that a tree is the one that a build makes of its points.

use super::frame::{Frame, MAX_LEVELS};
use super::node::Node;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::coord::Coord;
use crate::thread::point::load_point;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;

/// Checks the nodes and the points of a tree whose nodes may be arbitrary. One thread per node and per point.
///
/// - Each node is on its level, follows the node before it, splits exactly if it has too many points, and has children that share its
///   points and its cell. Each group of siblings has at most one parent, which sets the group's item of `claimed`. So the tree is right if
///   nothing is found and all items of `claimed` are set.
/// - Each id occurs once, each point is in the cell of its leaf, and the points of a leaf are in the order of their ids.
///
/// `claimed` has an item for each group of siblings and `seen` an item for each point; all are 0. The least wrong node is written to
/// `finding`, which is initialized to `u32::MAX`: the parent if children are wrong, the leaf if a point is wrong, the root if an id is.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32], D = [2, 3])]
pub unsafe fn quadtree_verify<C: Coord, const D: usize>(
    tree: CheckedTree<'_, C>,
    claimed: SliceMut<u32>,
    seen: SliceMut<u32>,
    finding: SliceMut<u32>,
) {
    let (i, frame) = (thread::index_1d_u64(), Frame::<D>::load(tree.frame));
    if i < tree.nodes.len() as u64 && !tree.is_node_right(&frame, i as usize, claimed) {
        finding.atomic_min(0, i as u32, Ordering::Relaxed, Scope::Device);
    }
    if i < tree.ids.len() as u64
        && let Some(node) = tree.fault_of_point(&frame, i as u32, seen)
    {
        finding.atomic_min(0, node, Ordering::Relaxed, Scope::Device);
    }
}

/// A tree to be checked.
#[derive(Clone, Copy, KernelArgs)]
pub struct CheckedTree<'a, C> {
    /// The words of the frame.
    pub frame: Slice<'a, u64>,
    /// The nodes.
    pub nodes: Slice<'a, Bits128>,
    /// The low corner of each node's cell, in units.
    pub cells: Slice<'a, u32>,
    /// The first node of each level, and the number of nodes.
    pub level_begins: Slice<'a, u32>,
    /// The coordinates in tree order, point after point.
    pub coords: Slice<'a, C>,
    /// The ids in tree order.
    pub ids: Slice<'a, u32>,
    /// Maximum number of points of a leaf above the last level.
    pub leaf_points: u32,
    /// Number of the last level, at most the number of levels of the frame.
    pub depth: u32,
}

impl<C: Coord> CheckedTree<'_, C> {
    #[inline(always)]
    unsafe fn node(&self, number: usize) -> Node {
        Node::from_bits(self.nodes.load(number))
    }

    /// Returns true if a node and its children are right.
    #[inline(always)]
    unsafe fn is_node_right<const D: usize>(
        &self,
        frame: &Frame<D>,
        number: usize,
        claimed: SliceMut<'_, u32>,
    ) -> bool {
        let (node, num_points, level) =
            (self.node(number), self.ids.len() as u32, self.node(number).level as usize);
        if node.start > node.end || node.end > num_points || level + 1 >= self.level_begins.len() {
            return false;
        }
        let level_end = self.level_begins.load(level + 1) as usize;
        if number < self.level_begins.load(level) as usize || number >= level_end {
            return false;
        }
        if number == 0 {
            let mut is_root = node.start == 0 && node.end == num_points && level == 0;
            for axis in 0..D {
                is_root &= self.cells.load(axis) == 0;
            }
            if !is_root {
                return false;
            }
        }
        // With the ranges of children, the order of the nodes on a level implies that their groups of children are in the same order.
        if number + 1 < level_end && self.node(number + 1).start < node.end {
            return false;
        }
        let splits = node.len() > self.leaf_points && node.level < self.depth;
        if node.is_leaf() == splits {
            return false;
        }
        !splits || self.are_children_right(frame, number, &node, claimed)
    }

    /// Returns true if the children of a node that splits are right and no other node has claimed them.
    #[inline(always)]
    unsafe fn are_children_right<const D: usize>(
        &self,
        frame: &Frame<D>,
        number: usize,
        node: &Node,
        claimed: SliceMut<'_, u32>,
    ) -> bool {
        let (first, group) = (node.first_child as usize, (node.first_child as usize - 1) >> D);
        if (first - 1) & ((1 << D) - 1) != 0
            || group >= claimed.len()
            || claimed.atomic_exchange(group, 1, Ordering::Relaxed, Scope::Device) != 0
        {
            return false;
        }
        let (mut start, side) = (node.start, 1 << (frame.levels - node.level - 1));
        let (mut are_right, mut k) = (true, 0);
        while k < 1 << D {
            let child = self.node(first + k);
            let ends_well = if k + 1 < 1 << D { child.end >= start } else { child.end == node.end };
            are_right &= child.start == start && ends_well && child.level == node.level + 1;
            for axis in 0..D {
                let is_upper = (k >> (D - 1 - axis) & 1) as u32;
                let expected = self.cells.load(number * D + axis).wrapping_add(is_upper * side);
                are_right &= self.cells.load((first + k) * D + axis) == expected;
            }
            start = child.end;
            k += 1;
        }
        are_right
    }

    /// Returns the wrong node if a point, its id, or the path to its leaf is wrong.
    #[inline(always)]
    unsafe fn fault_of_point<const D: usize>(
        &self,
        frame: &Frame<D>,
        point: u32,
        seen: SliceMut<'_, u32>,
    ) -> Option<u32> {
        let id = self.ids.load(point as usize);
        if id as usize >= seen.len()
            || seen.atomic_exchange(id as usize, 1, Ordering::Relaxed, Scope::Device) != 0
        {
            return Some(0);
        }
        // Descends by the ranges of the nodes. A right tree has a leaf after at most `MAX_LEVELS` steps.
        let (mut leaf, mut node, mut step) = (0, self.node(0), 0);
        while !node.is_leaf() {
            let (first, mut k) = (node.first_child as usize, 0);
            if step == MAX_LEVELS || first + (1 << D) > self.nodes.len() {
                return Some(leaf);
            }
            let mut child = self.node(first);
            while !(child.start <= point && point < child.end) {
                k += 1;
                if k == 1 << D {
                    return Some(leaf);
                }
                child = self.node(first + k);
            }
            (leaf, node, step) = ((first + k) as u32, child, step + 1);
        }
        let is_in_order = point <= node.start || self.ids.load(point as usize - 1) < id;
        (!is_in_order || !self.is_inside(frame, leaf, &node, point)).then_some(leaf)
    }

    /// Returns true if a point is in the cell of a node. It compares with the corners of the cell, not by the units of the point: this checks
    /// the units that a build computes as well.
    #[inline(always)]
    unsafe fn is_inside<const D: usize>(
        &self,
        frame: &Frame<D>,
        number: u32,
        node: &Node,
        point: u32,
    ) -> bool {
        if node.level > frame.levels {
            return false;
        }
        let (mut low, side) = ([0; D], 1_u64 << (frame.levels - node.level));
        for axis in 0..D {
            low[axis] = self.cells.load(number as usize * D + axis).into();
        }
        let mut high = low;
        for axis in 0..D {
            high[axis] += side;
        }
        let (low, high, mut is_inside) = (frame.corner(low), frame.corner(high), true);
        let coords = load_point::<C, D>(self.coords, point as usize, D);
        for axis in 0..D {
            let x = coords[axis].to_f64();
            is_inside &= low[axis] <= x && x < high[axis];
        }
        is_inside
    }
}
