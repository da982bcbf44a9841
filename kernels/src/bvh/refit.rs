//! Refit: the boxes of a hierarchy over items that have moved, from the leaves up.

use super::leaf::*;
use super::node::{Node, WIDTH};
use super::subtree::Subtree;
use crate::policy::PER_ITEM_THREADS;
use crate::rays::aabb::Aabb;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// The parent of the root.
const NONE: u32 = u32::MAX;

/// Writes the parent of each node, and in the lowest two bits which of its children the node is; one thread per node. All bits of the root's are
/// set at the start.
#[kernel(family = "bvh", block = PER_ITEM_THREADS)]
pub unsafe fn bvh_parents(nodes: Slice<Node>, parents: SliceMut<u32>) {
    let Some(i) = own_item(nodes.len()) else { return };
    let children = nodes.load(i).children;
    let store = |slot: usize| {
        if children[slot].is_node() {
            parents.store(children[slot].index() as usize, (i * WIDTH + slot) as u32);
        }
    };
    store(0);
    store(1);
    store(2);
    store(3);
}

/// Writes the boxes of all nodes; one thread per node. It ascends from a node without children that are nodes, as far as it is the last to
/// reach a node. `arrivals` are 0 at the start, and the nodes are the `old` ones.
#[kernel(family = "bvh", block = PER_ITEM_THREADS)]
#[instances(L = [LeafTriangle, LeafBox])]
pub unsafe fn bvh_refit<L: Leaf>(
    old: Slice<Node>,
    items: Slice<L>,
    parents: Slice<u32>,
    arrivals: SliceMut<u32>,
    nodes: SliceMut<Node>,
) {
    let Some(i) = own_item(nodes.len()) else { return };
    let mut node = i;
    let mut inner = num_inner(old.load(node).children);
    while inner == 0 {
        let bounds = fit(items, nodes, node);
        let parent = parents.load(node);
        if parent == NONE {
            return;
        }
        node = parent as usize / WIDTH;
        store_box(nodes, node, parent as usize % WIDTH, bounds);
        let before = arrivals.atomic_add(node, 1, Ordering::AcqRel, Scope::Device);
        inner = num_inner(old.load(node).children) - (before + 1);
    }
}

/// Returns the number of children that are nodes.
#[inline(always)]
fn num_inner(children: [Subtree; WIDTH]) -> u32 {
    let [a, b, c, d] = children.map(|child| u32::from(child.is_node()));
    a + b + c + d
}

/// Writes the boxes of a node's leaves. Returns the box of the node.
#[inline(always)]
unsafe fn fit<L: Leaf>(items: Slice<'_, L>, nodes: SliceMut<'_, Node>, node: usize) -> Aabb {
    let stored = nodes.load(node);
    let children = stored.children;
    let box_of_child = |slot: usize| match children[slot].num_few() {
        _ if children[slot] == Subtree::NONE => Aabb::EMPTY,
        None => stored.bounds(slot),
        Some(few) => {
            let bounds = box_of(few, |i| items.load((children[slot].index() + i) as usize));
            store_box(nodes, node, slot, bounds);
            bounds
        }
    };
    box_of_child(0).union(box_of_child(1)).union(box_of_child(2)).union(box_of_child(3))
}

/// Returns the bounding box of a leaf.
#[inline(always)]
pub fn box_of<L: Leaf>(num: u32, item: impl Fn(u32) -> L) -> Aabb {
    let mut bounds = Aabb::EMPTY;
    let mut i = 0;
    while i < num {
        bounds = bounds.union(item(i).bounds());
        i += 1;
    }
    bounds
}

/// Writes the box of a child, and nothing else of its parent, whose other boxes other threads may write.
#[inline(always)]
unsafe fn store_box(nodes: SliceMut<'_, Node>, node: usize, slot: usize, bounds: Aabb) {
    let words_of_node = size_of::<Node>() / size_of::<f32>();
    let words = SliceMut::<f32>::from_raw_parts(nodes.as_ptr().cast(), nodes.len() * words_of_node);
    for axis in 0..3 {
        let first = node * words_of_node + 2 * axis * WIDTH + slot;
        words.store(first, bounds.low[axis]);
        words.store(first + WIDTH, bounds.high[axis]);
    }
}
