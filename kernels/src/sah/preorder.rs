//! Writing the tree in preorder: subtree sizes from the leaves up, positions from the root down.

use super::large_nodes::SplitPlan;
use super::node::Node;
use super::top_nodes::Child;
use crate::plain::plain;
use crate::policy::PER_ITEM_THREADS;
use crate::rays::aabb::component;
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

/// The memory of a tree.
#[derive(Clone, Copy, KernelArgs)]
pub struct TreeMut<'a> {
    /// The [nodes](Node).
    pub nodes: SliceMut<'a, u64>,
    /// The references of all leaves.
    pub references: SliceMut<'a, u32>,
}

impl TreeMut<'_> {
    #[inline(always)]
    pub(super) unsafe fn store_node(&self, index: u32, node: Node) {
        self.nodes.store(index as usize, node.0);
    }
}

/// The top nodes of a level, and the subtree sizes of small roots.
#[derive(Clone, Copy, KernelArgs)]
pub struct TopLevel<'a> {
    /// Index of the level's first top node.
    pub begin: u32,
    /// End of its indices.
    pub end: u32,
    /// All top nodes.
    pub nodes: Slice<'a, crate::sah::top_nodes::TopNode>,
    /// The subtree sizes of all small roots.
    pub small_sizes: Slice<'a, crate::sah::preorder::SubtreeSize>,
}

impl TopLevel<'_> {
    /// Returns the index of the thread's node, if the thread has one.
    #[inline(always)]
    fn number(&self) -> Option<usize> {
        let number = thread::index_1d_u64() as usize + self.begin as usize;
        (number < self.end as usize).then_some(number)
    }

    /// Returns the subtree size of a child, given the subtree sizes of the next level's top nodes.
    #[inline(always)]
    unsafe fn size_of_child(&self, child: Child, sizes: Slice<'_, SubtreeSize>) -> SubtreeSize {
        match child {
            Child::NONE => SubtreeSize { nodes: 0, references: 0 },
            Child::EMPTY => SubtreeSize { nodes: 1, references: 0 },
            _ => match child.as_large() {
                Some(number) => sizes.load(number as usize),
                None => self.small_sizes.load(child.small_number() as usize),
            },
        }
    }
}

/// Writes the subtree sizes of a level's top nodes, given those of the next level; one thread per node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_top_sizes(level: TopLevel<'_>, sizes: SliceMut<SubtreeSize>) {
    if let Some(number) = level.number() {
        let node = level.nodes.load(number);
        let splits = u32::from(node.above != Child::NONE);
        // A cut adds an inner node and an empty leaf.
        let node_size = SubtreeSize { nodes: 2 * node.plan.cut_sides.count_ones() + splits, references: 0 };
        let child = |child| level.size_of_child(child, sizes.read_only());
        sizes.store(number, node_size.plus(child(node.below)).plus(child(node.above)));
    }
}

/// The positions of subtrees in the tree that is written.
#[derive(Clone, Copy, KernelArgs)]
pub struct Positions<'a> {
    /// The positions of top nodes.
    pub top: SliceMut<'a, crate::sah::preorder::SubtreeSize>,
    /// The positions of small roots.
    pub small: SliceMut<'a, crate::sah::preorder::SubtreeSize>,
}

/// Sides of a box.
const SIDES: u32 = 6;

impl Positions<'_> {
    /// Sets the position of a child. An empty leaf is written at once.
    #[inline(always)]
    unsafe fn set(&self, child: Child, position: SubtreeSize, tree: TreeMut<'_>) {
        if child == Child::EMPTY {
            tree.store_node(position.nodes, Node::leaf(position.references, 0));
        } else if let Some(number) = child.as_large() {
            self.top.store(number as usize, position);
        } else if child != Child::NONE {
            self.small.store(child.small_number() as usize, position);
        }
    }
}

impl TreeMut<'_> {
    /// Writes the nodes of the empty-space cuts of a subtree that starts at `position`. Returns the position of the remainder.
    #[inline(always)]
    unsafe fn cut_off(&self, plan: &SplitPlan, mut position: SubtreeSize, size: SubtreeSize) -> SubtreeSize {
        // Empty leaves above their planes follow the remainder, the leaf of the first cut last.
        let (mut end, end_references) = (position.nodes + size.nodes, position.references + size.references);
        for side in 0..SIDES {
            if plan.cut_sides >> side & 1 == 1 {
                let axis = side / 2;
                let (index, is_low) = (position.nodes, side % 2 == 0);
                let plane = component(if is_low { plan.remainder.low } else { plan.remainder.high }, axis);
                if is_low {
                    self.store_node(index, Node::inner(axis, plane, index + 2));
                    self.store_node(index + 1, Node::leaf(position.references, 0));
                    position.nodes += 2;
                } else {
                    end -= 1;
                    self.store_node(index, Node::inner(axis, plane, end));
                    self.store_node(end, Node::leaf(end_references, 0));
                    position.nodes += 1;
                }
            }
        }
        position
    }
}

/// Writes a level's top nodes to the tree, and the positions of their children; one thread per node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_top_write(
    level: TopLevel<'_>,
    sizes: Slice<SubtreeSize>,
    positions: Positions<'_>,
    tree: TreeMut<'_>,
) {
    let Some(number) = level.number() else { return };
    let top = level.nodes.load(number);
    let position = tree.cut_off(&top.plan, positions.top.load(number), sizes.load(number));
    if top.above == Child::NONE {
        positions.set(top.below, position, tree);
        return;
    }
    let below = position.plus(SubtreeSize { nodes: 1, references: 0 });
    let above = below.plus(level.size_of_child(top.below, sizes));
    positions.set(top.below, below, tree);
    positions.set(top.above, above, tree);
    tree.store_node(position.nodes, Node::inner(top.plan.axis, top.plan.plane, above.nodes));
}
