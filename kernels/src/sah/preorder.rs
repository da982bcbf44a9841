//! Writing the tree in preorder: subtree sizes from the leaves up, positions from the root down.

use super::large_nodes::SplitPlan;
use super::node::Node;
use super::top_nodes::{Child, TopNode};
use crate::plain::plain;
use crate::policy::PER_ITEM_THREADS;
use cuda_std::prelude::*;

/// The size of a subtree; also a position in the tree's arrays.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubtreeSize {
    /// Number of nodes.
    pub nodes: u32,
    /// Number of references of all leaves.
    pub references: u32,
}

plain! { SubtreeSize { u32, u32 } }

impl SubtreeSize {
    /// Adds two sizes. Saturates; no valid tree is as large.
    #[inline(always)]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            nodes: self.nodes.saturating_add(other.nodes),
            references: self.references.saturating_add(other.references),
        }
    }
}

/// Sides of a box.
const SIDES: u32 = 6;

/// Returns the subtree size of a child.
#[inline(always)]
unsafe fn size_of_child(
    child: Child,
    large: Slice<'_, SubtreeSize>,
    small: Slice<'_, SubtreeSize>,
) -> SubtreeSize {
    match child {
        Child::NONE => SubtreeSize { nodes: 0, references: 0 },
        Child::EMPTY => SubtreeSize { nodes: 1, references: 0 },
        _ => match child.as_large() {
            Some(number) => large.load(number as usize),
            None => small.load(child.small_number() as usize),
        },
    }
}

/// Writes the subtree sizes of the top nodes from `begin` to `end`, given those of the next level and of small roots; one
/// thread per node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_upper_sizes(
    begin: u32,
    end: u32,
    uppers: Slice<TopNode>,
    small_sizes: Slice<SubtreeSize>,
    sizes: SliceMut<SubtreeSize>,
) {
    let number = thread::index_1d_u64() as usize + begin as usize;
    if number < end as usize {
        let node = uppers.load(number);
        let splits = u32::from(node.above != Child::NONE);
        // A cut adds an inner node and an empty leaf.
        let node_size = SubtreeSize { nodes: 2 * node.plan.cut_sides.count_ones() + splits, references: 0 };
        let child = |child| size_of_child(child, sizes.read_only(), small_sizes);
        sizes.store(number, node_size.plus(child(node.below)).plus(child(node.above)));
    }
}

/// The tree that is written, and the positions of the next level.
#[derive(Clone, Copy)]
struct Output<'a> {
    nodes: SliceMut<'a, u64>,
    positions: SliceMut<'a, SubtreeSize>,
    small_positions: SliceMut<'a, SubtreeSize>,
}

impl Output<'_> {
    /// Sets the position of a child.
    #[inline(always)]
    unsafe fn set_position(&self, child: Child, position: SubtreeSize) {
        if child == Child::EMPTY {
            self.nodes.store(position.nodes as usize, Node::leaf(position.references, 0).0);
        } else if let Some(number) = child.as_large() {
            self.positions.store(number as usize, position);
        } else if child != Child::NONE {
            self.small_positions.store(child.small_number() as usize, position);
        }
    }

    /// Writes the nodes of the empty-space cuts of a subtree that starts at `position`. Returns the position of the remainder.
    #[inline(always)]
    unsafe fn cut_off(&self, plan: &SplitPlan, mut position: SubtreeSize, size: SubtreeSize) -> SubtreeSize {
        // Empty leaves above their planes follow the remainder, the leaf of the first cut last.
        let (mut end, end_references) = (position.nodes + size.nodes, position.references + size.references);
        let mut side = 0;
        while side < SIDES {
            if plan.cut_sides >> side & 1 == 1 {
                let axis = side / 2;
                let words = plan.remainder.to_words();
                let at = if side % 2 == 0 { axis } else { 3 + axis };
                let (mut plane, mut i) = (0.0, 0);
                while i < SIDES {
                    plane = if i == at { words[i as usize] } else { plane };
                    i += 1;
                }
                let index = position.nodes;
                if side % 2 == 0 {
                    self.nodes.store(index as usize, Node::inner(axis, plane, index + 2).0);
                    self.nodes.store(index as usize + 1, Node::leaf(position.references, 0).0);
                    position.nodes += 2;
                } else {
                    end -= 1;
                    self.nodes.store(index as usize, Node::inner(axis, plane, end).0);
                    self.nodes.store(end as usize, Node::leaf(end_references, 0).0);
                    position.nodes += 1;
                }
            }
            side += 1;
        }
        position
    }
}

/// Writes the top nodes from `begin` to `end` to the tree, and the positions of their children; one thread per node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_upper_write(
    begin: u32,
    end: u32,
    uppers: Slice<TopNode>,
    sizes: Slice<SubtreeSize>,
    small_sizes: Slice<SubtreeSize>,
    places: SliceMut<SubtreeSize>,
    small_places: SliceMut<SubtreeSize>,
    nodes: SliceMut<u64>,
) {
    let number = thread::index_1d_u64() as usize + begin as usize;
    if number >= end as usize {
        return;
    }
    let (top, output) =
        (uppers.load(number), Output { nodes, positions: places, small_positions: small_places });
    let position = output.cut_off(&top.plan, places.load(number), sizes.load(number));
    if top.above == Child::NONE {
        output.set_position(top.below, position);
        return;
    }
    let below = position.plus(SubtreeSize { nodes: 1, references: 0 });
    let above = below.plus(size_of_child(top.below, sizes, small_sizes));
    output.set_position(top.below, below);
    output.set_position(top.above, above);
    nodes.store(position.nodes as usize, Node::inner(top.plan.axis, top.plan.plane, above.nodes).0);
}
